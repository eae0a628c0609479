"""Norms, parametrizations and first values: arguments that are refused, and in which words.

Each function is a scenario; `t` is the library.
"""

from __future__ import annotations

from conformance.modules.module_attempts import tried


def weight_norms_of_wrong_arguments(t):
    utils = t.nn.utils
    found = []
    for dim in (None, 0, 1, -1, 2, "a", 1.5):
        for norm in (utils.weight_norm, utils.parametrizations.weight_norm):
            layer = t.nn.Linear(2, 3)
            found.append(tried(lambda: norm(layer, dim=dim)))  # noqa: B023
            found.append(tried(lambda: layer.weight.shape))  # noqa: B023
    bare = t.nn.Linear(2, 2, bias=False)
    found += [tried(lambda: utils.weight_norm(bare, name)) for name in ("bias", "nope")]  # noqa: B023
    return found


def parametrized_names_deleted(t):
    layer = t.nn.Linear(2, 2)
    t.nn.utils.parametrize.register_parametrization(layer, "weight", t.nn.Identity())
    return tried(lambda: delattr(layer, "weight"))


FILLS = ("uniform_", "normal_", "trunc_normal_", "xavier_uniform_", "kaiming_normal_",
         "orthogonal_")  # fmt: skip


def generators_of_wrong_types(t):
    found = []
    for name in FILLS:
        fill = getattr(t.nn.init, name)
        for generator in (3, "a", t.ones(1)):
            found.append(tried(lambda: fill(t.ones(2, 2), generator=generator)))  # noqa: B023
    return found


def fills_of_what_is_no_tensor(t):
    found = []
    for name in ("eye_", "dirac_", "orthogonal_", "xavier_normal_"):
        for value in (3, None, "a", [1.0]):
            found.append(tried(lambda: getattr(t.nn.init, name)(value)))  # noqa: B023
    return found


def private_fills(t):
    init = t.nn.init
    t.manual_seed(0)
    return [
        init._no_grad_uniform_(t.ones(3), 0, 1),
        init._no_grad_normal_(t.ones(3), 0, 1),
        init._no_grad_trunc_normal_(t.ones(3), 0, 1, -2, 2),
        init._no_grad_fill_(t.ones(3), 2),
        init._no_grad_zero_(t.ones(3, requires_grad=True)),
    ]


def likenesses_of_what_is_no_tensor(t):
    makers = (t.empty_like, t.zeros_like, t.ones_like, t.rand_like)
    return [tried(lambda: make(value)) for make in makers for value in (None, 3, [1])]  # noqa: B023


def padded_sequences_of_what_is_no_tensor(t):
    pad = t.nn.utils.rnn.pad_sequence
    return [tried(lambda: pad(given)) for given in ([3], 3, [], [t.ones(1), "a"])]  # noqa: B023
