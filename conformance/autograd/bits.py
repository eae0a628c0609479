"""Conjugate and negative views: histories, writes through them, versions, what hooks see.

Each function is a scenario; `t` is the library.
"""

from __future__ import annotations


def _learning(t, *values):
    return t.tensor(values or (1 + 2j, 3 - 4j), dtype=t.complex128, requires_grad=True)


def _path(tensor):
    """The names on the way down, along the first edges."""
    names, node = [], tensor.grad_fn
    while node is not None:
        names.append(node.name())
        node = next((following for following, _ in node.next_functions if following), None)
    return names


def conjugate_is_a_view(t):
    z = _learning(t)
    c = z.conj()
    flags = c._base is z, c._is_view(), c.is_conj(), c.is_neg(), c.data_ptr() == z.data_ptr()
    return *flags, c.conj().is_conj(), c.conj()._base is z, _path(c)


def parts_of_a_conjugate(t):
    z = _learning(t)
    imaginary, real = z.conj().imag, z.conj().real
    grads = [t.autograd.grad(part.sum(), z)[0] for part in (imaginary, real)]
    return imaginary, imaginary.is_neg(), real.is_neg(), real.is_conj(), grads


def write_through_a_conjugate(t):
    z = _learning(t)
    w = z * 1
    c = w.conj()
    c.mul_(2j)
    return c, w, _path(c), w._version, t.autograd.grad((w * (1 + 1j)).real.sum(), z)


def write_through_the_imaginary_part(t):
    z = _learning(t)
    w = z * 1
    part = w.conj().imag
    part.mul_(3).add_(1)
    return part, w, part.is_neg(), t.autograd.grad((w * w).real.sum(), z)


def write_to_the_base(t):
    z = _learning(t)
    w = z * 1
    views = w.conj(), w.conj()[1:], w.conj().imag, t._neg_view(w), t._neg_view(w)[:1].real
    w.mul_(3 + 1j)
    grads = [t.autograd.grad(view.abs().sum(), z, retain_graph=True)[0] + 0 for view in views]
    return views, grads, views[0].grad_fn.name(), views[3].grad_fn.name()


def learning_values_into_a_conjugate(t):
    z = _learning(t)
    results = []
    for write in ("copy_", "mul_", "add_"):
        w = t.ones(2, dtype=t.complex128)
        getattr(w.conj(), write)(z)
        results.append((w, t.autograd.grad((w * (2 - 1j)).real.sum(), z)[0]))
    return results


def assignments_through_a_conjugate(t):
    z = _learning(t)
    w = z * 1
    w.conj()[0] = 5 + 6j
    w.conj()[t.tensor([1])] = z[:1]
    return w, t.autograd.grad((w * (2 - 1j)).real.sum(), z)


def write_to_a_view_of_a_leaf(t):
    _learning(t).conj().mul_(2)


def write_to_an_unrecorded_view(t):
    w = _learning(t) * 1
    with t.no_grad():
        c = w.conj()
    c.mul_(2)


def saved_through_a_view_and_changed(t):
    z = _learning(t)
    w = z * 1
    result = (w.conj() * z).sum()
    w.mul_(2)
    result.backward(t.tensor(1 + 0j, dtype=t.complex128))


def saved_result_of_a_write(t):
    z = _learning(t)
    w = z * 1
    c = w.conj().exp_()
    return c, t.autograd.grad((c * w).real.sum(), z)


def conjugate_as_a_leaf(t):
    z = t.tensor([1 + 2j, 3 - 1j], dtype=t.complex128)
    leaf = z.conj().detach().requires_grad_()
    (leaf * leaf[:1]).real.sum().backward()
    return leaf.is_conj(), leaf[:1]._base is leaf, leaf.grad, leaf.is_leaf


def gradients_that_are_conjugates(t):
    z = _learning(t)
    (grad,) = t.autograd.grad(z.conj().sum(), z, t.tensor(1 + 1j, dtype=t.complex128))
    return grad, grad.is_conj()


def products_with_adjoints(t):
    a, b = (_learning(t, *values).reshape(2, 2) for values in ((1, 2j, 3, 4j), (5j, 1, 2j, 3)))
    results = []
    for left, right in ((a.mH, b), (a, b.H), (a.conj(), b.conj()), (a.mT.conj(), b.mT)):
        product = left @ right
        grads = t.autograd.grad(product.abs().sum(), (a, b))
        results.append((product, grads, product.is_conj()))
    return results


def second_order(t):
    z = _learning(t)
    (grad,) = t.autograd.grad((z.conj() * z * z).real.sum(), z, create_graph=True)
    return grad, t.autograd.grad(grad.imag.sum(), z)


def hooks_on_a_conjugate(t):
    z, seen = _learning(t), []
    c = z.conj()
    c.register_hook(lambda grad: seen.append(grad.clone()))
    c.retain_grad()
    (c * 2j).real.sum().backward()
    return seen, c.grad, z.grad


def packed_conjugates(t):
    z, seen = _learning(t), []

    def pack(tensor):
        seen.append(tensor.is_conj())
        return tensor

    with t.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        result = (z.conj() * z).real.sum()
    return seen, t.autograd.grad(result, z)


def gradcheck_of_views(t):
    x = _learning(t)
    functions = (
        lambda z: z.conj() * z,
        lambda z: z.conj().imag * 2,
        lambda z: t._neg_view(z).real * z,
        lambda z: (z * 1).conj().mul_(z),
    )
    leaf = t.tensor([1 + 2j, 3 - 1j], dtype=t.complex128).conj().requires_grad_()
    checked = [t.autograd.gradcheck(lambda z: z * z, (leaf,), fast_mode=fast) for fast in (0, 1)]
    return checked, [t.autograd.gradcheck(function, (x,)) for function in functions]


def versions_of_a_family(t):
    z = t.zeros(2, dtype=t.complex64)
    c = z.conj()
    part = c.imag
    c.add_(1)
    part.mul_(2)
    t.add(z, 1, out=c)
    c[0] = 2
    return z._version, c._version, part._version, z


def inference_and_detached(t):
    z = _learning(t)
    with t.inference_mode():
        c = z.conj()
        inside = c.is_conj(), c.requires_grad
    outside = z.conj().detach(), z.conj().data
    return inside, [alias.is_conj() for alias in outside], z.detach().conj()._is_view()
