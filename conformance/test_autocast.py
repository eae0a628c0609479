"""Autocast on the CPU: for every operator of PyTorch's lists, the types that come out are torch's.

The lists themselves are read off torch's dispatch table, so that an entry that a later version adds
fails here until it has a line.
"""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest
import torch as reference

import flambeau

TYPES = ("float32", "bfloat16", "float64")


def R(*shape: int) -> np.ndarray:
    """Numbers between 0.1 and 0.9."""
    rng = np.random.default_rng(sum(shape) + len(shape))
    return np.round(rng.uniform(0.1, 0.9, shape), 3)


def S(n: int) -> np.ndarray:
    """A symmetric matrix with positive eigenvalues."""
    half = R(n, n)
    return half @ half.T + n * np.eye(n)


I = np.array  # noqa: E741  (integers: autocast leaves them alone)
CALLS: dict[str, Any] = {
    # ---- lower precision
    "addbmm": lambda t, a, b, c: t.addbmm(a, b, c),
    "addmm": lambda t, a, b, c: t.addmm(a, b, c),
    "_addmm_activation": lambda t, a, b, c: t._addmm_activation(a, b, c).detach(),
    "baddbmm": lambda t, a, b, c: t.baddbmm(a, b, c),
    "bmm": lambda t, a, b: t.bmm(a, b),
    "mm": lambda t, a, b: t.mm(a, b),
    "matmul": lambda t, a, b: (a @ b, t.matmul(a, b), a[0] @ b, a @ b[:, 0], a[0] @ b[:, 0]),
    "linear": lambda t, a, b, c: (t.nn.functional.linear(a, b, c), t.nn.functional.linear(a, b)),
    "linalg_vecdot": lambda t, a, b: t.linalg.vecdot(a, b),
    "prelu": lambda t, a, b: t.nn.functional.prelu(a, b),
    "conv1d": lambda t, a, b, c: (t.conv1d(a, b, c), t.conv1d(a, b, padding="same")),
    "conv2d": lambda t, a, b, c: (t.conv2d(a, b, c), t.conv2d(a, b, padding="valid")),
    "conv3d": lambda t, a, b, c: (t.conv3d(a, b, c), t.conv3d(a, b, padding="same")),
    "conv_tbc": lambda t, a, b, c: t.conv_tbc(a, b, c),
    "conv_transpose1d": lambda t, a, b: t.conv_transpose1d(a, b),
    "conv_transpose2d": lambda t, a, b: t.conv_transpose2d(a, b),
    "conv_transpose3d": lambda t, a, b: t.conv_transpose3d(a, b),
    "scaled_dot_product_attention": lambda t, a, b, c: (
        t.nn.functional.scaled_dot_product_attention(a, b, c)
    ),
    # ---- float32: losses
    "binary_cross_entropy": lambda t, a, b: t.nn.functional.binary_cross_entropy(a, b),
    "binary_cross_entropy_with_logits": lambda t, a, b: (
        t.nn.functional.binary_cross_entropy_with_logits(a, b)
    ),
    "cosine_embedding_loss": lambda t, a, b, c: t.nn.functional.cosine_embedding_loss(a, b, c),
    "cross_entropy_loss": lambda t, a, b, c: (
        t.nn.functional.cross_entropy(a, b), t.nn.functional.cross_entropy(a, c)
    ),
    "ctc_loss": lambda t, a, b, c, d: t.nn.functional.ctc_loss(a.log_softmax(-1), b, c, d),
    "hinge_embedding_loss": lambda t, a, b: t.nn.functional.hinge_embedding_loss(a, b),
    "huber_loss": lambda t, a, b: t.nn.functional.huber_loss(a, b),
    "kl_div": lambda t, a, b: t.nn.functional.kl_div(a, b, reduction="batchmean"),
    "l1_loss": lambda t, a, b: t.nn.functional.l1_loss(a, b),
    "margin_ranking_loss": lambda t, a, b, c: t.nn.functional.margin_ranking_loss(a, b, c),
    "mse_loss": lambda t, a, b: t.nn.functional.mse_loss(a, b),
    "multi_margin_loss": lambda t, a, b: t.nn.functional.multi_margin_loss(a, b),
    "multilabel_margin_loss": lambda t, a, b: t.nn.functional.multilabel_margin_loss(a, b),
    "nll_loss": lambda t, a, b: t.nn.functional.nll_loss(a, b),
    "nll_loss2d": lambda t, a, b: t.nn.functional.nll_loss(a, b),
    "poisson_nll_loss": lambda t, a, b: t.nn.functional.poisson_nll_loss(a, b),
    "smooth_l1_loss": lambda t, a, b: t.nn.functional.smooth_l1_loss(a, b),
    "soft_margin_loss": lambda t, a, b: t.nn.functional.soft_margin_loss(a, b.detach()),
    "triplet_margin_loss": lambda t, a, b, c: t.nn.functional.triplet_margin_loss(a, b, c),
    # ---- float32: pools, padding, sampling
    "adaptive_avg_pool3d": lambda t, a: t.nn.functional.adaptive_avg_pool3d(a, 2),
    "adaptive_max_pool3d": lambda t, a: t.nn.functional.adaptive_max_pool3d(a, 2),
    "avg_pool3d": lambda t, a: t.nn.functional.avg_pool3d(a, 2),
    "max_pool3d": lambda t, a: (
        t.nn.functional.max_pool3d(a, 2), t.nn.functional.max_pool3d(a, 2, return_indices=True)[0]
    ),
    "fractional_max_pool2d": lambda t, a: (
        t.nn.functional.fractional_max_pool2d(a, 2, output_size=2)
    ),
    "fractional_max_pool3d": lambda t, a: (
        t.nn.functional.fractional_max_pool3d(a, 2, output_size=2)
    ),
    "max_unpool2d": lambda t, a, b: t.nn.functional.max_unpool2d(a, b, 2),
    "max_unpool3d": lambda t, a, b: t.nn.functional.max_unpool3d(a, b, 2),
    "reflection_pad1d": lambda t, a: t.nn.functional.pad(a, (1, 1), "reflect"),
    "reflection_pad2d": lambda t, a: t.nn.functional.pad(a, (1, 1, 1, 1), "reflect"),
    "replication_pad1d": lambda t, a: t.nn.functional.pad(a, (1, 1), "replicate"),
    "replication_pad2d": lambda t, a: t.nn.functional.pad(a, (1, 1, 1, 1), "replicate"),
    "replication_pad3d": lambda t, a: t.nn.functional.pad(a, (1,) * 6, "replicate"),
    "grid_sampler": lambda t, a, b: t.nn.functional.grid_sample(a, b, align_corners=False),
    "grid_sampler_2d": lambda t, a, b: t.grid_sampler_2d(a, b, 0, 0, False),
    "grid_sampler_3d": lambda t, a, b: t.grid_sampler_3d(a, b, 0, 0, False),
    # ---- float32: linear algebra
    "cdist": lambda t, a, b: t.cdist(a, b),
    "cholesky": lambda t, a: t.cholesky(a),
    "cholesky_inverse": lambda t, a: t.cholesky_inverse(a),
    "cholesky_solve": lambda t, a, b: t.cholesky_solve(b, a),
    "geqrf": lambda t, a: t.geqrf(a.detach()),
    "inverse": lambda t, a: (t.inverse(a), a.inverse()),
    "linalg_cholesky": lambda t, a: t.linalg.cholesky(a),
    "linalg_cholesky_ex": lambda t, a: t.linalg.cholesky_ex(a)[0],
    "linalg_cond": lambda t, a: (t.linalg.cond(a), t.linalg.cond(a.detach(), "fro")),
    "linalg_eig": lambda t, a: t.linalg.eig(a),
    "linalg_eigh": lambda t, a: t.linalg.eigh(a),
    "linalg_eigvals": lambda t, a: t.linalg.eigvals(a),
    "linalg_eigvalsh": lambda t, a: t.linalg.eigvalsh(a),
    "linalg_householder_product": lambda t, a, b: t.linalg.householder_product(a, b),
    "linalg_inv": lambda t, a: t.linalg.inv(a),
    "linalg_inv_ex": lambda t, a: t.linalg.inv_ex(a)[0],
    "linalg_lstsq": lambda t, a, b: t.linalg.lstsq(a, b)[0],
    "linalg_matrix_rank": lambda t, a: t.linalg.matrix_rank(a),
    "linalg_qr": lambda t, a: t.linalg.qr(a),
    "linalg_solve": lambda t, a, b: t.linalg.solve(a, b),
    "linalg_svd": lambda t, a: t.linalg.svd(a),
    "linalg_svdvals": lambda t, a: t.linalg.svdvals(a),
    "linalg_tensorinv": lambda t, a: t.linalg.tensorinv(a, ind=1),
    "linalg_tensorsolve": lambda t, a, b: t.linalg.tensorsolve(a, b[:, 0]),
    "lu_solve": lambda t, a, b: t.lu_solve(a, b, t.tensor([1, 2, 3], dtype=t.int32)),
    "_lu_with_info": lambda t, a: t.lu(a)[0],
    "orgqr": lambda t, a, b: t.orgqr(a, b),
    "ormqr": lambda t, a, b, c: t.ormqr(a, b, c),
    "pinverse": lambda t, a: t.pinverse(a),
    "qr": lambda t, a: t.qr(a),
    "svd": lambda t, a: t.svd(a),
    "triangular_solve": lambda t, a, b: t.triangular_solve(b, a)[0],
    "trace": lambda t, a: t.trace(a),
    # ---- float32: the rest
    "nanquantile": lambda t, a, b: (t.nanquantile(a, 0.5), t.nanquantile(a, b)),
    "quantile": lambda t, a, b: (t.quantile(a, 0.5), t.quantile(a, b, dim=0)),
    "polar": lambda t, a, b: t.polar(a, b),
    "prod": lambda t, a: (a.prod(), t.prod(a, 0)),
    "stft": lambda t, a, b: t.stft(a, 4, window=b, return_complex=True),
    "view_as_complex": lambda t, a: t.view_as_complex(a),
    **{
        f"fft_{name}": lambda t, a, name=name: getattr(t.fft, name)(a)
        for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fft2", "ifft2", "rfft2",
                     "irfft2", "fftn", "ifftn", "rfftn", "irfftn")
    },
    # ---- the widest type
    "cat": lambda t, a, b: (t.cat([a, b]), t.cat([a, b.bfloat16()]), t.cat([a.double(), b])),
    "stack": lambda t, a, b: (t.stack([a, b]), t.stack([a, b.bfloat16()])),
    "index_copy": lambda t, a, b, c: (
        t.index_copy(a, 0, c, b), t.index_copy(a, 0, c, b.bfloat16())
    ),
    # ---- made of operators with a word
    "einsum": lambda t, a, b: t.einsum("ij,jk->ik", a, b),
    "tensordot": lambda t, a, b: (t.tensordot(a, b, 1), t.tensordot(a, a, 2)),
    "chain of products": lambda t, a, b: (t.linalg.multi_dot([a, b, a]), t.matrix_power(a, 3)),
    "hstack": lambda t, a, b: (t.hstack([a, b.bfloat16()]), t.vstack([a, b])),
    # ---- in the type that they are given
    "mv": lambda t, a, b: (t.mv(a, b), t.dot(b, b), t.addmv(b, a, b), t.inner(b, b)),
    "bilinear": lambda t, a, b, c: t.nn.functional.bilinear(a, b, c),
    "softmax": lambda t, a: (a.softmax(-1), a.log_softmax(-1), a.logsumexp(0), a.cumsum(0)),
    "norms": lambda t, a: (a.norm(), t.nn.functional.layer_norm(a, a.shape[-1:]), a.sum()),
    "functions": lambda t, a: (a.exp(), a.log(), a.pow(2), t.nn.functional.gelu(a), a * 2.5),
    "group_norm": lambda t, a: (t.group_norm(a, 1), t.nn.functional.normalize(a)),
    "sort": lambda t, a: (a.sort()[0], a.topk(1)[0], a.median(), t.dist(a, a + 1)),
}  # fmt: skip

M, V = R(3, 3), R(3)
IMAGE, VOLUME = R(1, 2, 6, 6), R(1, 2, 4, 4, 4)
ARGUMENTS: dict[str, tuple[np.ndarray, ...]] = {
    "addbmm": (R(2, 4), R(3, 2, 5), R(3, 5, 4)), "addmm": (R(2, 4), R(2, 3), R(3, 4)),
    "_addmm_activation": (R(2, 4), R(2, 3), R(3, 4)),
    "baddbmm": (R(3, 2, 4), R(3, 2, 5), R(3, 5, 4)), "bmm": (R(3, 2, 5), R(3, 5, 4)),
    "linear": (R(2, 3), R(4, 3), R(4)), "prelu": (R(2, 3), R(1)),
    "conv1d": (R(1, 2, 6), R(3, 2, 3), R(3)), "conv2d": (IMAGE, R(3, 2, 3, 3), R(3)),
    "conv3d": (VOLUME, R(3, 2, 3, 3, 3), R(3)), "conv_tbc": (R(5, 2, 3), R(3, 3, 4), R(4)),
    "conv_transpose1d": (R(1, 2, 6), R(2, 3, 3)), "conv_transpose2d": (IMAGE, R(2, 3, 3, 3)),
    "conv_transpose3d": (VOLUME, R(2, 3, 3, 3, 3)),
    "scaled_dot_product_attention": (R(1, 2, 3, 4), R(1, 2, 5, 4), R(1, 2, 5, 4)),
    "cosine_embedding_loss": (M, M + 0.05, I([1, -1, 1])),
    "cross_entropy_loss": (R(2, 3), I([0, 2]), R(2, 3)),
    "ctc_loss": (R(5, 1, 4), I([[1, 2]]), I([5]), I([2])),
    "hinge_embedding_loss": (M, I([[1, -1, 1]] * 3)), "margin_ranking_loss": (V, V + 1, V * 0 + 1),
    "multi_margin_loss": (M, I([0, 1, 2])), "multilabel_margin_loss": (M, I([[0, -1, 1]] * 3)),
    "nll_loss": (M, I([0, 1, 2])), "nll_loss2d": (R(1, 3, 2, 2), I([[[0, 1], [2, 0]]])),
    "triplet_margin_loss": (M, M + 0.1, M - 0.1),
    **dict.fromkeys(("adaptive_avg_pool3d", "adaptive_max_pool3d", "avg_pool3d", "max_pool3d",
                     "fractional_max_pool3d", "replication_pad3d"), (VOLUME,)),
    "fractional_max_pool2d": (IMAGE,), "reflection_pad2d": (IMAGE,), "replication_pad2d": (IMAGE,),
    "reflection_pad1d": (R(1, 2, 6),), "replication_pad1d": (R(1, 2, 6),),
    "max_unpool2d": (R(1, 1, 2, 2), I([[[[0, 3], [8, 11]]]])),
    "max_unpool3d": (R(1, 1, 1, 1, 2), I([[[[[0, 3]]]]])),
    "grid_sampler": (IMAGE, R(1, 3, 3, 2)), "grid_sampler_2d": (IMAGE, R(1, 3, 3, 2)),
    "grid_sampler_3d": (VOLUME, R(1, 3, 3, 3, 3)), "stft": (R(16), R(4)),
    "view_as_complex": (R(3, 2),), "index_copy": (R(3, 2), R(1, 2), I([1])),
    "mv": (M, V), "bilinear": (R(2, 3), R(2, 4), R(5, 3, 4)), "group_norm": (R(2, 3, 4),),
    **dict.fromkeys(("linalg_householder_product", "orgqr", "quantile", "nanquantile"), (M, V)),
    "ormqr": (M, V, M),
    **dict.fromkeys(("cholesky", "cholesky_inverse", "inverse", "linalg_cholesky",
                     "linalg_cholesky_ex", "linalg_cond", "linalg_eigh", "linalg_eigvalsh",
                     "linalg_inv", "linalg_inv_ex", "linalg_matrix_rank"), (S(3),)),
    **dict.fromkeys(("cholesky_solve", "linalg_solve", "lu_solve", "triangular_solve",
                     "linalg_lstsq", "linalg_tensorsolve"), (S(3), M)),
}  # fmt: skip
TWO = frozenset(("mm matmul linalg_vecdot binary_cross_entropy binary_cross_entropy_with_logits "
                 "huber_loss kl_div l1_loss mse_loss poisson_nll_loss smooth_l1_loss "
                 "soft_margin_loss cdist polar cat stack einsum tensordot hstack").split()
                + ["chain of products"])  # fmt: skip
INTERNAL = frozenset(
    ("_convolution", "_native_multi_head_attention", "mkldnn_rnn_layer",
     "_grid_sampler_2d_cpu_fallback", "multilabel_margin_loss_forward",
     "fake_quantize_per_tensor_affine")
)  # fmt: skip
"""Entries of torch's lists that have no public function, or none here."""


def given(name: str) -> tuple[np.ndarray, ...]:
    return ARGUMENTS.get(name) or ((M, R(3, 3)) if name in TWO else (M,))


def names(types: Any) -> Any:
    return [str(dtype).rpartition(".")[2] for dtype in types]


def run(library: Any, name: str, dtype: str, region: str | None) -> Any:
    """The types of the results and of the gradients, or "an error"."""
    element = getattr(library, dtype)
    tensors = [library.tensor(array) for array in given(name)]
    tensors = [t.to(element).requires_grad_() if t.is_floating_point() else t for t in tensors]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with library.autocast("cpu", dtype=getattr(library, region)):
                result = CALLS[name](library, *tensors)
        except (RuntimeError, NotImplementedError):
            return "an error"
    results = list(flat(result))
    differentiable = [r for r in results if r.requires_grad]
    if differentiable:
        total = sum((r.abs() if r.is_complex() else r).float().sum() for r in differentiable)
        wanted = [t for t in tensors if t.requires_grad]
        grads = library.autograd.grad(total, wanted, allow_unused=True)
    else:
        grads = []
    return names(r.dtype for r in results), names(g.dtype for g in grads if g is not None)


def flat(value: Any) -> Any:
    if isinstance(value, tuple):
        for item in value:
            yield from flat(item)
    else:
        yield value


CASES = [
    *itertools.product(CALLS, TYPES, ["bfloat16"]),
    *itertools.product(CALLS, ["float32"], ["float16"]),
]


@pytest.mark.parametrize(("name", "dtype", "region"), CASES, ids=str)
def test_types(name: str, dtype: str, region: str) -> None:
    theirs = run(reference, name, dtype, region)
    assert run(flambeau, name, dtype, region) == theirs


def test_every_entry_of_the_lists_has_a_line() -> None:
    listed = {
        full.removeprefix("aten::").partition(".")[0]
        for full in reference._C._dispatch_get_all_op_names()
        if full.startswith("aten::")
        and reference._C._dispatch_has_kernel_for_dispatch_key(full, "AutocastCPU")
    }
    assert listed - set(CALLS) == INTERNAL


SETTINGS = {
    "available": lambda t: [t.amp.is_autocast_available(d) for d in ("cpu", "cuda", "meta", "mps")],
    "types": lambda t: names(t.get_autocast_dtype(d) for d in ("cpu", "cuda", "xpu", "hpu", "xla")),
    "default": lambda t: (t.is_autocast_enabled(), t.is_autocast_cache_enabled()),
    "no such device": lambda t: t.is_autocast_enabled("none"),
    "no autocast": lambda t: t.is_autocast_enabled("meta"),
    "no type": lambda t: t.get_autocast_dtype("vulkan"),
    "not a name": lambda t: t.get_autocast_dtype(3),
    "not a bool": lambda t: t.set_autocast_enabled("cpu", 1),
    "one argument": lambda t: t.set_autocast_enabled("cpu"),
    "not a type": lambda t: t.set_autocast_dtype("cpu", 3),
    "cache not a bool": lambda t: t.set_autocast_cache_enabled(1),
    "nesting": lambda t: (t.autocast_increment_nesting(), t.autocast_decrement_nesting()),
    "no device": lambda t: t.autocast(),
    "a region for meta": lambda t: t.autocast("meta", dtype=t.bfloat16),
    "not callable": lambda t: t.autocast("cpu")(3),
    "forward without a device": lambda t: t.amp.custom_fwd(device_type=3),
    "halves": lambda t: t.autocast("cpu")(t.cat)([t.ones(1).half(), t.ones(1).bfloat16()]),
    "growth": lambda t: t.amp.GradScaler("cpu", growth_factor=1.0),
    "backoff": lambda t: t.amp.GradScaler("cpu", backoff_factor=1.0),
    "a scaler's state": lambda t: t.amp.GradScaler("cpu").state_dict(),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_and_errors(name: str) -> None:
    def outcome(library: Any) -> Any:
        try:
            return SETTINGS[name](library)
        except Exception as error:
            return type(error), str(error).split("\n")[0]

    assert outcome(flambeau) == outcome(reference)


def scaled_training(library: Any, **options: Any) -> Any:
    """Scales, skipped steps and weights over 20 steps, of which every sixth has a bad gradient."""
    weight = library.tensor([1.0, -2.0], requires_grad=True)
    optimizer = library.optim.Adam([weight], lr=0.1)
    scaler = library.amp.GradScaler("cpu", **options)
    found = []
    for step in range(20):
        optimizer.zero_grad()
        bad = {5: float("inf"), 0: float("nan")}.get(step % 6, 1.0)
        scaler.scale((weight**2).sum() * bad).backward()
        if step % 2:
            scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        found.append((scaler.state_dict(), weight.tolist()))
    return found


@pytest.mark.parametrize("interval", [1, 2, 5])
@pytest.mark.parametrize("scale", [1.0, 2.0**16, 2.0**126])
def test_gradient_scaling(scale: float, interval: int) -> None:
    options = {"init_scale": scale, "growth_interval": interval, "growth_factor": 4.0}
    ours, theirs = (scaled_training(library, **options) for library in (flambeau, reference))
    for mine, other in zip(ours, theirs, strict=True):
        assert mine[0] == other[0]
        np.testing.assert_allclose(mine[1], other[1], rtol=1e-5, atol=1e-5)
