"""Writes in place, views of what is written, versions of what is saved.

Each function is a scenario; `t` is the library.
"""

from __future__ import annotations


def saved_changed(t):
    x = t.ones(2, requires_grad=True)
    y = x * 2
    z = y * y
    y.add_(1)
    z.sum().backward()


def saved_result_changed(t):
    x = t.ones(2, requires_grad=True)
    y = x.exp()
    y.mul_(2)
    y.sum().backward()


def saved_leaf_changed(t):
    x, w = t.ones(2, requires_grad=True), t.ones(2)
    y = x * w
    w.add_(1)
    y.sum().backward()


def saved_view_changed(t):
    x, w = t.ones(2, requires_grad=True), t.ones(4)
    y = x * w[:2]
    w[2:].add_(1)
    y.sum().backward()


def unsaved_changed(t):
    x = t.ones(2, requires_grad=True)
    y = x * 2
    z = y + 1
    y.add_(1)
    (z + y).sum().backward()
    return x.grad


def in_place_chain(t):
    x = t.tensor([1.0, 2.0], requires_grad=True)
    y = x.clone()
    y.mul_(3).add_(x).pow_(2)
    y.sum().backward()
    return x.grad, y.grad_fn, y._version


def write_to_view(t):
    x = t.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 1
    y[1:].mul_(10)
    y.sum().backward()
    return x.grad, y.grad_fn, y


def view_sees_write_to_base(t):
    x = t.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 1
    v = y[1:]
    y.mul_(10)
    v.sum().backward()
    return v.grad_fn, x.grad


def copy_into_no_grad_base(t):
    x = t.tensor([1.0, 2.0], requires_grad=True)
    base = t.zeros(4)
    base[1:3].copy_(x)
    base.mul_(2)
    base.sum().backward()
    return base.grad_fn, base.is_leaf, x.grad


def multi_view_write(t):
    a, b = (t.ones(4, requires_grad=True) * 1).split(2)
    a.mul_(2)


def unbind_write(t):
    a, b = (t.ones(2, 2, requires_grad=True) * 1).unbind()
    a.mul_(2)


def multi_view_stale(t):
    base = t.ones(4, requires_grad=True) * 1
    a, b = base.split(2)
    base.mul_(2)
    return a.grad_fn


def no_grad_view_write(t):
    base = t.ones(4, requires_grad=True) * 1
    with t.no_grad():
        v = base[:2]
    v.mul_(2)


def view_flags(t):
    x = t.ones(2, 3, requires_grad=True)
    v = x.t()[0]
    w = v.detach()
    return v._is_view(), v._base is x, w._is_view(), w._base is None, x.view(6).grad_fn


def set_item_with_history(t):
    x = t.tensor([1.0, 2.0], requires_grad=True)
    y = t.zeros(2, 2)
    y[0] = x
    y[1, 0] = x[0] * 2
    (y * t.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
    return x.grad, y.grad_fn


def in_place_dtype(t):
    t.ones(2, dtype=t.int64).add_(1.5)


def in_place_broadcast(t):
    t.ones(2).add_(t.ones(3, 2))


def in_place_on_expanded(t):
    t.ones(1).expand(3).add_(1)


def in_place_overlap(t):
    x = t.ones(4)
    x[1:].copy_(x[:-1])


def version_counts(t):
    x = t.ones(3)
    v = x[:2]
    v.add_(1)
    x.zero_()
    x[0] = 1
    y = x.data
    y.add_(1)
    return x._version, v._version, y._version


def real_and_complex_views_of_one_memory(t):
    found = []

    def learning(*values, dtype):
        return t.tensor(values, dtype=dtype, requires_grad=True)

    x = learning(1.0, 2.0, dtype=t.float64)
    y = x * 1
    t.view_as_complex(y.view(1, 2)).mul_(3j)
    y.sum().backward()
    found.append(x.grad)
    x = learning(1 + 2j, 2 - 1j, dtype=t.complex128)
    y = x * 1
    y.real.mul_(2)
    y.imag[1:].mul_(5.0)
    y.real.pow_(2)
    (y.abs() ** 2).sum().backward()
    found.append(x.grad)
    x = learning(1 + 2j, 2 - 1j, dtype=t.complex128)
    y = x * 1
    pairs, parts = t.view_as_real(y), y.imag
    y[1:].mul_(2j)
    ((pairs * t.tensor([[1.0, 2], [3, 4]])).sum() + parts.sum()).backward()
    found.append(x.grad)
    return found


def leaves_that_are_views(t):
    found = []
    with t.no_grad():
        a, b = t.arange(4.0).split(2)
        c = t.arange(4.0)[1:]
    for leaf in (a, c):
        leaf.requires_grad_()
        leaf.register_hook(lambda grad: found.append(grad.tolist()))
        (leaf * leaf).sum().backward()
        found.append((leaf.grad, leaf.is_leaf))
    return found, b.requires_grad


def around_a_part_without_elements(t):
    x = t.arange(3.0).requires_grad_()
    v = x[0:0].as_strided((2,), (1,), 1)
    v.sum().backward()
    return v, x.grad


def views_made_in_functions_of_what_does_not_learn(t):
    class View(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.view_as(x)

        @staticmethod
        def backward(ctx, g):
            return g

    said = []
    b = t.ones(1, requires_grad=True)
    for write in (lambda v: v.add_(b), lambda v: v.copy_(b)):
        try:
            write(View.apply(t.ones(1, 2)))
        except RuntimeError as error:
            said.append(str(error))
    return said
