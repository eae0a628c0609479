"""Writes to saved tensors where they are allowed; versions that users move on; inference tensors.

Views that begin elsewhere in their base are in `tests/autograd/test_mutation.py`: torch finds what
was saved by its address, and takes the new values for them.

Each function is a scenario; `t` is the library.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _written(t: Any, write: Callable[[Any], Any], save: Callable[[Any], Any]) -> Any:
    x = t.tensor([0.5, 2.0, 3.0], requires_grad=True)
    with t.autograd.graph.allow_mutation_on_saved_tensors() as kept:
        y = x.clone()
        out = save(y)
        with t.no_grad():
            write(y)
        copies = len(list(kept.cloned.items()))
        (grad,) = t.autograd.grad(out.sum(), x)
        return copies, grad, y


def _writes(t: Any) -> list[Callable[[Any], Any]]:
    ones = t.ones(3)
    rows = t.tensor([0, 2])
    return [
        lambda y: y.sin_(), lambda y: y.mul_(3), lambda y: y.add_(ones, alpha=2),
        lambda y: y.__setitem__(0, 7.0), lambda y: y.__setitem__(slice(0, 2), ones[1:]),
        lambda y: y.__setitem__(rows, 1.0), lambda y: y.__setitem__(y > 1, 1.0),
        lambda y: y.copy_(ones), lambda y: y.zero_(), lambda y: y.fill_(2.0),
        lambda y: y.index_add_(0, rows, t.ones(2)), lambda y: y.masked_fill_(y > 1, 0.0),
        lambda y: y.scatter_(0, rows, 5.0), lambda y: y.clamp_(max=1.0),
        lambda y: t.sin(ones, out=y), lambda y: t.add(ones, 1, out=y),
        lambda y: t.cumsum(ones, 0, out=y), lambda y: y[:2].mul_(2), lambda y: y.detach().add_(1),
        lambda y: y.view(3, 1).sub_(1), lambda y: y.cumsum_(0), lambda y: y.lerp_(ones, 0.5),
        lambda y: y.uniform_(1.0, 1.0), lambda y: t.nn.functional.relu(y, inplace=True),
        lambda y: y.addcmul_(ones, ones),
    ]  # fmt: skip


def every_write(t):
    return [_written(t, write, lambda y: y**2)[:2] for write in _writes(t)]


def every_write_after_a_view_was_saved(t):
    return [_written(t, write, lambda y: y[:2] ** 2)[:2] for write in _writes(t)]


def every_write_to_a_result(t):
    x = t.tensor([0.5, 2.0, 3.0], requires_grad=True)
    found = []
    for write in _writes(t):
        with t.autograd.graph.allow_mutation_on_saved_tensors():
            y = x.exp()
            with t.no_grad():
                write(y)
            found.append(t.autograd.grad(y, x, t.ones(3))[0])
    return found


def nothing_is_copied_that_is_not_saved(t):
    found = []
    with t.autograd.graph.allow_mutation_on_saved_tensors() as kept:
        x = t.ones(3, requires_grad=True).clone()
        out = x**2
        del out
        x.sin_()
        found.append(len(list(kept.cloned.items())))
        first, second = x**2, x**3
        x.sin_()
        found.append(len(list(kept.cloned.items())))
        third = x**2
        x.sin_()
        found.append(len(list(kept.cloned.items())))
        del first, second
        found.append(len(list(kept.cloned.items())))
        del third
        found.append(len(list(kept.cloned.items())))
    return found


def second_order(t):
    x = t.tensor([0.5, 2.0], requires_grad=True)
    with t.autograd.graph.allow_mutation_on_saved_tensors():
        y = x.clone()
        out = (y**3).sum()
        y.sin_()
        (slope,) = t.autograd.grad(out, x, create_graph=True)
        return slope, t.autograd.grad(slope.sum(), x)[0]


def backward_outside(t):
    x = t.ones(2, requires_grad=True)
    with t.autograd.graph.allow_mutation_on_saved_tensors():
        out = (x**2).sum()
    out.backward()


def not_nested(t):
    allow = t.autograd.graph.allow_mutation_on_saved_tensors
    with allow(), allow():
        pass


def outside_writes_are_errors_again(t):
    x = t.ones(2, requires_grad=True)
    with t.autograd.graph.allow_mutation_on_saved_tensors():
        pass
    y = x.clone()
    out = (y**2).sum()
    y.sin_()
    out.backward()


def increment_version(t):
    x, y = t.ones(2), t.ones(2)
    t.autograd.graph.increment_version(x)
    t.autograd.graph.increment_version([x, y])
    z = t.ones(2, requires_grad=True).clone()
    out = (z * z).sum()
    t.autograd.graph.increment_version(z)
    try:
        out.backward()
    except RuntimeError:
        return x._version, y._version
    return None


def increment_version_of_a_number(t):
    t.autograd.graph.increment_version(3)


def out_of_inference_tensors(t):
    with t.inference_mode():
        x = t.ones(3)
    said = []
    for write in (lambda: t.mul(t.ones(3), 2, out=x), lambda: t.cumsum(t.ones(3), 0, out=x)):
        try:
            write()
        except RuntimeError as error:
            said.append(str(error))
    with t.inference_mode():
        t.mul(t.ones(3), 2, out=x)
    return said, x


def disabled_while_hooks_are_active(t):
    graph = t.autograd.graph
    hooks = graph.saved_tensors_hooks(lambda s: s, lambda s: s)
    with hooks, graph.disable_saved_tensors_hooks("not now"):
        pass


def second_backward_through_a_write_to_a_view(t):
    writes = {
        "fill": lambda part: part.fill_(0.5),
        "mul": lambda part: part.mul_(2),
        "add": lambda part: part.add_(2),
        "zero": lambda part: part.zero_(),
    }
    found = {}
    for name, write in writes.items():
        x = t.ones(2, 3, requires_grad=True)
        y = x * 1
        write(y[0])
        y.sum().backward()
        try:
            y.sum().backward()
        except RuntimeError as error:
            found[name] = str(error)
    return found


def set_to_part_of_a_tensor(t):
    whole = t.arange(9.0).view(3, 3)
    found = [t.zeros(1).set_(whole[1:], 1, (2,)), t.zeros(1).set_(whole[1:], 0, (1, 1), (1, 1))]
    try:
        t.zeros(1).set_(whole.t(), 0, (2,))
    except RuntimeError as error:
        found.append(str(error))
    return found


def views_of_a_view_whose_base_no_longer_learns(t):
    x = t.ones(2, 3, requires_grad=True)
    view = x.view(3, 2)
    x.requires_grad_(False)
    with t.no_grad():
        parts = [*view.unbind(0), *view.chunk(2), *view.split(1), view.t()]
    return [part.requires_grad for part in parts]


def jacobian_of_complex_outputs(t):
    try:
        t.autograd.functional.jacobian(lambda y: y * t.ones(2, dtype=t.complex64), t.ones(2))
    except RuntimeError as error:
        return str(error)


def loss_of_a_tensor_without_dims(t):
    one, other = t.tensor(0.5, dtype=t.float64), t.ones(1)
    found = [t.nn.functional.l1_loss(one, other, reduction=r) for r in ("mean", "none")]
    return [(loss, loss.dtype) for loss in found]


def conjugate_views_are_set_to_nothing(t):
    z = t.ones(2, dtype=t.complex64)
    return z.is_set_to(z), z.conj().is_set_to(z.conj()), z._neg_view().is_set_to(z)
