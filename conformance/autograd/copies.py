"""Copies of tensors, and tensors that are given other memory: history, versions, what they share.

Each function is a scenario; `t` is the library.
"""

from __future__ import annotations

import copy
import io
import pickle


def _seen(tensor):
    return tensor.requires_grad, tensor.is_leaf, tensor._version, tensor.detach()


def shallow_copies(t):
    x = t.arange(3.0, dtype=t.float64).requires_grad_()
    found = []
    for value in (x, x * 2, x.detach(), (x * 2)[1:], t.nn.Parameter(t.ones(2))):
        other = copy.copy(value)
        found.append((_seen(other), other.data_ptr() == value.data_ptr(), type(other).__name__))
    return found


def deep_copies(t):
    x = t.arange(3.0).requires_grad_()
    values = (x, x.detach(), x.detach()[1:], t.nn.Parameter(t.ones(2)), t.arange(3))
    return [_seen(copy.deepcopy(value)) for value in values]


def deep_copies_of_results(t):
    return copy.deepcopy(t.ones(2, requires_grad=True) * 2)


def pickled(t):
    x = t.arange(3.0).requires_grad_()
    values = (x, x * 2, x.detach()[1:], t.nn.Parameter(t.ones(2)))
    return [_seen(pickle.loads(pickle.dumps(value))) for value in values]


def pointed_to_memory_that_learns(t):
    x = t.ones(3, requires_grad=True)
    y = t.zeros(3)
    y.set_(x * 2)
    return y.requires_grad, y.is_leaf, y.grad_fn.name(), y._version


def pointed_to_memory_that_learns_and_differentiated(t):
    x = t.ones(3, requires_grad=True)
    y = t.zeros(3)
    y.set_(x * 2)
    y.sum().backward()


def leaves_are_not_pointed_elsewhere(t):
    t.ones(3, requires_grad=True).set_(t.zeros(3))


def the_flag_of_a_result(t):
    y = t.ones(3, requires_grad=True) * 2
    y.requires_grad_()
    y.requires_grad = True


def the_flag_of_a_result_taken_off(t):
    y = t.ones(3, requires_grad=True) * 2
    y.requires_grad = False


def aliases_keep_their_memory(t):
    x, other = t.ones(3), t.zeros(3)
    alias, view = x.detach(), x[1:]
    x.data = other
    same = [a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()
            for a in (x, alias, view) for b in (other, alias)]  # fmt: skip
    alias.mul_(5)
    return same, x, alias, view, view.storage_offset()


def views_of_inference_tensors(t):
    with t.inference_mode():
        view = t.ones(3).view(1, 3)
    return view.detach_().is_inference()


def the_flag_of_an_unrecorded_view(t):
    x = t.ones(3, requires_grad=True)
    with t.no_grad():
        view = x.view(3, 1)
    view.requires_grad_(False)
    return view.requires_grad, view.is_leaf


def detached_in_inference_mode(t):
    x = t.ones(3, requires_grad=True)
    y = x * 2
    with t.inference_mode():
        x.detach_()
        y.detach_()
    return x.requires_grad, y.requires_grad, y.grad_fn.name()


def data_from_inference_mode(t):
    x = t.ones(3)
    with t.inference_mode():
        x.data = t.zeros(3)
    return x.is_inference()


def a_squeeze_of_nothing_gives_the_gradient_on(t):
    x = t.ones(2, 3, requires_grad=True)
    y = x * 1
    grad = t.ones(2, 3)
    found = t.autograd.grad(y.squeeze(0), [y], grad)
    return found[0].data_ptr() == grad.data_ptr()


def pointed_elsewhere_and_asked_for(t):
    x = t.ones(3, requires_grad=True)
    y = t.zeros(3).set_(x)
    return t.autograd.grad(y.sum(), [x])


def factories_into_leaves(t):
    found = []
    for make in (t.zeros, t.ones):
        x = t.ones(2, requires_grad=True)
        with t.no_grad():
            make(2, out=x)
        found.append((x, x.requires_grad))
    return found


def loaded(t):
    found = []
    for value in (t.ones(2), t.ones(2, requires_grad=True), t.nn.Parameter(t.ones(2))):
        stream = io.BytesIO()
        t.save(value, stream)
        stream.seek(0)
        found.append(t.load(stream)._version)
    return found


def written_by_index_where_memory_repeats(t):
    found = []
    for key in (0, t.tensor([0]), t.tensor([[True], [False]]).expand(2, 3)):
        x = t.tensor([[0.5, 1.0, 2.0]]).expand(2, 3)
        x[key] = 7.0
        found.append(x)
    found.append(t.zeros(1, 3).expand(2, 3).index_fill_(1, t.tensor([0, 2]), 2.0))
    return found


def parameters_count_the_writes_to_what_they_are_made_of(t):
    found = []
    for alias in (lambda x: x[1:], lambda x: x.detach(), lambda x: x.view(3, 1), lambda x: x):
        x = t.ones(3)
        other = alias(x)
        p = t.nn.Parameter(x)
        product = (p * p).sum()
        other.mul_(2)
        found.append((p._version, other._version, x._version))
        try:
            product.backward()
            found.append(p.grad)
        except RuntimeError as error:
            found.append(str(error)[:60])
        weight = t.ones(1, requires_grad=True)
        product = (other * weight).sum()
        with t.no_grad():
            p.mul_(3)
        try:
            product.backward()
            found.append(weight.grad)
        except RuntimeError as error:
            found.append(str(error)[:60])
    return found


def a_view_whose_base_learns_no_more(t):
    x = t.ones(3, requires_grad=True)
    view = x[1:]
    x.detach_()
    view.mul_(2)


def a_stale_view_retains_nothing(t):
    x = t.ones(2, 3, requires_grad=True)
    with t.no_grad():
        view, _ = x
    view.detach().mul_(2)
    view.retain_grad()
    return view.retains_grad


def gradients_that_are_views_may_learn(t):
    x = t.arange(3.0).requires_grad_()
    y = x.unsqueeze(-1)
    (g,) = t.autograd.grad(y, [x], y)
    before = g.requires_grad
    g.requires_grad_()
    (g * g).sum().backward()
    return before, g.grad, x.grad


def unrecorded_views_that_are_told_to_learn(t):
    x = t.arange(3.0).requires_grad_()
    found = []
    for asked in (False, True):
        with t.no_grad():
            view = x.expand(1, 3)
        if asked:
            view.requires_grad_()
        (view * view).sum().backward()
        found.append((view.requires_grad, view.is_leaf, view.grad, x.grad))
    return found


def unrecorded_views_that_learn_are_not_written_to(t):
    x = t.arange(3.0).requires_grad_()
    with t.no_grad():
        view = x.expand(1, 3)
    view.requires_grad_()
    view.mul_(2)


def unrecorded_views_of_what_learns_no_more(t):
    x = t.arange(4.0).requires_grad_()
    part = x[:2]
    x.requires_grad_(False)
    with t.no_grad():
        return part.squeeze(0).requires_grad
