"""Containers: names, orders, and what is left after a refused change.

Each function is a scenario; `t` is the library.
"""

from __future__ import annotations

import types
from collections import ChainMap, OrderedDict

from conformance.modules.module_attempts import names_of, tried


def _entries(t, names):
    return [(name, t.ones(place + 1)) for place, name in enumerate(names)]


def parameter_dict_from_each_kind_of_mapping(t):
    pairs = _entries(t, "zayb")
    other = t.nn.ParameterDict(pairs)
    kinds = [dict(pairs), OrderedDict(pairs), ChainMap(dict(pairs)), other, pairs,
             types.MappingProxyType(dict(pairs)), dict(pairs).items(), iter(pairs)]  # fmt: skip
    made = [t.nn.ParameterDict(kind) for kind in kinds]
    return [(list(one), list(one.state_dict()), repr(one)) for one in made]


def parameter_dict_updates(t):
    held = t.nn.ParameterDict(_entries(t, "qc"))
    held.update(dict(_entries(t, "zca")))
    held.update(OrderedDict(_entries(t, "yb")))
    held |= dict(_entries(t, "xw"))
    merged = held | dict(_entries(t, "vu"))
    turned = dict(_entries(t, "vu")) | held
    copied = held.copy()
    return [list(one) for one in (held, merged, turned, copied)] + [type(turned).__name__]


def parameter_dict_optimizer_numbers(t):
    held = t.nn.ParameterDict({"z": t.ones(1), "a": t.ones(2)})
    optimizer = t.optim.SGD(held.parameters(), lr=0.1)
    return [list(p.shape) for p in optimizer.param_groups[0]["params"]]


def parameter_dict_refusals(t):
    held = t.nn.ParameterDict(_entries(t, "ab"))
    actions = [
        lambda: held.update({1: t.ones(1), "c": t.ones(1)}),
        lambda: held.update({2: t.ones(1), 1: t.ones(1)}),
        lambda: held.update(3),
        lambda: held.update([(1, 2, 3)]),
        lambda: held.__setitem__(7, t.ones(1)),
        lambda: list(held.keys()),
        lambda: held | 5,
        lambda: 5 | held,
        lambda: list(held.items()),
        held.clear,
    ]
    return [tried(action) for action in actions]


def module_dict_keeps_every_order(t):
    pairs = [("z", t.nn.ReLU()), ("a", t.nn.Tanh())]
    kinds = [dict(pairs), OrderedDict(pairs), pairs, t.nn.ModuleDict(pairs)]
    return [list(t.nn.ModuleDict(kind)) for kind in kinds]


def _named(t, names):
    return t.nn.Sequential(OrderedDict((name, t.nn.ELU(place)) for place, name in enumerate(names)))


NAMES = (("a", "b", "c"), ("0", "1", "2"), ("0", "x", "2"), ("1", "0"), ("2", "a"), ())


def sequential_insert_among_names(t):
    found = []
    for names in NAMES:
        for place in (0, 1, 2, 3, -1, -3, 9, True):
            held = _named(t, names)
            found.append((names, place, tried(lambda: held.insert(place, t.nn.ReLU()))))  # noqa: B023
            found.append(names_of(held))
    return found


def list_insert_among_names(t):
    found = []
    for names in NAMES:
        for place in (0, 1, 2, 3, -1, -3, 9):
            held = t.nn.ModuleList()
            for name in names:
                held.add_module(name, t.nn.ELU())
            found.append((names, place, tried(lambda: held.insert(place, t.nn.ReLU()))))  # noqa: B023
            found.append([*held._modules])
    return found


def changes_after_deletion(t):
    found = []
    for names in NAMES[:3]:
        held = _named(t, names)
        actions = [
            lambda: held.__delitem__(0),  # noqa: B023
            lambda: held.append(t.nn.Tanh()),  # noqa: B023
            lambda: held.insert(1, t.nn.ReLU()),  # noqa: B023
            lambda: held.pop(-1),  # noqa: B023
            lambda: held.extend([t.nn.ReLU(), 3]),  # noqa: B023
            lambda: held.__iadd__(held),  # noqa: B023
            lambda: held.__delitem__(slice(0, 2)),  # noqa: B023
        ]
        found += [(tried(action), names_of(held)) for action in actions]
    return found


def list_extended_by_itself(t):
    held = t.nn.ModuleList([t.nn.ReLU(), t.nn.Tanh()])
    del held[0]
    return tried(lambda: held.extend(held)), list(held._modules)


def list_extended_over_a_name(t):
    held = t.nn.ModuleList([t.nn.ReLU()])
    held.add_module("2", t.nn.Tanh())
    held.extend([t.nn.ELU(), t.nn.GELU()])
    return names_of(held)


def names_in_messages(t):
    held = t.nn.Sequential(t.nn.ReLU())
    actions = [
        lambda: held * 0,
        lambda: held * "a",
        lambda: held + [1],
        lambda: held.insert(0, 3),
        lambda: held.append(OrderedDict()),
        lambda: held.__setitem__(0, t.ones(1)),
        lambda: setattr(t.nn.Linear(1, 1), "weight", held),
        lambda: setattr(held, "0", t.ones(1).double()),
        lambda: t.nn.Linear(1, 1).register_buffer("b", held),
        lambda: t.nn.Linear(1, 1).register_parameter("b", t.nn.InstanceNorm1d(3)),
        lambda: t.typename(t.nn.Fold(1, 1)),
        lambda: t.typename(t.nn.LSTM(1, 1)),
        lambda: t.typename(held),
    ]
    return [tried(action) for action in actions]
