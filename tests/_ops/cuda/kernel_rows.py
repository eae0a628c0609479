"""Facts about rows with kernels of our own, on the emulated GPU: what they give is what the CPU's
rows give, which the conformance tests compare with PyTorch; none of it is computed by the host.

`test_kernel_rows` runs them in a process of their own.
"""

from __future__ import annotations

import json
import operator
import sys
import traceback
import warnings
from collections.abc import Callable
from functools import reduce
from typing import Any

import flambeau as torch
from flambeau._ops.cuda import host
from flambeau.nn import functional as F
from tests._compiler.gpu.short_bits import units

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
TYPES = (*FLOATS, torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.bool)
TOLERANCE = {torch.float16: 1e-2, torch.bfloat16: 4e-2, torch.float32: 1e-4}


def drawn(dtype: Any, *shape: int) -> Any:
    """Standard normal numbers, times 3."""
    return (torch.randn(shape) * 3).to(dtype)


def compare(expected: Any, have: Any, exact: bool) -> None:
    assert (expected.shape, expected.dtype) == (have.shape, have.dtype)
    assert torch.equal(expected.isnan(), have.isnan())
    a, b = (torch.nan_to_num(t.double(), 0, 1e30, -1e30) for t in (expected, have))
    if not a.numel():
        return
    tolerance = 0 if exact else TOLERANCE.get(expected.dtype, 1e-9)
    error = float((a - b).abs().max())
    assert error <= tolerance * max(1.0, float(a.abs().max())), error


def same(function: Callable[..., Any], *values: Any, exact: bool = False) -> None:
    """The function gives the same on both, and the host is not asked."""
    wanted = function(*values)
    host.CALLS.clear()
    for _ in range(2):  # the second time, what is known of the first call is made use of
        found = function(*[v.cuda() if isinstance(v, torch.Tensor) else v for v in values])
    assert not host.CALLS, f"computed by the host: {dict(host.CALLS)}"
    pairs = zip(*[r if isinstance(r, tuple) else (r,) for r in (wanted, found)], strict=True)
    for expected, have in pairs:
        assert expected.stride() == have.stride(), (expected.stride(), have.stride())
        compare(expected, have.cpu(), exact)


def with_gradients(function: Callable[..., Any], *values: Any) -> None:
    """The same of a function and of its gradients."""

    def both(*given: Any) -> Any:
        leaves = [v.detach().clone().requires_grad_() if is_float(v) else v for v in given]
        results = function(*leaves)
        results = results if isinstance(results, tuple) else (results,)
        reduce(operator.add, [(r * weights_of(r)).sum() for r in results]).backward()
        grads = [v.grad for v in leaves if is_float(v)]
        return tuple(r.detach() for r in results) + tuple(g for g in grads if g is not None)

    same(both, *values)


def is_float(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def weights_of(result: Any) -> Any:
    """Other numbers for each element, the same on all devices."""
    line = torch.linspace(-1, 1, result.numel()).reshape(result.shape)
    return line.to(result.dtype).to(result.device)


# ---- elements


def functions_have_the_bits_of_the_cpu() -> None:
    names = ("exp log log1p expm1 sin cos tan atan sqrt rsqrt reciprocal floor ceil trunc "
             "neg abs sign square tanh sigmoid relu erf exp2 log2 sinh cosh isnan")  # fmt: skip
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        x = torch.cat([drawn(dtype, 5000), torch.tensor([0.0, -0.0, float("inf"), float("nan")])
                       .to(dtype)])  # fmt: skip
        if dtype is torch.float16:
            _within_units([getattr(torch, name) for name in names.split()], x)
            _within_units([F.silu, F.softplus, F.elu, F.hardswish, F.mish, F.leaky_relu], x)
            continue
        for name in names.split():
            same(getattr(torch, name), x, exact=True)
        for function in (F.gelu, F.silu, F.softplus, F.elu, F.hardswish, F.mish, F.leaky_relu):
            short = function is F.gelu and dtype is torch.bfloat16
            same(function, x, exact=not short)


def angles_of_halves_are_those_of_the_cpu() -> None:
    ends = torch.tensor([0.0, -0.0, float("inf"), -float("inf"), float("nan"), 1.0, -1.0, 1e-7])
    for dtype in (torch.float16, torch.bfloat16):
        bits = torch.randint(-(1 << 15), 1 << 15, (2, 20000)).to(torch.int16).view(dtype)
        y = torch.cat([bits[0], ends.to(dtype).repeat_interleave(8)])
        x = torch.cat([bits[1], ends.to(dtype).repeat(8)])
        _within_units([lambda y, x=x: torch.atan2(y, x.to(y.device))], y)


def _within_units(functions: list[Callable[..., Any]], x: Any) -> None:
    """Short forms differ by a unit of the last place at most, and are no work for the host."""
    for function in functions:
        host.CALLS.clear()
        found = function(x.cuda()).cpu()
        assert not host.CALLS
        expected = function(x)
        assert torch.equal(found.isnan(), expected.isnan())
        if found.dtype is torch.bool:
            assert torch.equal(found, expected)
        else:
            assert units(found, expected).max() <= 1, function.__name__


def short_forms_have_the_bits_of_the_cpu_for_all_numbers() -> None:
    x = torch.arange(-(1 << 15), 1 << 15).to(torch.int16).view(torch.bfloat16)
    for name in ("exp", "sin", "cos", "tanh", "log", "sigmoid", "erf"):
        same(lambda x, n=name: getattr(torch, n)(x).view(torch.int16).where(~x.isnan(), 0), x,
             exact=True)  # fmt: skip
    same(lambda x: F.silu(x).view(torch.int16).where(~x.isnan(), 0), x[x.isfinite()], exact=True)


def whole_numbers_are_divided() -> None:
    for dtype in (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64):
        low = 0 if dtype is torch.uint8 else -128
        a, b = (torch.randint(low, 128, (500,)).to(dtype) for _ in range(2))
        b[b == 0] = 3
        if low:
            a[0], b[0] = torch.iinfo(dtype).min, -1
        for function in (torch.floor_divide, torch.remainder, torch.fmod):
            same(function, a, b, exact=True)
        same(lambda a, b: torch.div(a, b, rounding_mode="trunc"), a, b, exact=True)
        same(lambda a: a // 3 + a % 5, a, exact=True)
        nothing = torch.zeros_like(a)
        quotient, rest = a.cuda() // nothing.cuda(), a.cuda() % nothing.cuda()
        assert torch.equal(quotient.cpu(), nothing - 1)
        assert torch.equal(rest.cpu(), a)


def operands_of_all_types_meet() -> None:
    for left in TYPES:
        for right in TYPES:
            a, b = drawn(left, 7, 5), drawn(right, 5)
            same(torch.add, a, b, exact=True)
            same(torch.mul, a, b, exact=True)
            same(torch.eq, a, b, exact=True)
            same(torch.maximum, a, b, exact=True)


def operands_lie_anywhere() -> None:
    for dtype in (torch.float32, torch.bfloat16, torch.int64):
        x = drawn(dtype, 6, 8, 10)
        same(lambda x: x.transpose(0, 2) + x.permute(2, 0, 1).transpose(1, 2), x, exact=True)
        same(lambda x: x[1:, ::2, 3:] * x[:-1, 1::2, :7], x, exact=True)
        same(lambda x: x[:, :, None] - x[:, 0][:, None, None], x, exact=True)
        same(lambda x: x[0, 0, 1:9] + x[0, 1, 0:8], x, exact=True)
        same(lambda x: x.expand(3, 6, 8, 10) * x, x, exact=True)
        same(lambda x: x.flip(1) + x, x, exact=True)


def numbers_stand_beside_tensors() -> None:
    for dtype in TYPES[:-1]:
        x = drawn(dtype, 37)
        same(lambda x: x + 2, x, exact=True)
        same(lambda x: x * 1.5, x, exact=True)
        same(lambda x: 3 - x, x, exact=True)
        same(lambda x: torch.add(x, x, alpha=2), x, exact=True)
        same(lambda x: x > 1, x, exact=True)
    x = drawn(torch.float32, 300).abs() + 0.1
    for power in (2, 3, -1, 0.5, -0.5, 1.7, 0):
        same(lambda x, p=power: x**p, x)


def writes_in_place() -> None:
    def write(x: Any) -> Any:
        x = x.clone()
        x += 1
        x[:, ::2].mul_(3)
        x[1:3].copy_(x[3:5].clone())
        x.t()[2:4].fill_(7)
        x.masked_fill_(x > 4, -1)
        x[0].zero_()
        return x.clamp_(-2, 5)

    for dtype in (torch.float32, torch.float16, torch.int32):
        same(write, drawn(dtype, 8, 6), exact=True)


def casts_and_copies() -> None:
    for left in TYPES:
        x = (torch.rand(33, 17) * 9).to(left)
        for right in TYPES:
            same(lambda x, t=right: x.to(t), x, exact=True)
            same(lambda x, t=right: x.t().to(t), x, exact=True)
        same(lambda x: x.t().contiguous(), x, exact=True)
    x = drawn(torch.float32, 2, 70, 3, 90)
    for order in ((0, 3, 2, 1), (3, 1, 0, 2), (1, 3, 0, 2), (2, 0, 3, 1)):
        same(lambda x, o=order: x.permute(o).contiguous(), x, exact=True)
        same(lambda x, o=order: x.half().permute(o).contiguous(), x, exact=True)
    same(lambda x: x.to(memory_format=torch.channels_last), x, exact=True)


def choices() -> None:
    for dtype in TYPES:
        x, y = drawn(dtype, 9, 11), drawn(dtype, 11)
        same(lambda x, y: torch.where(x > 0, x, y), x, y, exact=True)
        same(lambda x: x.masked_fill(x > 0, 1), x, exact=True)
    same(lambda x: torch.where(x > 0, x, 0.0), drawn(torch.float32, 9), exact=True)


# ---- rows


def reductions_over_all_dims() -> None:
    for shape, dims in (((7, 33), (None, 0, 1)), ((4, 5, 6, 7), (None, 0, 1, 2, (0, 2), (1, 3))),
                        ((3, 20000), (None, 0, 1)), ((70000,), (None, 0))):  # fmt: skip
        for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.bool):
            for x in (drawn(dtype, *shape), drawn(dtype, *shape).transpose(0, -1)):
                for dim in dims:
                    _reductions(x, dim)


def scans_of_long_rows() -> None:
    n = 70001  # in parts, whose lengths are rounded
    same(lambda x: x.cumsum(0), torch.rand(n) > 0.5, exact=True)
    same(lambda x: x.cumsum(1), torch.randint(-9, 9, (2, n)), exact=True)
    same(lambda x: x.sum(0), torch.randint(-9, 9, (n,)).to(torch.int8), exact=True)


def _reductions(x: Any, dim: Any) -> None:
    same(lambda x: x.sum(dim), x)
    same(lambda x: (x > 4).any(dim), x, exact=True)
    same(lambda x: (x > -8).all(dim), x, exact=True)
    same(lambda x: x.amax(dim if dim is not None else ()), x, exact=True)
    if not isinstance(dim, tuple) and x.dtype is not torch.bool:
        same(lambda x: x.argmax(dim), x, exact=True)
        same(lambda x: x.argmin(dim), x, exact=True)
        if dim is not None:
            same(lambda x: tuple(x.max(dim)), x, exact=True)
            same(lambda x: x.cumsum(dim), x)
    if x.is_floating_point():
        same(lambda x: x.mean(dim, keepdim=True), x)
        same(lambda x: x.var(dim), x)
        same(lambda x: x.std(dim, correction=0), x)
        same(lambda x: torch.linalg.vector_norm(x, dim=dim), x)
        same(lambda x: torch.linalg.vector_norm(x, ord=1, dim=dim), x)
        if dim is not None:
            same(lambda x: x.logsumexp(dim), x)


def softmax_of_halves_in_double_precision() -> None:
    for dtype in (torch.float16, torch.bfloat16):
        for shape, dim in (((3, 5), -1), ((2, 5000), -1), ((2, 70000), -1), ((40, 6), 0)):
            x = drawn(dtype, *shape)
            same(lambda x, d=dim: x.softmax(d, torch.float64), x)
            same(lambda x, d=dim: x.log_softmax(d, torch.float64), x)


def numbers_of_elements_become_places() -> None:
    x = torch.randint(0, 120, (3, 7))
    same(lambda x: torch.unravel_index(x, (4, 5, 6)), x, exact=True)


def softmax_and_norms() -> None:
    for dtype in FLOATS:
        for shape in ((6, 10), (3, 5, 77), (130, 64), (4, 1000), (2, 9001)):
            x, w, b = drawn(dtype, *shape), drawn(dtype, shape[-1]), drawn(dtype, shape[-1])
            for dim in (-1, 0):
                with_gradients(lambda x, d=dim: x.softmax(d), x)
                with_gradients(lambda x, d=dim: x.log_softmax(d), x)
            with_gradients(lambda x, w, b: F.layer_norm(x, x.shape[-1:], w, b), x, w, b)
            with_gradients(lambda x: F.layer_norm(x, x.shape[-1:]), x)
            if dtype in (torch.float32, torch.float64):
                with_gradients(lambda x, w: F.rms_norm(x, x.shape[-1:], w), x, w)


def long_rows() -> None:
    for dtype in (torch.float32, torch.bfloat16):
        for n in (40008, 40001):  # rows begin at multiples of 16 bytes, or anywhere
            x, w, b = drawn(dtype, 2, n) + 5, drawn(dtype, n), drawn(dtype, n)
            same(lambda x: x.softmax(-1), x)
            same(lambda x, w, b: F.layer_norm(x, x.shape[-1:], w, b), x, w, b)
            same(F.cross_entropy, x, torch.tensor([n - 1, 7]))
        same(lambda x: x.log_softmax(-1), x)
        same(lambda x, w: F.layer_norm(x, x.shape[-1:], w), x, w)
        same(lambda x: F.layer_norm(x, x.shape[-1:]), x)


def masks() -> None:
    def written(x: Any, at: Any, by: Any) -> Any:
        x = x.clone()
        x[at] = by
        return x

    places = torch.tensor([4, 0, 3])
    for dtype in (torch.float32, torch.bfloat16, torch.int64):
        x = drawn(dtype, 6, 9, 5)
        for shape in ((6, 9, 5), (6, 9), (6,)):
            m = torch.rand(shape) > 0.6
            m[0] = True
            same(lambda x, m: x[m], x, m, exact=True)
            same(lambda x, m: written(x, m, 1), x, m, exact=True)
            same(lambda x, m: written(x, m, x[m].flip(0)), x, m, exact=True)
            same(lambda m: (m.nonzero(), *torch.where(m)), m, exact=True)
        same(lambda x, m: x[:, m], x, torch.rand(9, 5) > 0.4, exact=True)
        same(lambda x, m: x.masked_select(m), x, torch.rand(6, 9, 5) > 0.5, exact=True)
        same(lambda x, t: written(x, t, 1), x, places, exact=True)
        same(lambda x, t: written(x, t, x[:3] == x[:3]), x.bool(), places, exact=True)
        same(lambda x, t: written(x, (slice(None), t), x[:, 2:5].clone()), x, places, exact=True)
        same(lambda x, t: written(x, (t, t), x[0, :3].clone()), x, places, exact=True)
    with_gradients(lambda x, m: x[m] * 2, drawn(torch.float32, 6, 9), torch.rand(6, 9) > 0.5)
    m = torch.rand(400, 300) > 0.5
    same(lambda x, m: x[m], drawn(torch.float32, 400, 300), m, exact=True)


def sorting() -> None:
    for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.int8, torch.uint8,
                  torch.int32):  # fmt: skip
        x = drawn(torch.float32, 5, 77).abs().to(dtype)
        for dim in (0, 1):
            for down in (False, True):
                same(lambda x, d=dim, e=down: tuple(x.sort(d, e, stable=True)), x, exact=True)
    x = torch.randperm(15000).reshape(3, 5000).float() - 7000
    x[0, 5], x[1, 7], x[1, 9], x[2, 3] = float("nan"), -0.0, 0.0, float("inf")
    same(lambda x: tuple(x.sort(-1)), x, exact=True)
    same(lambda x: tuple(x.topk(7)) + tuple(x.topk(7, largest=False)), x, exact=True)
    with_gradients(lambda x: x.sort(-1)[0] + x.topk(50)[0], torch.randn(3, 50))


def losses() -> None:
    for dtype in FLOATS:
        for shape in ((6, 10), (130, 64), (3, 5000), (3, 5003)):
            x, y = drawn(dtype, *shape), drawn(dtype, *shape)
            t = torch.randint(0, shape[1], shape[:1])
            t[1] = -100
            for how in ("none", "mean", "sum"):
                with_gradients(lambda x, y, r=how: F.mse_loss(x, y, reduction=r), x, y)
                with_gradients(lambda x, y, r=how: F.smooth_l1_loss(x, y, reduction=r), x, y)
                with_gradients(lambda x, y, r=how: F.binary_cross_entropy_with_logits(
                    x, y.detach().sigmoid(), reduction=r), x, y)  # fmt: skip
                with_gradients(lambda x, y, r=how: F.binary_cross_entropy(
                    x.sigmoid(), y.detach().sigmoid(), reduction=r), x, y)  # fmt: skip
                with_gradients(lambda x, y, r=how: F.soft_margin_loss(
                    x, y.detach().sign(), reduction=r), x, y)  # fmt: skip
                with_gradients(lambda x, t, r=how: F.cross_entropy(x, t, reduction=r), x, t)
                with_gradients(lambda x, t, r=how: F.nll_loss(x, t, reduction=r), x, t)
        x, t = drawn(dtype, 3, 5, 7), torch.randint(0, 5, (3, 7))
        with_gradients(F.cross_entropy, x, t)


def losses_that_are_not_row_major() -> None:
    """They and their gradients lie in memory as the CPU's do."""
    for first, second in ((1, 0), (0, 1), (1, 1)):
        x, y = (torch.randn(6, 10) if k == 0 else torch.randn(10, 6).t() for k in (first, second))
        x = x.sigmoid()
        for loss in (F.mse_loss, F.smooth_l1_loss, F.huber_loss, F.binary_cross_entropy,
                     F.soft_margin_loss, F.binary_cross_entropy_with_logits):  # fmt: skip
            for how in ("none", "mean", "sum"):
                with_gradients(
                    lambda x, y, f=loss, r=how: f(x, y.detach(), reduction=r), x, y.sigmoid()
                )


def halves_that_gate_each_other() -> None:
    for dtype in FLOATS:
        x = drawn(dtype, 4, 6, 8)
        for dim in (-1, 1, 0):
            with_gradients(lambda x, d=dim: F.glu(x, d), x)
            with_gradients(lambda x, d=dim: F.glu(x.transpose(0, 2)[::2], d), x)


def nothing_asks_the_device() -> None:
    """Steps of training that put all their work into a stream, without waiting for a number."""
    x, y = (torch.rand(4, 8, 6).cuda() for _ in range(2))
    places, mask = torch.randint(8, (4, 2, 6)).cuda(), torch.ones(8, 8, dtype=torch.bool).cuda()
    for function in (
        lambda x: F.group_norm(x, 2), lambda x: F.glu(x, 1),
        lambda x: F.binary_cross_entropy(x, y), lambda x: F.soft_margin_loss(x, y),
        lambda x: F.cosine_similarity(x, y), lambda x: torch.quantile(x, 0.3, dim=-1),
        lambda x: torch.take_along_dim(x, places, 1),
        lambda x: F.scaled_dot_product_attention(x, x, x, attn_mask=mask),
        lambda x: F.cross_entropy(x, places[:, 0], label_smoothing=0.1),
    ):  # fmt: skip
        leaf = x.detach().requires_grad_()
        torch.cuda.set_sync_debug_mode("error")
        try:
            function(leaf).sum().backward()
        finally:
            torch.cuda.set_sync_debug_mode("default")
        assert leaf.grad is not None


def losses_of_half_scores_under_autocast() -> None:
    """In float32, without a copy of the scores in that type; and as they would be with one."""
    for classes in (5, 5000):
        scores = drawn(torch.float16, 6, classes).cuda()
        target = torch.tensor([0, 1, -100, 2, 4, 3]).cuda()
        for how in ("mean", "sum", "none"):
            found = []
            for copy in (False, True):
                x = scores.detach().requires_grad_()
                with torch.autocast("cuda", dtype=torch.float16):
                    loss = F.cross_entropy(x.float() if copy else x, target, reduction=how)
                (loss.sum() * 3).backward()
                found.append((loss.detach().cpu(), x.grad.float().cpu()))
            assert found[0][0].dtype == torch.float32
            for one, other in zip(*found, strict=True):
                assert torch.allclose(one, other, 1e-3, 1e-6)


def norms_of_channels() -> None:
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        for x in (drawn(dtype, 6, 8, 5, 7), drawn(dtype, 9, 16), drawn(dtype, 20, 3, 40, 40),
                  drawn(dtype, 4, 8, 5, 7).to(memory_format=torch.channels_last)):  # fmt: skip
            w, b = drawn(dtype, x.shape[1]), drawn(dtype, x.shape[1])
            for train in (True, False):
                with_gradients(lambda x, w, b, t=train: _batch_norm(x, w, b, t), x, w, b)
            if x.dim() == 4 and x.shape[1] == 8 and x.is_contiguous():
                with_gradients(lambda x, w, b: F.group_norm(x, 4, w, b), x, w, b)
                with_gradients(lambda x: F.group_norm(x, 2), x)


def _batch_norm(x: Any, w: Any, b: Any, train: bool) -> Any:
    mean = torch.zeros(x.shape[1], dtype=x.dtype).to(x.device)
    variance = torch.ones(x.shape[1], dtype=x.dtype).to(x.device)
    result = F.batch_norm(x, mean, variance, w, b, train)
    return result, mean.clone(), variance.clone()


def pools() -> None:
    for dtype in (torch.float32, torch.bfloat16):
        for x in (drawn(dtype, 2, 3, 9, 11), drawn(dtype, 3, 8, 7),
                  drawn(dtype, 2, 4, 8, 8).to(memory_format=torch.channels_last)):  # fmt: skip
            for sizes in ((2,), (3, 2, 1), ((3, 2), (1, 2), 1)):
                with_gradients(lambda x, s=sizes: F.max_pool2d(x, *s), x)
                with_gradients(lambda x, s=sizes: F.avg_pool2d(x, *s), x)
                with_gradients(lambda x, s=sizes: F.avg_pool2d(
                    x, *s, count_include_pad=False), x)  # fmt: skip
            with_gradients(lambda x: F.adaptive_avg_pool2d(x, 1), x)


# ---- places


def indexing() -> None:
    for dtype in FLOATS:
        table, t = drawn(dtype, 20, 12), torch.randint(0, 20, (3, 7))
        x = drawn(dtype, 4, 9, 6)
        with_gradients(lambda w, t: F.embedding(t, w), table, t)
        with_gradients(lambda x, t: x.index_select(1, t), x, torch.randint(0, 9, (13,)))
        with_gradients(lambda x, t: x[t], x, torch.randint(-4, 4, (2, 5)))
        with_gradients(lambda x, t, u: x[:, t, u], x, torch.randint(-9, 9, (2, 5)),
                       torch.randint(0, 6, (5,)))  # fmt: skip
        with_gradients(lambda x, t: x.gather(1, t), x, torch.randint(0, 9, (4, 3, 6)))
        with_gradients(lambda x, t, s: x.scatter_add(1, t, s), x, torch.randint(0, 9, (4, 5, 6)),
                       drawn(dtype, 4, 5, 6))  # fmt: skip
        apart = torch.argsort(torch.rand(4, 9, 6), 1)[:, :5]
        same(lambda x, t, s: x.scatter(1, t, s), x, apart, drawn(dtype, 4, 5, 6), exact=True)
        same(lambda x, t: x.scatter(1, t, 2.5), x, apart, exact=True)


def arranging() -> None:
    for dtype in (torch.float32, torch.bool, torch.bfloat16):
        x, y = drawn(dtype, 4, 9, 6), drawn(dtype, 4, 2, 6)
        same(lambda x, y: torch.cat([x, y], 1), x, y, exact=True)
        same(lambda x: torch.stack([x, x], 2), x, exact=True)
        same(lambda x: F.pad(x, (1, 2, -1, 3)), x, exact=True)
        same(lambda x: x.flip(0, 2), x, exact=True)
        same(lambda x: x.roll(3, 1), x, exact=True)
        same(lambda x: x.repeat(2, 1, 3), x, exact=True)
        same(lambda x: x.tril(1), x, exact=True)
        same(lambda x: x.triu(-1), x, exact=True)
    with_gradients(lambda x: x[:, 1:7:2] * 1, drawn(torch.float32, 4, 9, 6))
    with_gradients(lambda x: x[-1] * 1, drawn(torch.float32, 4, 9, 6))


def sums_of_rows_are_the_same_in_every_run() -> None:
    grad, t = drawn(torch.float32, 500, 40).cuda(), torch.randint(0, 9, (500,)).cuda()
    found = []
    for _ in range(3):
        table = torch.zeros(9, 40, device="cuda", requires_grad=True)
        F.embedding(t, table).backward(grad)
        found.append(table.grad.cpu())
    assert all(torch.equal(one, found[0]) for one in found)


def repeated_calls_see_their_own_arguments() -> None:
    """The same layouts with other numbers, flags, lists, types, and with one array twice."""
    x, y = drawn(torch.float32, 6, 10), drawn(torch.float32, 6, 10)
    weight, bias = drawn(torch.float32, 10), drawn(torch.float32, 10)
    for eps in (1e-5, 1.0, 1):
        for w, b in ((weight, bias), (bias, weight), (weight, weight), (weight, None)):
            same(lambda x, w, b, eps=eps: F.layer_norm(x, (10,), w, b, eps), x, w, b)
    for dim in (0, 1, [0, 1], [1]):
        for keepdim in (True, False):
            same(lambda x, d=dim, k=keepdim: x.sum(d, keepdim=k), x)
    for a, b in ((x, y), (x, x), (y, x)):
        same(lambda a, b: torch.cat([a, b], 1), a, b, exact=True)
        same(lambda a, b: F.mse_loss(a, b), a, b)
        with_gradients(lambda a, b: F.smooth_l1_loss(a, b, beta=0.5), a, b)
    for count in (1, 2):
        same(lambda x, k=count: x.roll(k, 1), x, exact=True)


# ---- optimizers


def optimizers_step_in_one_launch() -> None:
    for name, options in (
        ("SGD", {"lr": 0.1}), ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
        ("Adam", {"lr": 0.01}), ("AdamW", {"lr": 0.01, "amsgrad": True}), ("RMSprop", {}),
        ("Adagrad", {}), ("NAdam", {}), ("Adam", {"lr": 0.01, "maximize": True}),
    ):  # fmt: skip
        for dtype in (torch.float32, torch.float64):
            found = [_stepped(name, options, dtype, place) for place in ("cpu", "cuda")]
            for expected, have in zip(*found, strict=True):
                compare(expected, have, False)


def _stepped(name: str, options: Any, dtype: Any, place: str) -> list[Any]:
    torch.manual_seed(7)
    params = [torch.nn.Parameter(torch.randn(shape).to(dtype).to(place))
              for shape in ((5,), (33, 7), (20000,), (3,))]  # fmt: skip
    optimizer = getattr(torch.optim, name)(params, **options)
    host.CALLS.clear()
    for turn in range(4):
        for k, parameter in enumerate(params):
            grad = torch.randn(parameter.shape).to(dtype).to(place)
            parameter.grad = None if (k, turn) == (3, 1) else grad
        optimizer.step()
    assert not host.CALLS
    return [parameter.detach().cpu() for parameter in params]


HELPERS = ("drawn", "compare", "same", "with_gradients", "is_float", "weights_of", "main")
FACTS = {
    name: value for name, value in list(globals().items())
    if callable(value) and getattr(value, "__module__", "") == __name__
    and name not in HELPERS and name[0] != "_"
}  # fmt: skip


def main() -> None:
    warnings.simplefilter("ignore")
    failures = {}
    for name in sys.argv[2:] or FACTS:
        torch.manual_seed(int(sys.argv[1]))
        try:
            FACTS[name]()
        except Exception:
            failures[name] = traceback.format_exc(limit=-5)
    print(json.dumps(failures))


if __name__ == "__main__":
    main()
