"""What history and gradients tensors have after less common things were done to them.

Each function is a scenario; `t` is the library.
"""

from __future__ import annotations


def _squared(t):
    class Squared(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x.clone())
            ctx.mark_dirty(x)
            return x.mul_(x)

        @staticmethod
        def backward(ctx, grad):
            return grad * 2 * ctx.saved_tensors[0]

    return Squared


def gradients_of_what_a_function_has_written_to(t):
    found = []
    for part in (slice(None), slice(1, None)):
        x = t.arange(1.0, 4.0).requires_grad_()
        v = (x * 1)[part]
        v.sum().backward(retain_graph=True, inputs=[v])
        found.append((v.grad, v.retains_grad))
        w = _squared(t).apply(v)
        found.append((v.grad, v.retains_grad, w is v))
        (w * 3).sum().backward()
        found.append((v.grad, x.grad))
    leaf = t.ones(3)
    leaf.grad = t.ones(3)
    _squared(t).apply(leaf)
    return found, leaf.grad


def views_of_what_was_given_other_memory(t):
    found = []
    for view in (lambda y: y.t(), lambda y: y[1:], lambda y: y[:, 1]):
        x = t.arange(6.0).reshape(2, 3).requires_grad_()
        v = view(x)
        with t.no_grad():
            x.set_(t.zeros(4, 3)[1:3])
        (v * v).sum().backward()
        found.append((v, v.grad_fn, x.grad))
    return found


def casts_of_stale_views_to_integers(t):
    first, second = (t.ones(4, requires_grad=True) * 1).split(2)
    first.detach().mul_(2)
    casts = second.to(t.int64), second.long(), second.type(t.int32), second.to(t.bool)
    return casts, second.to(t.float64)


def leaves_that_left_while_hooks_kept_them(t):
    found = []
    for hooked in (False, True):
        x = t.arange(3.0).requires_grad_()
        hooks = t.autograd.graph.saved_tensors_hooks(lambda s: s, lambda s: s)
        if hooked:
            with hooks:
                y = x * x
        else:
            y = x * x
        x.detach_()
        found.append((y.grad_fn._saved_self.requires_grad, y.requires_grad))
    return found


def writes_of_a_leaf_into_its_own_memory_under_hooks(t):
    x = t.arange(3.0).requires_grad_()
    d = x.detach()
    with t.autograd.graph.saved_tensors_hooks(lambda s: s, lambda s: s):
        d.mul_(x)
    return d.requires_grad, d.grad_fn


def nothing_arrives_where_there_is_no_formula(t):
    class Half(t.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x + y

        @staticmethod
        def backward(ctx, grad):
            return grad, None

    y = t.ones(2, requires_grad=True) * 1
    y.set_(y, 0, (1,), (1,))
    Half.apply(t.ones(1, requires_grad=True), y).sum().backward()


def softmax_of_blocked_rows_through_its_result(t):
    low = float("-inf")
    x = t.tensor([[0.5, 1, 2], [low, low, low], [low, 1, low]], requires_grad=True)
    y = t._safe_softmax(x, 1)
    (grad,) = t.autograd.grad(y, x, y, create_graph=True)
    return y, grad, t.autograd.grad(grad, [y, x], grad), y.grad_fn


def integrals_over_positions_of_more_dims(t):
    found = []
    for shape in ((2,), (2, 3), (1, 3), (2, 1), (0,)):
        y = t.arange(2.0).requires_grad_()
        x = t.arange(float(len(t.ones(shape).reshape(-1)))).reshape(shape) * 1.5
        for name in ("trapezoid", "cumulative_trapezoid"):
            try:
                found.append(getattr(t, name)(y, x))
            except RuntimeError as error:
                found.append(str(error))
    return found, t.trapezoid(t.ones(2, 0), t.ones(3))


def sums_over_letters_of_a_single_element(t):
    x = t.arange(6.0, dtype=t.float64).reshape(2, 3).requires_grad_()
    one = t.full((1, 1), 2.0, requires_grad=True)
    found = [t.einsum(to, one, x) for to in ("ij,ij->i", "ij,ij->", "ij,ij->j", "ij,jk->ik")]
    return found, [t.autograd.grad(y.sum(), (one, x)) for y in found]


def covariance_of_nothing(t):
    empty = (t.zeros(*shape, requires_grad=True) for shape in ((0,), (0, 3), (3, 0)))
    found = [(x.cov(), x.corrcoef()) for x in empty]
    return found, [pair[0].requires_grad for pair in found]


def factors_of_nothing_without_pivots(t):
    a = t.zeros(2, 0, 3)
    return t.linalg.lu_factor(a, pivot=False), t.linalg.lu(a, pivot=False)


def sums_with_a_factor(t):
    found = []
    x = t.tensor([1.0, 2.0], requires_grad=True)
    y = t.tensor([3.0, 4.0], requires_grad=True)
    c = t.tensor([1 + 2j, 3j], dtype=t.complex64, requires_grad=True)
    written = x * 1
    written[:1].add_(y[:1], alpha=3)
    sums = (
        t.add(x, y, alpha=2), t.sub(x, y, alpha=-2.5), t.add(x, t.ones(2), alpha=3),
        t.add(t.ones(2), x, alpha=3), x.clone().add_(y, alpha=3), t.sub(x, c, alpha=2j), written,
        t.add(x, x, alpha=5), t.add(x, t.ones(2, 2, requires_grad=True), alpha=4), x - y, x + 1,
    )  # fmt: skip
    for z in sums:
        node = z.grad_fn
        seen = []
        node.register_hook(lambda into, out, seen=seen: seen.extend([*into, *out]))
        names = [n and n.name() for n, _ in node.next_functions]
        grads = t.autograd.grad((z.abs() ** 2).sum(), (x, y, c), create_graph=True,
                                allow_unused=True)  # fmt: skip
        total = sum((g.abs() ** 2).sum() for g in grads if g is not None)
        again = t.autograd.grad(total, (x, y, c), allow_unused=True)
        found.append((node.name(), getattr(node, "_saved_alpha", None), names, grads, again, seen))
    return found


def numbers_beside_halves_are_not_packed(t):
    found = []
    for dtype in (t.float16, t.bfloat16, t.float32, t.complex64):
        x = t.ones(2, dtype=dtype, requires_grad=True)
        packed = []
        hooks = t.autograd.graph.saved_tensors_hooks(
            lambda s, packed=packed: packed.append(list(s.shape)) or s, lambda s: s
        )
        with hooks:
            for compute in (lambda y: y * 2, lambda y: y / 3.0, lambda y: y.mul_(2.5)):
                compute(x + 0)
        found.append(packed)
        z = t.utils.checkpoint.checkpoint(lambda y: y.exp().mul_(2), x, use_reentrant=False)
        z.backward(z.detach())
        found.append(x.grad)
    return found


def plain_values_that_nodes_show(t):
    x = t.ones(3, 4, requires_grad=True)
    results = (
        x.select(-1, -2), x.split(2)[0], x.split([1, 2])[1], x.unbind(-1)[0], x.cumsum(-1),
        x.transpose(-1, 0), x.tril(-1), x.diagonal(-1), t.div(x, x, rounding_mode="floor"),
        t.nn.functional.gelu(x), t.nn.functional.gelu(x, approximate="tanh"), t.logit(x),
    )  # fmt: skip
    found = []
    for y in results:
        node = y.grad_fn
        fields = [name for name in sorted(dir(node)) if name.startswith("_saved_")]
        found.append((node.name(), [(f, getattr(node, f)) for f in fields]))
    return found


def numbers_of_outputs(t):
    class Indexed(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.index = 7
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    x = (t.arange(6.0).reshape(2, 3) ** 2 + 1).requires_grad_()
    factors = t.linalg.lu(x)
    unpacked = t.lu_unpack(*t.linalg.lu_factor(x))
    several = factors, unpacked, t.linalg.svd(x), t.linalg.slogdet(x[:, :2]), x.max(0)
    numbers = [[part.output_nr for part in parts] for parts in several]
    edge = t.autograd.graph.get_gradient_edge(factors[2])
    (grad,) = t.autograd.grad(edge, x, t.ones(2, 3))
    behind = (factors[1] * 1).grad_fn.next_functions[0][1]
    return numbers, edge.output_nr, grad, behind, Indexed.apply(x).output_nr
