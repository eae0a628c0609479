"""Leaves: flags, `.grad`, `.data`, detaching, what integers may not.

Each function is a scenario; `t` is the library.
"""

from __future__ import annotations

import numpy as np


def leaf_flags(t):
    x = t.ones(2, requires_grad=True)
    y = x * 2
    z = y.detach()
    return [(v.is_leaf, v.requires_grad, v.grad_fn, v.output_nr) for v in (x, y, z)]


def requires_grad_of_integers(t):
    return t.ones(2, dtype=t.int64, requires_grad=True)


def requires_grad_set_on_integers(t):
    t.ones(2, dtype=t.int64).requires_grad_()


def requires_grad_off_on_non_leaf(t):
    (t.ones(2, requires_grad=True) * 2).requires_grad_(False)


def requires_grad_on_non_leaf_again(t):
    return (t.ones(2, requires_grad=True) * 2).requires_grad_().requires_grad


def in_place_on_leaf(t):
    t.ones(2, requires_grad=True).add_(1)


def in_place_on_view_of_leaf(t):
    t.ones(2, requires_grad=True)[0].add_(1)


def in_place_on_leaf_without_grad_mode(t):
    x = t.ones(2, requires_grad=True)
    with t.no_grad():
        x.add_(1)
    return x, x._version, x.requires_grad


def grad_of_wrong_shape(t):
    t.ones(2, requires_grad=True).grad = t.ones(3)


def grad_of_wrong_dtype(t):
    t.ones(2, requires_grad=True).grad = t.ones(2, dtype=t.float64)


def grad_of_wrong_type(t):
    t.ones(2, requires_grad=True).grad = 1


def grad_of_non_leaf(t):
    y = t.ones(2, requires_grad=True) * 2
    return y.grad


def data_shares_memory(t):
    x = t.ones(2, requires_grad=True)
    x.data.mul_(3)
    return x, x._version, x.data.requires_grad


def set_data(t):
    x = t.ones(2, requires_grad=True)
    x.data = t.zeros(3)
    return x, x.is_leaf


def detach_shares_version(t):
    x = t.ones(2)
    y = x.detach()
    y.add_(1)
    return x, x._version, y._version


def detach_in_place_on_view(t):
    x = t.ones(2, requires_grad=True) * 2
    x[0].detach_()


def detach_in_place(t):
    x = t.ones(2, requires_grad=True) * 2
    x.detach_()
    return x.requires_grad, x.is_leaf, x.grad_fn


def item_assignment_of_requires_grad(t):
    x = t.zeros(3)
    y = t.ones(1, requires_grad=True)
    x[1:2] = y * 2
    x.sum().backward()
    return x.grad_fn, y.grad, x.requires_grad


def numpy_of_grad_tensor(t):
    t.ones(2, requires_grad=True).numpy()


def numpy_array_of_grad_tensor(t):
    np.asarray(t.ones(2, requires_grad=True))


def float_of_grad_tensor(t):
    return float(t.ones((), requires_grad=True) * 2)


def deleted_attributes(t):
    x, said = t.ones(2, requires_grad=True), []
    for name in ("data", "requires_grad", "grad"):
        try:
            delattr(x, name)
            said.append(name)
        except RuntimeError as error:
            said.append(str(error))
    return said


def data_of_integers_for_a_leaf_that_learns(t):
    x = t.ones(2, requires_grad=True)
    x.data = t.tensor([1, 2])


def data_that_is_sparse(t):
    x = t.ones(2)
    x.data = t.ones(2).to_sparse()
