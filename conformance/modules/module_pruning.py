"""Pruning: which amounts and dims are taken, and what is left after a refusal.

Each function is a scenario; `t` is the library.
"""

from __future__ import annotations

import copy
import io
import pickle

from conformance.modules.module_attempts import names_of, tried

AMOUNTS = (True, False, 0, 1, 3, 12, 13, 0.5, 0.0, 1.0, 1.5, -1, -0.5, "a", None, 3.0, [1], 1j)


def _prune(t):
    import importlib

    return importlib.import_module(f"{t.__name__}.nn.utils.prune")


def _layer(t):
    layer = t.nn.Linear(4, 3)
    with t.no_grad():
        layer.weight.copy_(t.arange(12.0).view(3, 4))
    return layer


def _without_position(found):
    """Whether a number was given by name is not known where it is refused."""
    if isinstance(found, tuple):
        return (found[0], found[1].replace(" (position 2)", ""))
    return found


def amounts(t):
    prune = _prune(t)
    ways = [
        lambda layer, amount: prune.l1_unstructured(layer, "weight", amount),
        lambda layer, amount: prune.random_unstructured(layer, "weight", amount),
        lambda layer, amount: prune.ln_structured(layer, "weight", amount, 2, 0),
        lambda layer, amount: prune.random_structured(layer, "weight", amount, 0),
    ]
    found = []
    for way in ways:
        for amount in AMOUNTS:
            layer = _layer(t)
            t.manual_seed(0)
            found.append(_without_position(tried(lambda: way(layer, amount).weight_mask)))  # noqa: B023
            found.append((names_of(layer), len(layer._forward_pre_hooks)))
    return found


def orders_and_dims(t):
    prune = _prune(t)
    found = []
    for n in ("nuc", "fro", 1, 2, float("inf"), 0.5, None):
        for dim in (0, 1, -1, -2, 2, -3, None, "a"):
            layer = _layer(t)
            found.append(tried(lambda: prune.ln_structured(layer, "weight", 1, n, dim).weight))  # noqa: B023
            found.append(names_of(layer))
    return found


def what_cannot_be_pruned(t):
    prune = _prune(t)
    found = []
    for name in ("nope", "in_features", "", None, 3, "bias"):
        layer = t.nn.Linear(2, 2, bias=False)
        found.append(tried(lambda: prune.l1_unstructured(layer, name, 1)))  # noqa: B023
        found.append([names_of(layer), hasattr(layer, str(name)), len(layer._forward_pre_hooks)])
    return found


def masks_of_wrong_shapes(t):
    prune = _prune(t)
    found = []
    for mask in (None, 3, t.ones(2), t.ones(2, 2), [[1] * 4] * 3):
        for times in (0, 1):
            layer = _layer(t)
            for _ in range(times):
                prune.identity(layer, "weight")
            found.append(tried(lambda: prune.custom_from_mask(layer, "weight", mask)))  # noqa: B023
            found.append((names_of(layer), len(layer._forward_pre_hooks)))
    return found


def parameters_given_once(t):
    prune = _prune(t)
    layers = [_layer(t), _layer(t)]
    given = ((layer, "bias") for layer in layers)
    return tried(lambda: prune.global_unstructured(given, prune.L1Unstructured, amount=1))


def kinds_in_messages(t):
    prune = _prune(t)
    layer = _layer(t)
    kinds = (prune.LnStructured, prune.CustomFromMask)
    options = ({"amount": 1, "n": 2}, {"mask": t.ones(12)})
    found = [
        tried(lambda: prune.global_unstructured([(layer, "weight")], kind, **option))  # noqa: B023
        for kind, option in zip(kinds, options, strict=True)
    ]
    found += [tried(kind) for kind in (prune.L1Unstructured, prune.RandomStructured)]
    return found


def helpers_that_others_import(t):
    prune = _prune(t)
    two = t.arange(6.0).view(2, 3)
    actions = [lambda a=a: prune._validate_pruning_amount_init(a) for a in AMOUNTS]
    actions += [lambda a=a: prune._validate_pruning_amount(a, 3) for a in (2, 4, 0.5, 3.5)]
    actions += [lambda a=a: prune._compute_nparams_toprune(a, 5) for a in (2, 0.5, 0.3)]
    actions += [lambda d=d: prune._compute_norm(two, 2, d) for d in (0, 1, -1)]
    actions += [lambda d=d: prune._validate_pruning_dim(two, d) for d in (1, 2, -5)]
    actions += [lambda: prune._validate_structured_pruning(two[0])]
    return [tried(action) for action in actions]


def copies_and_files(t):
    prune = _prune(t)
    layer = prune.l1_unstructured(_layer(t), "weight", 3)
    file = io.BytesIO()
    t.save(layer, file)
    file.seek(0)
    ways = (copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m)),
            lambda m: t.load(file, weights_only=False))  # fmt: skip
    found = []
    for way in ways:
        made = tried(lambda: way(layer))  # noqa: B023
        found.append(made)
    file.seek(0)
    loaded = t.load(file, weights_only=False)
    found += [loaded.weight, loaded.weight.is_leaf, loaded.weight.requires_grad]
    found.append(loaded(t.ones(4)))
    return found


def pickled_results(t):
    x = t.ones(2, requires_grad=True) * 2
    made = pickle.loads(pickle.dumps(x))
    normed = t.nn.utils.weight_norm(_layer(t))
    with t.no_grad():
        normed.weight_v.add_(1)
    again = pickle.loads(pickle.dumps(normed))
    return [made, made.is_leaf, made.requires_grad, again.weight, again(t.ones(4)), names_of(again)]
