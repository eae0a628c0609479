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


def _noted(t, said, name, anew):
    class Noted(t.nn.Module):
        """A parametrization that notes when it computes."""

        def forward(self, x):
            said.append(name)
            return x * 1 if anew else x

    return Noted()


def how_often_recurrent_layers_compute_weights(t):
    found = []
    for chosen in (("weight_ih_l0", "weight_hh_l0", "bias_hh_l0"), ("weight_hh_l1",)):
        for kind in (t.nn.RNN, t.nn.GRU, t.nn.LSTM):
            layer, said = kind(3, 4, num_layers=2), []
            for name in chosen:
                noted = _noted(t, said, name, anew=name != "weight_ih_l0")
                t.nn.utils.parametrize.register_parametrization(layer, name, noted)
            x = t.ones(5, 2, 3)
            packed = t.nn.utils.rnn.pack_padded_sequence(x, [5, 3])
            layer.flatten_parameters()
            for call in (lambda: layer(x), lambda: layer(packed), layer.double, layer.float):  # noqa: B023
                said.clear()
                call()
                found.append([name for name in said if name != "weight_ih_l0"])
    return found


def random_numbers_of_recurrent_layers_with_dropped_weights(t):
    found = []
    for kind in (t.nn.RNN, t.nn.GRU, t.nn.LSTM):
        t.manual_seed(5)
        layer = kind(3, 4)
        for name in ("weight_ih_l0", "weight_hh_l0"):
            t.nn.utils.parametrize.register_parametrization(layer, name, t.nn.Dropout(0.5))
        layer(t.ones(5, 2, 3))
        found.append(t.rand(1))
        layer.double()
        found.append(t.rand(1))
    return found
