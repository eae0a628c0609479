"""Facts about rows that NVIDIA's libraries compute, on the emulated GPU, where their stand-ins do.

`test_library_rows` runs them in a process of their own. Results and gradients are those of the CPU,
which the conformance tests compare with PyTorch; results of the rows named are never the host's.
"""

from __future__ import annotations

import json
import operator
import sys
import traceback
from collections.abc import Callable
from functools import partial, reduce
from itertools import product
from typing import Any

import flambeau as torch
from flambeau._ops.cuda import host
from flambeau._runtime.cuda.libraries.cudnn_attention import Backward
from flambeau.nn import functional as F

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
TOLERANCE = {torch.float16: 2e-2, torch.bfloat16: 4e-2, torch.float32: 1e-4,
             torch.complex64: 1e-4}  # fmt: skip


def drawn(dtype: Any, *shape: int) -> Any:
    """Standard normal numbers."""
    if dtype.is_complex:
        return torch.randn(shape, dtype=dtype)
    return torch.randn(shape).to(dtype)


def same_on_both(function: Callable[..., Any], *tensors: Any) -> None:
    """The function gives the same on the CPU and on the GPU, and so do its gradients; on the GPU
    none of the rows that libraries know is computed by the host."""
    found = []
    for place in ("cpu", "cuda"):
        host.CALLS.clear()
        given = [tensor.detach().to(place).requires_grad_() for tensor in tensors]
        results = function(*given)
        results = results if isinstance(results, tuple) else (results,)
        sums = [(parts(result) * weights_of(parts(result))).sum() for result in results]
        reduce(operator.add, sums).backward()
        grads = [tensor.grad for tensor in given if tensor.grad is not None]
        found.append([one.detach().cpu() for one in (*results, *grads)])
    left = [row for row in host.CALLS if row in ROWS]
    assert not left, f"computed by the host: {left}"
    for expected, have in zip(*found, strict=True):
        assert (expected.shape, expected.dtype) == (have.shape, have.dtype)
        tolerance = TOLERANCE.get(expected.dtype, 1e-9)
        scale = max(1.0, float(expected.abs().max())) if expected.numel() else 1.0
        error = float((parts(expected).double() - parts(have).double()).abs().max())
        assert error <= tolerance * scale, (error, scale)


def weights_of(result: Any) -> Any:
    """Other numbers for each element."""
    return torch.linspace(-1, 1, result.numel()).reshape(result.shape).to(result)


def parts(value: Any) -> Any:
    return torch.view_as_real(value) if value.is_complex() else value


ROWS = frozenset("""
    mm bmm _matmul _matmul_as_mv _times_adjoint _adjoint_times dot _matmul_dot mv _matmul_mv
    _times_row _vector_times _transposed_mv addmm baddbmm addmv addr outer _matmul_outer addbmm
    _linear _linear_no_bias _linear_nd _linear_nd_no_bias linear_backward
    convolution _conv_input_grad _conv_weight_grad _conv_bias_grad _attention _attention_backward
    _fft_c2c _fft_r2c _fft_c2r linalg_cholesky_ex linalg_lu_factor_ex linalg_solve_ex linalg_eigh
    linalg_eigvalsh linalg_svd _lstm_layer _lstm_layer_backward _gru_layer _gru_layer_backward
    _rnn_layer _rnn_layer_backward
""".split())  # fmt: skip


# ---- products


def products_of_all_ranks() -> None:
    for dtype in (*FLOATS, torch.complex64):
        for left, right in (((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((2, 1, 3, 4), (2, 4, 5)),
                            ((4,), (4, 5)), ((3, 4), (4,)), ((4,), (4,)), ((2, 3, 4), (4,)),
                            ((4,), (2, 4, 3))):  # fmt: skip
            same_on_both(torch.matmul, drawn(dtype, *left), drawn(dtype, *right))


def products_of_views() -> None:
    a, b = drawn(torch.float32, 6, 8), drawn(torch.float32, 8, 10)
    same_on_both(lambda a, b: a[::2, ::2] @ b.t()[1:5, :4].t()[:4], a, b)
    same_on_both(lambda a, b: a[1:, 1:] @ b[1:, ::3], a, b)
    heads = drawn(torch.float32, 2, 5, 3, 4)
    same_on_both(lambda q: q.transpose(1, 2) @ q.permute(0, 2, 3, 1), heads)
    same_on_both(lambda q: torch.einsum("blhe,bmhe->bhlm", q, q), heads)


def products_of_nothing() -> None:
    for left, right in (
        ((0, 4), (4, 5)),
        ((3, 0), (0, 5)),
        ((3, 4), (4, 0)),
        ((0, 3, 4), (0, 4, 2)),
    ):
        result = torch.ones(left).cuda() @ torch.ones(right).cuda()
        assert torch.equal(result.cpu(), torch.ones(left) @ torch.ones(right))


def sums_with_a_product() -> None:
    for dtype in FLOATS:
        a, b, v = drawn(dtype, 3, 4), drawn(dtype, 4, 5), drawn(dtype, 4)
        for shape in ((3, 5), (5,), (1, 5), (3, 1), (1, 1), ()):
            for beta, alpha in ((1, 1), (2, 3), (0, 1), (1, 0.5)):
                same_on_both(lambda c, a, b, x=beta, y=alpha: torch.addmm(c, a, b, beta=x, alpha=y),
                             drawn(dtype, *shape), a, b)  # fmt: skip
        same_on_both(lambda c, a, v: torch.addmv(c, a, v, beta=2), drawn(dtype, 3), a, v)
        same_on_both(lambda c, a, v: torch.addr(c, a, v, alpha=2), drawn(dtype, 3, 4),
                     drawn(dtype, 3), v)  # fmt: skip
        same_on_both(torch.outer, drawn(dtype, 3), v)
        batches = drawn(dtype, 2, 3, 4), drawn(dtype, 2, 4, 5)
        same_on_both(
            lambda c, a, b: torch.baddbmm(c, a, b, beta=2), drawn(dtype, 2, 3, 5), *batches
        )
        same_on_both(lambda c, a, b: torch.addbmm(c, a, b, beta=2), drawn(dtype, 3, 5), *batches)


def products_are_added_in_place() -> None:
    a, b = torch.randn(3, 4), torch.randn(4, 5)
    x = torch.randn(3, 10)
    y = x.cuda()
    host.CALLS.clear()
    y[:, ::2].addmm_(a.cuda(), b.cuda(), beta=2, alpha=0.5)
    x[:, ::2].addmm_(a, b, beta=2, alpha=0.5)
    assert torch.allclose(y.cpu(), x, atol=1e-5)
    z = x[:, 0].cuda()
    z.addmv_(a.cuda(), b[:, 0].cuda())
    assert torch.allclose(z.cpu(), x[:, 0].addmv(a, b[:, 0]), atol=1e-5)
    assert not [row for row in host.CALLS if row.startswith("add")], host.CALLS


def nan_is_not_looked_at_without_beta() -> None:
    bad = torch.full((3, 5), float("nan")).cuda()
    a, b = torch.ones(3, 4).cuda(), torch.ones(4, 5).cuda()
    assert torch.equal(torch.addmm(bad, a, b, beta=0).cpu(), torch.full((3, 5), 4.0))


def linear_layers() -> None:
    for dtype in FLOATS:
        weight, bias = drawn(dtype, 5, 4), drawn(dtype, 5)
        for shape in ((3, 4), (2, 3, 4), (4,)):
            same_on_both(F.linear, drawn(dtype, *shape), weight, bias)
            same_on_both(F.linear, drawn(dtype, *shape), weight)


def shapes_that_do_not_fit_are_torchs_errors() -> None:
    for function in (torch.mm, torch.matmul, lambda a, b: F.linear(a, b)):
        try:
            function(torch.ones(2, 3).cuda(), torch.ones(4, 5).cuda())
        except RuntimeError as error:
            assert str(error).startswith("mat1 and mat2 shapes cannot be multiplied (2x3 and"), (
                error
            )
        else:
            raise AssertionError(function)


def tf32_follows_the_flags() -> None:
    x = torch.randn(64, 64)
    wanted = x.double() @ x.double()

    def error() -> float:
        return float(((x.cuda() @ x.cuda()).cpu().double() - wanted).abs().max())

    assert error() < 1e-4
    torch.backends.cuda.matmul.allow_tf32 = True
    assert error() > 1e-3
    torch.set_float32_matmul_precision("highest")
    assert error() < 1e-4
    torch.set_float32_matmul_precision("high")
    assert error() > 1e-3
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    assert error() > 1e-3
    torch.backends.cuda.matmul.fp32_precision = "ieee"
    assert error() < 1e-4


# ---- convolutions


def convolutions_of_all_dims() -> None:
    for dtype in FLOATS:
        for dims, function in ((1, F.conv1d), (2, F.conv2d), (3, F.conv3d)):
            x, w = drawn(dtype, 2, 4, *(7,) * dims), drawn(dtype, 6, 2, *(3,) * dims)
            bias = drawn(dtype, 6)
            same_on_both(lambda x, w, b, f=function: f(x, w, b, 2, 1, 1, 2), x, w, bias)
            same_on_both(lambda x, w, f=function: f(x, w, None, 1, 2, 2, 2), x, w)


def transposed_convolutions() -> None:
    for dims, function in ((1, F.conv_transpose1d), (2, F.conv_transpose2d),
                           (3, F.conv_transpose3d)):  # fmt: skip
        x, w = drawn(torch.float32, 2, 4, *(5,) * dims), drawn(torch.float32, 4, 3, *(3,) * dims)
        bias = drawn(torch.float32, 6)
        same_on_both(lambda x, w, b, f=function: f(x, w, b, 2, 1, 1, 2), x, w, bias)
        same_on_both(lambda x, w, f=function: f(x, w, None, 1, 0, 0, 1), x, w)


def kernels_of_one_tap_are_products() -> None:
    bias, weight = drawn(torch.float32, 5), drawn(torch.float32, 5, 3, 1, 1)
    for images in (1, 2, 6):
        for form in (torch.contiguous_format, torch.channels_last):
            x = drawn(torch.float32, images, 3, 4, 6).to(memory_format=form)
            same_on_both(F.conv2d, x, weight, bias)
            same_on_both(F.conv2d, x, weight)
    same_on_both(lambda x, w, b: F.conv2d(x, w, b, 2), x, weight, bias)


def channels_last_stays() -> None:
    weight = drawn(torch.float32, 5, 3, 3, 3)
    x = drawn(torch.float32, 2, 3, 6, 6).to(memory_format=torch.channels_last)
    same_on_both(lambda x, w: F.conv2d(x, w, None, 1, 1), x, weight)
    result = F.conv2d(x.cuda(), weight.cuda(), None, 1, 1)
    assert result.is_contiguous(memory_format=torch.channels_last)
    assert F.conv2d(x.contiguous().cuda(), weight.cuda()).is_contiguous()


def row_major_halves_are_channels_last_inside() -> None:
    x, weight = drawn(torch.float16, 2, 32, 5, 6), drawn(torch.float16, 40, 32, 3, 3) * 0.1
    bias = drawn(torch.float16, 40)
    same_on_both(lambda x, w, b: F.conv2d(x, w, b, 1, 1), x, weight, bias)
    y = drawn(torch.float16, 2, 40, 3, 4)
    same_on_both(lambda y, w: F.conv_transpose2d(y, w, None, 2, 1), y, weight)
    assert F.conv2d(x.cuda(), weight.cuda()).is_contiguous()


def flags_of_cudnn_act() -> None:
    x, w = torch.randn(1, 8, 12, 12), torch.randn(8, 8, 3, 3)
    wanted = F.conv2d(x.double(), w.double())

    def error() -> float:
        return float((F.conv2d(x.cuda(), w.cuda()).cpu().double() - wanted).abs().max())

    torch.backends.cudnn.allow_tf32 = True
    assert error() > 1e-3
    torch.backends.cudnn.allow_tf32 = False
    assert error() < 1e-4
    torch.backends.cudnn.enabled = False
    host.CALLS.clear()
    assert error() < 1e-4
    assert host.CALLS["convolution"] == 1
    torch.backends.cudnn.enabled = True
    with torch.backends.cudnn.flags(enabled=True, benchmark=True, allow_tf32=False):
        assert error() < 1e-4


def gradients_of_linear_maps_under_autocast() -> None:
    """Those of float32 parameters and inputs come out of products of half types as they are."""
    for dtype in (torch.float16, torch.bfloat16):
        for shape in ((5, 8), (2, 3, 8), (8,)):
            for biased, kind in product((True, False), (torch.float32, dtype)):
                layer = torch.nn.Linear(8, 16, bias=biased, device="cuda")
                x = drawn(kind, *shape).cuda().requires_grad_()
                with torch.autocast("cuda", dtype=dtype):
                    y = layer(x)
                grad = drawn(dtype, *y.shape).cuda()
                y.backward(grad)
                assert y.dtype == dtype and x.grad.dtype == kind
                flat = x.detach().to(dtype).double().reshape(-1, 8)
                slope = grad.double().reshape(-1, 16)
                w = layer.weight.detach().to(dtype).double()
                close(x.grad.reshape(-1, 8), slope @ w, 1e-5 if kind != dtype else 1e-2)
                close(layer.weight.grad, slope.T @ flat, 1e-5)
                if biased:
                    close(layer.bias.grad, slope.sum(0), 1e-5)


def close(found: Any, wanted: Any, tolerance: float) -> None:
    error = (found.double() - wanted).abs().max()
    assert error <= tolerance * max(1.0, wanted.abs().max()), error


def further_gradients_of_linear_maps_under_autocast() -> None:
    """They go by way of the casts, and hooks see what flows through the map."""
    weight = drawn(torch.float32, 4, 8).cuda().requires_grad_()
    x = drawn(torch.float32, 3, 8).cuda().requires_grad_()
    seen = []
    weight.register_hook(lambda grad: seen.append(grad.dtype))
    with torch.autocast("cuda", dtype=torch.bfloat16):
        y = F.linear(x, weight)
    (of_x,) = torch.autograd.grad((y.float() ** 2).sum(), x, create_graph=True)
    assert of_x.dtype == torch.float32
    (of_x.sum() + y.float().sum()).backward()
    assert seen == [torch.float32]
    w, rows = weight.detach(), torch.ones(3, 4, device="cuda")
    wanted = 2 * (x.detach().sum(0) * w.sum(1)[:, None] + (x.detach() @ w.T).sum(0)[:, None])
    close(weight.grad, (wanted + rows.T @ x.detach()).double(), 5e-2)


# ---- attention


def attention_of_all_types() -> None:
    for dtype in FLOATS:
        q, k, v = (drawn(dtype, 2, 3, size, 8) for size in (5, 7, 7))
        same_on_both(F.scaled_dot_product_attention, q, k, v)
        same_on_both(
            lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), q, k, v
        )
        same_on_both(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, scale=0.3), q, k, v)


def attention_with_masks() -> None:
    q, k, v = (drawn(torch.float32, 2, 3, size, 8) for size in (5, 7, 7))
    open_ = torch.rand(2, 1, 5, 7) > 0.4
    open_[0, 0, 2] = False  # a query that may look nowhere
    for mask in (open_, torch.randn(5, 7), torch.randn(2, 3, 5, 7)):
        same_on_both(lambda q, k, v, m=mask: F.scaled_dot_product_attention(
            q, k, v, m.to(q.device)), q, k, v)  # fmt: skip


def attention_between_projections() -> None:
    """Heads that lie behind tokens, and fewer heads of keys than of queries."""
    x = drawn(torch.float32, 2, 5, 3, 4)
    same_on_both(lambda x: F.scaled_dot_product_attention(*[x.transpose(1, 2)] * 3), x)
    q, k = drawn(torch.float32, 2, 4, 5, 8), drawn(torch.float32, 2, 2, 5, 8)
    same_on_both(lambda q, k: F.scaled_dot_product_attention(q, k, k, enable_gqa=True), q, k)


def attention_of_half_types_is_one_kernel() -> None:
    """Without a mask nothing but cuDNN's engine runs: the scores never lie in memory."""
    for dtype in (torch.float16, torch.bfloat16):
        q, k, v = (drawn(dtype, 2, 3, 64, 16).cuda() for _ in range(3))
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        with torch.no_grad():
            F.scaled_dot_product_attention(q, k, v)
        of_scores = 2 * 3 * 64 * 64 * 4
        assert torch.cuda.max_memory_allocated() - before < of_scores


def gradients_of_attention_are_one_engines() -> None:
    """In half types and without a mask: no scores in memory, and what a projection to queries, keys
    and values at once needs of them is neither joined nor copied."""
    for dtype in (torch.float16, torch.bfloat16):
        x = drawn(dtype, 2, 64, 3 * 3 * 16).cuda().requires_grad_()
        q, k, v = x.view(2, 64, 3, 3, 16).permute(2, 0, 3, 1, 4).unbind(0)
        result = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        grad = torch.ones_like(result)
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        with Engines() as engines:
            (found,) = torch.autograd.grad(result, x, grad)
        assert engines.runs == 1 and found.is_contiguous()
        sums, rows = 4 * q.numel(), 4 * q.numel() // 16
        used = torch.cuda.max_memory_allocated() - before
        assert used <= 2 * x.numel() + sums + rows + 3 * 512, used


def gradients_of_attention_for_any_layout() -> None:
    """Of heads in front or behind, of tensors of their own, of gradients that are spread out."""
    causal = partial(F.scaled_dot_product_attention, is_causal=True)
    for dtype in (torch.float16, torch.bfloat16):
        q, k, v = (drawn(dtype, 2, 3, 16, 8) for _ in range(3))
        same_on_both(causal, q, k, v)
        turned = [one.transpose(1, 2).contiguous() for one in (q, k, v)]
        same_on_both(lambda *t: causal(*(one.transpose(1, 2) for one in t)), *turned)
        same_on_both(lambda x: F.scaled_dot_product_attention(x, x, x).sum((0, 2)), q)
        same_on_both(lambda x: F.scaled_dot_product_attention(*x.unbind(1)),
                     drawn(dtype, 2, 3, 4, 16, 8))  # fmt: skip
        same_on_both(lambda x: F.scaled_dot_product_attention(*reversed(x.unbind(1))),
                     drawn(dtype, 2, 3, 4, 16, 8))  # fmt: skip


def gradients_of_attention_are_the_same_in_every_run() -> None:
    """Where that is asked for, sums have an order, which the engine's have not."""
    q, k, v = (drawn(torch.float16, 1, 2, 16, 8).cuda().requires_grad_() for _ in range(3))
    for asked in (True, False):
        torch.use_deterministic_algorithms(asked)
        try:
            with Engines() as engines:
                F.scaled_dot_product_attention(q, k, v).sum().backward()
        finally:
            torch.use_deterministic_algorithms(False)
        assert engines.runs == (not asked)


class Engines:
    """How often gradients of attention are cuDNN's inside of it."""

    def __enter__(self) -> Engines:
        self.runs, self.run = 0, Backward.run

        def run(plan: Any, *arguments: Any) -> None:
            self.runs += 1
            self.run(plan, *arguments)

        Backward.run = run
        return self

    def __exit__(self, *exc: object) -> None:
        Backward.run = self.run


# ---- Fourier transforms and linear algebra


def fourier_transforms() -> None:
    x = drawn(torch.float32, 2, 4, 5, 6)
    z = drawn(torch.complex64, 2, 4, 5, 6)
    for norm in (None, "ortho", "forward"):
        same_on_both(lambda x, n=norm: torch.fft.rfft(x, norm=n), x)
        same_on_both(lambda x, n=norm: torch.fft.rfftn(x, dim=(0, 3, 1, 2), norm=n), x)
        same_on_both(lambda z, n=norm: torch.fft.ifft2(z, dim=(3, 1), norm=n), z)
        same_on_both(lambda z, n=norm: torch.fft.irfftn(z, dim=(0, 1, 2, 3), norm=n), z)
        same_on_both(lambda z, n=norm: torch.fft.irfft(z, 11, norm=n), z)
    same_on_both(torch.fft.fft, x)
    same_on_both(torch.fft.fftn, z)
    same_on_both(torch.fft.fft, drawn(torch.float64, 7))


def positive_definite_matrices() -> None:
    for dtype in (torch.float32, torch.float64, torch.complex64):
        a = drawn(dtype, 2, 4, 4)
        a = a @ a.mH + 4 * torch.eye(4, dtype=dtype)
        for upper in (False, True):
            same_on_both(lambda a, u=upper: torch.linalg.cholesky(a, upper=u), a)
    try:
        torch.linalg.cholesky(torch.tensor([[1.0, 2.0], [2.0, 1.0]]).cuda())
    except torch.linalg.LinAlgError as error:
        words = "linalg.cholesky: The factorization could not be completed because the input is not"
        assert str(error).startswith(words), error
    else:
        raise AssertionError("not positive-definite")


def systems() -> None:
    for dtype in (torch.float64, torch.complex64):
        a = drawn(dtype, 2, 4, 4) + 3 * torch.eye(4, dtype=dtype)
        same_on_both(torch.linalg.solve, a, drawn(dtype, 2, 4, 3))
        same_on_both(torch.linalg.solve, a[0].clone(), drawn(dtype, 4))
        for shape in ((4, 4), (5, 3), (3, 5)):
            m = drawn(dtype, 2, *shape)
            factors, pivots = torch.linalg.lu_factor(m.cuda())
            expected, places = torch.linalg.lu_factor(m)
            assert torch.equal(pivots.cpu(), places)
            assert torch.allclose(factors.cpu(), expected, atol=1e-4)


def spectra() -> None:
    for dtype in (torch.float64, torch.complex64):
        a = drawn(dtype, 2, 4, 4)
        a = a + a.mH
        same_on_both(torch.linalg.eigvalsh, a)
        values, vectors = torch.linalg.eigh(a.cuda(), UPLO="U")
        again = (vectors * values.unsqueeze(-2)) @ vectors.mH
        assert torch.allclose(again.cpu(), a, atol=1e-4)
        for shape in ((5, 3), (3, 5), (4, 4)):
            m = drawn(dtype, 2, *shape)
            for full in (False, True):
                left, s, right = (part.cpu() for part in torch.linalg.svd(m.cuda(), full))
                expected = torch.linalg.svd(m, full)
                assert (left.shape, right.shape) == (expected[0].shape, expected[2].shape)
                few = s.shape[-1]
                again = (left[..., :few] * s.unsqueeze(-2)) @ right[..., :few, :]
                assert torch.allclose(again, m, atol=1e-4)
                assert torch.allclose(s, expected[1].to(s.dtype), atol=1e-4)


def recurrent_layers_do_not_wait() -> None:
    """Their steps are products and elements: the host puts them into a stream, and goes on."""
    for dtype in FLOATS:
        x = drawn(dtype, 2, 5, 3)
        for kind, options in ((torch.nn.LSTM, {}), (torch.nn.GRU, {}), (torch.nn.RNN, {}),
                              (torch.nn.RNN, {"nonlinearity": "relu"}),
                              (torch.nn.LSTM, {"proj_size": 2})):  # fmt: skip
            layer = kind(3, 4, 2, bidirectional=True, batch_first=True, **options).to(dtype)
            same_on_both(partial(_recurrent, layer), x)


def _recurrent(layer: Any, x: Any) -> Any:
    layer.to(x.device).zero_grad()
    if x.is_cuda:
        torch.cuda.set_sync_debug_mode("error")
    try:
        output, last = layer(x)
        output.sum().backward(retain_graph=True)
    finally:
        if x.is_cuda:
            torch.cuda.set_sync_debug_mode("default")
    x.grad = None
    last = last if isinstance(last, tuple) else (last,)
    return (output, *last, *[p.grad for p in layer.parameters()])


def captured_graphs_hold_all_of_it() -> None:
    """Workspaces, masks and ones are made while a graph is captured, for the first time."""
    weight, m = torch.randn(8, 8, 3, 3).cuda(), torch.randn(9, 6).cuda()
    x = torch.randn(2, 8, 6, 6).cuda()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = (
            F.conv2d(x, weight, padding=1),
            F.linear(x[:, :, ::2], m, x[0, 0, 0, :1].expand(9)),
            F.scaled_dot_product_attention(x, x, x, is_causal=True),
            torch.addmm(x[0, 0, :1].t(), x[0, 0], x[0, 1], beta=2),
        )
    for _ in range(2):
        x.copy_(torch.randn(2, 8, 6, 6))
        graph.replay()
        y = x.cpu()
        expected = (
            F.conv2d(y, weight.cpu(), padding=1),
            F.linear(y[:, :, ::2], m.cpu(), y[0, 0, 0, :1].expand(9)),
            F.scaled_dot_product_attention(y, y, y, is_causal=True),
            torch.addmm(y[0, 0, :1].t(), y[0, 0], y[0, 1], beta=2),
        )
        for have, wanted in zip(results, expected, strict=True):
            assert torch.allclose(have.cpu(), wanted, atol=1e-4)


FACTS = {
    name: value for name, value in list(globals().items())
    if callable(value) and getattr(value, "__module__", "") == __name__
    and name[0] != "_"
    and name not in ("drawn", "same_on_both", "parts", "weights_of", "close", "Engines")
}  # fmt: skip


def main() -> None:
    torch.backends.cudnn.allow_tf32 = False
    failures = {}
    for name in sys.argv[1:] or FACTS:
        torch.manual_seed(0)
        try:
            FACTS[name]()
        except Exception:
            failures[name] = traceback.format_exc(limit=-4)
    print(json.dumps(failures))


if __name__ == "__main__":
    main()
