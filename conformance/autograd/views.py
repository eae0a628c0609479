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


def conjugates_within_real_memory_that_are_written_to(t):
    views = (
        lambda y: t.view_as_complex(y).conj(),
        lambda y: t.view_as_complex(y).conj()[:1],
        lambda y: t.view_as_complex(y).conj().imag,
        lambda y: t._neg_view(t.view_as_complex(y).conj()),
        lambda y: t.view_as_complex(y).mT.conj().conj(),
    )
    found = []
    for view in views:
        for write in (lambda v: v.exp_(), lambda v: v.mul_(v.detach() + 2), lambda v: v.sin_()):
            x = (t.arange(1.0, 9.0, dtype=t.float64).reshape(2, 2, 2) / 7 + 0.03).requires_grad_()
            y = x * 1
            v = view(y)
            write(v)
            weights = t.arange(8.0, dtype=t.float64).reshape(2, 2, 2)
            (grad,) = t.autograd.grad((y**2 * weights).sum(), x, create_graph=True)
            found.append((v.resolve_conj().resolve_neg(), grad))
            found.append(t.autograd.grad(grad.sin().sum(), x))
    return found


def names_of_views_that_were_made_again(t):
    def of_reals(learns):
        return t.ones(2, 2, 2, dtype=t.float64, requires_grad=learns)

    def of_complex(learns):
        return t.ones(2, 2, dtype=t.complex128, requires_grad=learns)

    made = (
        (of_complex, lambda y: t.view_as_real(y)), (of_complex, lambda y: t.view_as_real(y)[1:]),
        (of_complex, lambda y: t.view_as_real(y[1:])), (of_complex, lambda y: y.conj()),
        (of_complex, lambda y: y.conj()[1:]), (of_complex, lambda y: y[1:].conj()),
        (of_complex, lambda y: y.conj().conj()), (of_complex, lambda y: y.mH),
        (of_complex, lambda y: y.imag), (of_complex, lambda y: t._neg_view(y)),
        (of_complex, lambda y: t.view_as_complex(t.view_as_real(y))),
        (of_reals, lambda y: t.view_as_complex(y)), (of_reals, lambda y: t.view_as_complex(y)[1:]),
        (of_reals, lambda y: t.view_as_complex(y).conj()), (of_reals, lambda y: y[1:, 1]),
        (of_reals, lambda y: t.view_as_complex(y[1:]).real),
    )  # fmt: skip
    fields = ("_saved_size", "_saved_stride", "_saved_storage_offset")
    found = []
    for memory, view in made:
        for change in (lambda y, v: y.mul_(2), lambda y, v: v.mul_(2)):
            y = memory(True) * 1
            v = view(y)
            change(y, v)
            node = v.grad_fn
            found.append((node.name(), [getattr(node, field, None) for field in fields]))
    return found
