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


def detach_in_place_of_what_was_saved(t):
    """Before it was saved, after, after for another node, and before it learns again."""

    def second(early, again):
        x = t.tensor([3.0], requires_grad=True)
        y = x * 2
        if early:
            y.detach_()
        z = y * y * x
        y.detach_()
        if again:
            y.requires_grad_()
        try:
            (gradient,) = t.autograd.grad(z.sum(), x, create_graph=True)
            return gradient, t.autograd.grad(gradient.sum(), x, allow_unused=True)
        except RuntimeError as error:
            return str(error)

    return [second(early, again) for early in (True, False) for again in (True, False)]


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


def other_memory_parts_a_leaf_from_its_graph(t):
    def parted(change):
        x = t.ones(2, dtype=t.float64, requires_grad=True)
        before = x * 2
        with t.no_grad():
            change(x)
        after = x * 5
        asked = [t.autograd.grad(y.sum(), x, retain_graph=True, allow_unused=True)
                 for y in (before, after)]  # fmt: skip
        before.sum().backward(inputs=[x], retain_graph=True)
        kept = x.grad
        before.sum().backward()
        return asked, kept, x.grad

    new = t.full((2,), 3.0, dtype=t.float64)
    return [
        parted(lambda x: x.set_(new.clone())),
        parted(lambda x: setattr(x, "data", new.float())),
    ]


def gradients_of_a_leaf_that_has_another_shape_by_now(t):
    x = t.ones(3, dtype=t.float64, requires_grad=True)
    y = x * 2
    x.data = t.ones(2, 3, dtype=t.complex64)
    y.sum().backward()
    return str(x.grad.dtype).rpartition(".")[2], x.grad.flatten()[:3]


def detached_inference_tensors_count_writes(t):
    with t.inference_mode():
        x = t.ones(2)
        inner = x.detach()
    found = []
    for y in (x.detach(), x.data):
        y.mul_(2)
        found.append((y.is_inference(), y._version, y._is_view(), y.detach()._version))
    y = t.ones(2)
    y.data = x
    y.add_(1)
    try:
        inner.mul_(2)
    except RuntimeError as error:
        found.append(str(error))
    return found, y.is_inference(), y._version


def hooks_see_broadcast_losses(t):
    import warnings

    found = []
    for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"):
        for reduction in ("mean", "none"):
            x = t.ones(3, requires_grad=True)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                loss = getattr(t.nn.functional, name)(t.zeros(2, 3), x, reduction=reduction)
            loss.grad_fn.register_hook(
                lambda sent, got: found.append([None if g is None else list(g.shape) for g in sent])
            )
            loss.sum().backward()
            found.append(x.grad)
    return found


def triangular_solve_is_one_node(t):
    import warnings

    warnings.simplefilter("ignore")
    x = t.ones(2, 3, dtype=t.float64, requires_grad=True)
    a = t.tensor([[2.0, 1], [0.5, 3]], dtype=t.float64, requires_grad=True)
    found = []
    for upper in (True, False):
        for transpose in (True, False):
            solved, copy = t.triangular_solve(x, a, upper, transpose)
            for y in (solved, copy):
                x.grad = a.grad = None
                (y * y).sum().backward(retain_graph=True)
                found.append((x.grad + 0.0, a.grad, y.requires_grad, y.output_nr, y.stride()))
    return found


def quantiles_are_no_views(t):
    x = t.arange(12, dtype=t.float64).reshape(3, 4).requires_grad_()
    q = t.tensor([0.25, 0.5], dtype=t.float64)
    found = []
    for of in (q, q[0], 0.3):
        for dim in (None, 0, 1):
            for keepdim in (False, True):
                y = x.quantile(of, dim, keepdim)
                found.append((y, y.stride(), y._is_view()))
    return found


def any_hook_passes_over_what_does_not_learn(t):
    x = t.ones(2, requires_grad=True)
    y, seen = x * 1, []
    graph = t.autograd.graph
    graph.register_multi_grad_hook((y, t.ones(2)), seen.append, mode="any")
    y.sum().backward()
    try:
        graph.register_multi_grad_hook((y, t.ones(2)), print)
    except AssertionError as error:
        seen.append(str(error))
    return seen


def gradients_fit_the_shape_that_leaves_have_by_now(t):
    changes = {
        "data": lambda x, shape: setattr(x, "data", t.ones(shape)),
        "set_": lambda x, shape: x.set_(t.ones(shape)),
        "t_": lambda x, shape: x.t_(),
    }
    calls = (
        lambda x: x * 2,
        lambda x: x.sum(),
        lambda x: t.cat([x, x]),
        lambda x: x @ t.ones(3, 2),
    )
    found = []
    for change in changes.values():
        for shape in ((4,), (3,), (1, 3), (1, 2, 3), (2, 3), (3, 2)):
            for call in calls:
                for create_graph in (False, True):
                    x = t.ones(2, 3, requires_grad=True)
                    y = call(x).sum()
                    with t.no_grad():
                        change(x, shape)
                    try:
                        y.backward(create_graph=create_graph)
                    except RuntimeError as error:
                        found.append(str(error))
                    else:
                        found.append((x.grad.detach(), x.grad.stride()))
    return found
