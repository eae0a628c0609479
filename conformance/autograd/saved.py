"""What nodes and contexts show of what they have saved: fields of nodes, hooks given later.

Each function is a scenario; `t` is the library.
"""

from __future__ import annotations

import warnings
from typing import Any


def fields_of_a_node(t):
    x, y = t.ones(2, requires_grad=True), t.full((2,), 3.0)
    a, b, c = x * y, x.exp(), t.stack([x, x], dim=1)
    return (a.grad_fn._saved_self, a.grad_fn._saved_other, b.grad_fn._saved_result,
            c.grad_fn._saved_dim, a.grad_fn._saved_other is y)  # fmt: skip


def fields_of_a_freed_node(t):
    x = t.ones(2, requires_grad=True)
    y = x * x
    y.sum().backward()
    return y.grad_fn._saved_self


def fields_have_their_history(t):
    x = t.ones(2, requires_grad=True)
    y = x * 2
    z = y.exp()
    w = y * y
    return z.grad_fn._saved_result.grad_fn is z.grad_fn, w.grad_fn._saved_self is y


def a_field_of_a_number_is_a_copy(t):
    x = t.ones(2, requires_grad=True)
    y = x * 2
    with t.no_grad():
        y.grad_fn._saved_other.fill_(100)
    return (x.detach() * 2,)


def hooks_given_later(t):
    x = t.tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    seen = []

    def pack(s: Any) -> Any:
        seen.append((s is x, s.requires_grad, t.is_grad_enabled()))
        return s * 2

    y.grad_fn._raw_saved_self.register_hooks(pack, lambda s: s * 5)
    unpacked = y.grad_fn._saved_self
    y.sum().backward()
    return seen, unpacked, x.grad


def hooks_given_later_to_a_result(t):
    x = t.tensor([1.0, 2.0], requires_grad=True)
    y = x.exp()
    y.grad_fn._raw_saved_result.register_hooks(lambda s: s.clone(), lambda s: s)
    (first,) = t.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = t.autograd.grad(first.sum(), x)
    return first, second


def hooks_given_twice(t):
    x = t.ones(2, requires_grad=True)
    field = (x * x).grad_fn._raw_saved_self
    field.register_hooks(lambda s: s, lambda s: s)
    field.register_hooks(lambda s: s, lambda s: s)


def hooks_given_too_late(t):
    x = t.ones(2, requires_grad=True)
    y = x * x
    field = y.grad_fn._raw_saved_self
    y.sum().backward()
    field.register_hooks(lambda s: s, lambda s: s)


def hooks_for_nothing(t):
    x = t.ones(2, requires_grad=True)
    (x * 3).grad_fn._raw_saved_self.register_hooks(lambda s: s, lambda s: s)


def hooks_that_write(t):
    x = t.ones(2, requires_grad=True)
    (x * x).grad_fn._raw_saved_self.register_hooks(lambda s: s.mul_(2), lambda s: s)


def one_hook_is_not_enough(t):
    x = t.ones(2, requires_grad=True)
    (x * x).grad_fn._raw_saved_self.register_hooks(lambda s: s)


def saved_tensors_are_not_made_by_users(t):
    t.autograd.SavedTensor()


def pack_hooks_run_unrecorded(t):
    seen = []
    x = t.ones(2, requires_grad=True)
    with t.autograd.graph.saved_tensors_hooks(
        lambda s: seen.append(t.is_grad_enabled()) or s.exp(), lambda s: s.log()
    ):
        y = x.exp() * x
    y.sum().backward()
    return seen, x.grad


def _keeps(t: Any) -> Any:
    class Keeps(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, None)
            return x * 1

        @staticmethod
        def backward(ctx, g):
            kept.append(ctx)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                (x, nothing) = ctx.saved_variables
            return g * x * len(caught)

    kept: list[Any] = []
    Keeps.kept = kept
    return Keeps


def context_of_a_function(t):
    keeps = _keeps(t)
    x = t.tensor([2.0, 3.0], requires_grad=True)
    y = keeps.apply(x)
    field = y.grad_fn._raw_saved_tensors[0]
    field.register_hooks(lambda s: s * 2, lambda s: s)
    y.sum().backward(retain_graph=True)
    del y
    return x.grad, keeps.kept[0].saved_tensors


def context_after_the_graph_is_freed(t):
    keeps = _keeps(t)
    x = t.ones(2, requires_grad=True)
    y = keeps.apply(x)
    y.sum().backward()
    del y
    return keeps.kept[0].saved_tensors


def versions_of_fields(t):
    x = t.ones(2, requires_grad=True)
    y = x.exp()
    field = y.grad_fn._saved_result
    before = field._version
    with t.no_grad():
        y += 1
    return before, field._version, field


def hooks_pack_what_was_there_before_a_write(t):
    writes = (
        lambda v, w: v.addcdiv_(w, v), lambda v, w: v.mul_(v), lambda v, w: v.div_(v[:1].clone()),
        lambda v, w: v[1:].mul_(v[:1]), lambda v, w: v.pow_(v),
        lambda v, w: v.index_add_(0, t.tensor([0, 1]), v[:2].clone()),
    )  # fmt: skip
    found = []
    for write in writes:
        x = t.arange(1.0, 10.0, dtype=t.float64).reshape(3, 3).requires_grad_()
        w = (x * 0.5).sin()
        with t.autograd.graph.saved_tensors_hooks(lambda s: s.clone(), lambda s: s):
            v = x * 1.5
            write(v, w)
        (v * v).sum().backward()
        found.append(x.grad)
    return found


def a_saved_part_whose_data_was_exchanged(t):
    x = t.tensor([[1.0, 2.0, 4.0], [3.0, 1.0, 7.0]], requires_grad=True)
    deviation, mean = t.std_mean(x, -2)
    deviation.data = mean.detach()
    deviation.backward(t.ones(3))
    return x.grad


def _told(node: Any) -> dict[str, Any]:
    """What a node shows of sizes, strides and plain values, by name."""
    found = {}
    for name in dir(node):
        if name.startswith("_saved_"):
            value = getattr(node, name)
            found[name] = "tensor" if hasattr(value, "grad_fn") else value
    return found


def nodes_of_products_tell_sizes_and_strides(t):
    a, b = t.ones(2, 3, requires_grad=True), t.ones(4, 3, requires_grad=True)
    batch = t.ones(5, 2, 3, requires_grad=True)
    results = (a @ b.t(), t.mm(a, b.detach().t()), t.addmm(t.ones(4), a, b.t(), alpha=2, beta=3),
               t.addbmm(t.ones(2, 2), batch, batch.mT))  # fmt: skip
    return [_told(result.grad_fn) for result in results]


def nodes_of_resizing_tell_sizes_and_factors(t):
    x, resize = t.ones(1, 2, 4, 6, requires_grad=True), t.nn.functional.interpolate
    results = (resize(x, scale_factor=2), resize(x, size=(3, 3), mode="bilinear"),
               resize(x, scale_factor=(0.5, 2.0), mode="bicubic", align_corners=True),
               resize(x[0], scale_factor=1.5, mode="linear"), resize(x[None], size=2),
               resize(x, size=3, mode="nearest-exact"))  # fmt: skip
    return [_told(result.grad_fn) for result in results]


def nodes_of_pools_and_windows_tell_their_numbers(t):
    x, functional = t.ones(1, 2, 6, 6, requires_grad=True), t.nn.functional
    results = (
        functional.max_pool2d(x, 2, 2, padding=1, ceil_mode=True, return_indices=True)[0],
        functional.fractional_max_pool2d(x, 2, output_size=(3, 3)),
        functional.adaptive_max_pool2d(x, 3), functional.adaptive_avg_pool2d(x, 3),
        functional.avg_pool2d(x, 2, 2, padding=1), functional.unfold(x, 2),
        functional.pad(x, (1, 1, 1, 1), mode="reflect"),
        functional.conv2d(x, t.ones(1, 2, 3, 3), t.ones(1)),
        functional.conv2d(x, t.ones(1, 2, 3, 3)),
    )  # fmt: skip
    return [_told(result.grad_fn) for result in results]


def nodes_of_reductions_tell_dims_where_there_are_some(t):
    x = t.ones(2, 3, requires_grad=True)
    results = (x.sum(), x.sum(1), x.mean(), x.mean(0, keepdim=True), x.prod(), x.prod(1),
               t.nn.functional.pairwise_distance(x, x + 1).mean())  # fmt: skip
    return [_told(result.grad_fn) for result in results]


def nodes_of_writes_tell_what_they_need(t):
    x, y = t.ones(3, 4, requires_grad=True), t.ones(2, 4, requires_grad=True)
    rows, mask = t.tensor([0, 2]), t.eye(3, 4) > 0
    pair = t.ones(1, 2, requires_grad=True)
    results = (x.index_copy(0, rows, y), x.index_add(0, rows, y), x.index_put((rows,), y),
               x.put(t.tensor([[0, 5]]), pair), t.bmm(x[None], x.mT[None]),
               t.as_strided_scatter(x, t.ones(2, requires_grad=True), (2,), (1,), 0),
               t.normal(x, 1.0), t.normal(0.0, x), t.normal(x, x))  # fmt: skip
    told = [_told(result.grad_fn) for result in results]
    for one in told:
        one.pop("_saved_source", None)  # PyTorch keeps it; for its gradient nothing is needed
    return told, sorted(_told(x.masked_select(mask).grad_fn).keys() - {"_saved_self"})


def nodes_of_layers_tell_what_they_need(t):
    x = t.ones(2, 4, 2, 2, requires_grad=True)
    wanted = t.zeros(2, 2, 2, dtype=t.int64)
    results = (t.nn.functional.channel_shuffle(x, 2), t.block_diag(x[0, 0], x[0, 1]),
               t.native_layer_norm(x, (2,), None, None, 0.5)[0],
               t.fft.irfft(t.fft.rfft(x)))  # fmt: skip
    losses = (
        t.nn.functional.nll_loss(x, wanted),
        t.nn.functional.nll_loss(x[0, :, :, 0], wanted[0, 0]),
    )
    known = {"_saved_total_weight"}
    return [_told(r.grad_fn) for r in results], [_told(r.grad_fn).keys() - known for r in losses]


def nodes_of_factors_tell_how_they_were_made(t):
    x = (t.eye(3) * t.arange(1.0, 4.0)).requires_grad_()
    lu, pivots = t.linalg.lu_factor(x)
    results = (lu, t.linalg.lu(x, pivot=False)[1], t.lu_unpack(lu, pivots)[1],
               t.linalg.pinv(x))  # fmt: skip
    return [_told(result.grad_fn) for result in results]


def nodes_of_views_tell_dims_and_offsets(t):
    x = t.ones(1, 3, 1, requires_grad=True)
    results = (x.squeeze(-1), x.squeeze((0, 2)), x.as_strided((2,), (1,), 1), t.cat([x, x], -1),
               t.nn.functional.celu(x, 2.0))  # fmt: skip
    return [_told(result.grad_fn) for result in results]
