"""The operators of PyTorch's lists for autocast on CUDA: a call of each, and the word it goes by.

Run as a script, `python cuda_lists.py flambeau`, it prints the types that come out as JSON; with
`torch` instead, PyTorch's own (of its fake tensors, which need no GPU).
"""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any

M, V = (3, 3), (3,)
IMAGE, LINE, VOLUME = (1, 2, 6, 6), (1, 2, 6), (1, 2, 4, 4, 4)
INDEX = "int"  # an argument of integers: zeros of the shape that follows

Call = tuple[str, Any, tuple[Any, ...]]


def F(t: Any) -> Any:
    return t.nn.functional


def _pointwise(name: str) -> Call:
    return "float32", lambda t, a: getattr(t, name)(a), (M,)


def _loss(name: str, *shapes: Any) -> Call:
    return "float32", lambda t, *given: getattr(F(t), name)(*given), shapes or (M, M)


def _upsample(mode: str, shape: Any, **options: Any) -> Call:
    def call(t: Any, a: Any) -> Any:
        return F(t).interpolate(a, scale_factor=2, mode=mode, **options)

    return "float32", call, (shape,)


LISTS: dict[str, Call] = {
    # ---- the region's type
    "conv1d": ("lower", lambda t, *a: F(t).conv1d(*a), (LINE, (3, 2, 3), V)),
    "conv2d": ("lower", lambda t, *a: F(t).conv2d(*a), (IMAGE, (3, 2, 3, 3), V)),
    "conv3d": ("lower", lambda t, *a: F(t).conv3d(*a), (VOLUME, (3, 2, 3, 3, 3), V)),
    "conv_tbc": ("lower", lambda t, *a: t.conv_tbc(*a), ((5, 2, 3), (3, 3, 4), (4,))),
    "conv_transpose1d": ("lower", lambda t, *a: F(t).conv_transpose1d(*a), (LINE, (2, 3, 3))),
    "conv_transpose2d": ("lower", lambda t, *a: F(t).conv_transpose2d(*a), (IMAGE, (2, 3, 3, 3))),
    "conv_transpose3d": ("lower", lambda t, *a: F(t).conv_transpose3d(*a),
                         (VOLUME, (2, 3, 3, 3, 3))),
    "convolution": ("lower", lambda t, a, b, c: t.convolution(
        a, b, c, [1, 1], [0, 0], [1, 1], False, [0, 0], 1), (IMAGE, (3, 2, 3, 3), V)),
    "prelu": ("lower", lambda t, a, b: F(t).prelu(a, b), (M, (1,))),
    "addmm": ("lower", lambda t, *a: t.addmm(*a), (M, M, M)),
    "addmv": ("lower", lambda t, *a: t.addmv(*a), (V, M, V)),
    "addr": ("lower", lambda t, *a: t.addr(*a), (M, V, V)),
    "matmul": ("lower", lambda t, *a: t.matmul(*a), (M, M)),
    "einsum": ("lower", lambda t, a, b: t.einsum("ij,jk->ik", a, b), (M, M)),
    "mm": ("lower", lambda t, *a: t.mm(*a), (M, M)),
    "mv": ("lower", lambda t, *a: t.mv(*a), (M, V)),
    "linalg_vecdot": ("lower", lambda t, *a: t.linalg.vecdot(*a), (M, M)),
    "linear": ("lower", lambda t, *a: F(t).linear(*a), (M, M, V)),
    "addbmm": ("lower", lambda t, *a: t.addbmm(*a), ((2, 4), (3, 2, 5), (3, 5, 4))),
    "baddbmm": ("lower", lambda t, *a: t.baddbmm(*a), ((3, 2, 4), (3, 2, 5), (3, 5, 4))),
    "bmm": ("lower", lambda t, *a: t.bmm(*a), ((3, 2, 5), (3, 5, 4))),
    "chain_matmul": ("lower", lambda t, *a: t.chain_matmul(*a), (M, M, M)),
    "linalg_multi_dot": ("lower", lambda t, *a: t.linalg.multi_dot(list(a)), (M, M, M)),
    "lstm_cell": ("lower", lambda t, x, h, c, *w: t.lstm_cell(x, (h, c), *w),
                  ((2, 3), (2, 4), (2, 4), (16, 3), (16, 4), (16,), (16,))),
    "gru_cell": ("lower", lambda t, *a: t.gru_cell(*a),
                 ((2, 3), (2, 4), (12, 3), (12, 4), (12,), (12,))),
    "rnn_tanh_cell": ("lower", lambda t, *a: t.rnn_tanh_cell(*a), ((2, 3), (2, 4), (4, 3), (4, 4))),
    "rnn_relu_cell": ("lower", lambda t, *a: t.rnn_relu_cell(*a), ((2, 3), (2, 4), (4, 3), (4, 4))),
    "scaled_dot_product_attention": (
        "lower", lambda t, *a: F(t).scaled_dot_product_attention(*a), ((1, 2, 3, 4),) * 3),
    # ---- float32
    **{name: _pointwise(name) for name in (
        "acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan").split()},
    "pow.Tensor_Scalar": ("float32", lambda t, a: t.pow(a, 2), (M,)),
    "pow.Tensor_Tensor": ("float32", lambda t, a, b: t.pow(a, b), (M, M)),
    "pow.Scalar": ("float32", lambda t, a: t.pow(2, a), (M,)),
    "softplus": ("float32", lambda t, a: F(t).softplus(a), (M,)),
    "layer_norm": ("float32", lambda t, a, b: F(t).layer_norm(a, (3,), b), (M, V)),
    "native_layer_norm": ("float32", lambda t, a: t.native_layer_norm(a, (3,), None, None, 1e-5),
                          (M,)),
    "group_norm": ("float32", lambda t, a: F(t).group_norm(a, 1), ((2, 3, 4),)),
    "rms_norm": ("float32", lambda t, a, b: F(t).rms_norm(a, (3,), b), (M, V)),
    "frobenius_norm.dim": ("float32", lambda t, a: t.frobenius_norm(a, (0, 1)), (M,)),
    "nuclear_norm": ("float32", lambda t, a: t.nuclear_norm(a), (M,)),
    "nuclear_norm.dim": ("float32", lambda t, a: t.nuclear_norm(a, (0, 1)), (M,)),
    "cosine_similarity": _loss("cosine_similarity"),
    "poisson_nll_loss": _loss("poisson_nll_loss"),
    "cosine_embedding_loss": _loss("cosine_embedding_loss", M, M, V),
    "nll_loss": _loss("nll_loss", M, (INDEX, 3)),
    "nll_loss2d": _loss("nll_loss", (1, 3, 2, 2), (INDEX, 1, 2, 2)),
    "hinge_embedding_loss": _loss("hinge_embedding_loss"),
    "kl_div": ("float32", lambda t, a, b: F(t).kl_div(a, b, reduction="sum"), (M, M)),
    "l1_loss": _loss("l1_loss"), "smooth_l1_loss": _loss("smooth_l1_loss"),
    "huber_loss": _loss("huber_loss"), "mse_loss": _loss("mse_loss"),
    "margin_ranking_loss": _loss("margin_ranking_loss", V, V, V),
    "multilabel_margin_loss": _loss("multilabel_margin_loss", M, (INDEX, 3, 3)),
    "soft_margin_loss": _loss("soft_margin_loss"),
    "triplet_margin_loss": _loss("triplet_margin_loss", M, M, M),
    "multi_margin_loss": _loss("multi_margin_loss", M, (INDEX, 3)),
    "binary_cross_entropy_with_logits": _loss("binary_cross_entropy_with_logits"),
    "dist": ("float32", lambda t, *a: t.dist(*a), (M, M)),
    "pdist": ("float32", lambda t, a: F(t).pdist(a), (M,)),
    "cdist": ("float32", lambda t, *a: t.cdist(*a), (M, M)),
    "renorm": ("float32", lambda t, a: t.renorm(a, 2, 0, 1.0), (M,)),
    "logsumexp": ("float32", lambda t, a: t.logsumexp(a, 0), (M,)),
    "upsample_nearest1d": _upsample("nearest", LINE),
    "upsample_nearest2d": _upsample("nearest", IMAGE),
    "upsample_nearest3d": _upsample("nearest", VOLUME),
    "_upsample_nearest_exact1d": _upsample("nearest-exact", LINE),
    "_upsample_nearest_exact2d": _upsample("nearest-exact", IMAGE),
    "_upsample_nearest_exact3d": _upsample("nearest-exact", VOLUME),
    "upsample_linear1d": _upsample("linear", LINE),
    "upsample_bilinear2d": _upsample("bilinear", IMAGE),
    "_upsample_bilinear2d_aa": _upsample("bilinear", IMAGE, antialias=True),
    "upsample_trilinear3d": _upsample("trilinear", VOLUME),
    "upsample_bicubic2d": _upsample("bicubic", IMAGE),
    "_upsample_bicubic2d_aa": _upsample("bicubic", IMAGE, antialias=True),
    # ---- float32, unless a type is named
    "prod": ("float32_or_dtype", lambda t, a, **k: t.prod(a, **k), (M,)),
    "prod.dim_int": ("float32_or_dtype", lambda t, a, **k: t.prod(a, 0, **k), (M,)),
    "softmax.int": ("float32_or_dtype", lambda t, a, **k: t.softmax(a, 0, **k), (M,)),
    "log_softmax.int": ("float32_or_dtype", lambda t, a, **k: t.log_softmax(a, 0, **k), (M,)),
    "cumprod": ("float32_or_dtype", lambda t, a, **k: t.cumprod(a, 0, **k), (M,)),
    "cumsum": ("float32_or_dtype", lambda t, a, **k: t.cumsum(a, 0, **k), (M,)),
    "linalg_vector_norm": (
        "float32_or_dtype", lambda t, a, **k: t.linalg.vector_norm(a, **k), (M,)),
    "linalg_matrix_norm": (
        "float32_or_dtype", lambda t, a, **k: t.linalg.matrix_norm(a, 1, **k), (M,)),
    "linalg_matrix_norm.str_ord": (
        "float32_or_dtype", lambda t, a, **k: t.linalg.matrix_norm(a, **k), (M,)),
    "sum": ("float32_or_dtype", lambda t, a, **k: t.sum(a, **k), (M,)),
    "sum.dim_IntList": ("float32_or_dtype", lambda t, a, **k: t.sum(a, 0, **k), (M,)),
    "norm.Scalar": ("float32", lambda t, a: a.norm(), (M,)),
    "norm.ScalarOpt_dim": ("float32", lambda t, a: a.norm(2, 0), (M,)),
    # ---- the widest type
    "addcdiv": ("widest", lambda t, *a: t.addcdiv(*a), (M, M, M)),
    "addcmul": ("widest", lambda t, *a: t.addcmul(*a), (M, M, M)),
    "atan2": ("widest", lambda t, *a: t.atan2(*a), (M, M)),
    "bilinear": ("widest", lambda t, *a: F(t).bilinear(*a), ((2, 3), (2, 4), (5, 3, 4))),
    "cross": ("widest", lambda t, *a: t.cross(*a, dim=0), (M, M)),
    "grid_sampler": ("widest", lambda t, *a: F(t).grid_sample(*a, align_corners=False),
                     (IMAGE, (1, 3, 3, 2))),
    "index_put": ("widest", lambda t, a, i, b: t.index_put(a, (i,), b), (V, (INDEX, 2), (2,))),
    "tensordot": ("widest", lambda t, *a: t.tensordot(*a, 1), (M, M)),
    "scatter_add": ("widest", lambda t, a, i, b: t.scatter_add(a, 0, i, b), (V, (INDEX, 2), (2,))),
    "dot": ("widest", lambda t, *a: t.dot(*a), (V, V)),
    "vdot": ("widest", lambda t, *a: t.vdot(*a), (V, V)),
    # ---- an error
    "binary_cross_entropy": ("banned", lambda t, *a: F(t).binary_cross_entropy(*a), (M, M)),
    # ---- in no list: in the type that they are given, or as their operators choose
    "add": ("none", lambda t, *a: t.add(*a), (M, M)),
    "relu": ("none", lambda t, a: t.relu(a), (M,)), "sin": ("none", lambda t, a: t.sin(a), (M,)),
    "gelu": ("none", lambda t, a: F(t).gelu(a), (M,)),
    "mean": ("none", lambda t, a: t.mean(a), (M,)), "var": ("none", lambda t, a: t.var(a), (M,)),
    "cat": ("none", lambda t, *a: t.cat(a), (M, M)),
    "stack": ("none", lambda t, *a: t.stack(a), (M, M)),
    "max_pool2d": ("none", lambda t, a: F(t).max_pool2d(a, 2), (IMAGE,)),
    "sigmoid": ("none", lambda t, a: t.sigmoid(a), (M,)),
    "batch_norm": ("none", lambda t, a: F(t).batch_norm(a, None, None, training=True), (M,)),
    "cross_entropy": ("composed", lambda t, *a: F(t).cross_entropy(*a), (M, (INDEX, 3))),
    "cross_entropy of shares": ("composed", lambda t, *a: F(t).cross_entropy(*a), (M, M)),
    "softmin": ("composed", lambda t, a: F(t).softmin(a, 0), (M,)),
    "normalize": ("composed", lambda t, a: F(t).normalize(a), (M,)),
    "linalg.norm": ("composed", lambda t, a: t.linalg.norm(a), (M,)),
    "inner": ("composed", lambda t, a, b: t.inner(a, b), (M, M)),
    "outer": ("none", lambda t, a, b: t.outer(a, b), (V, V)),
    "std": ("none", lambda t, a: t.std(a), (M,)), "sort": ("none", lambda t, a: a.sort()[0], (M,)),
    "pow operator": ("composed", lambda t, a: a**2, (M,)),
    "matmul operator": ("composed", lambda t, a, b: a @ b, (M, M)),
    "pow_": ("none", lambda t, a: a.pow_(2), (M,)), "exp_": ("none", lambda t, a: a.exp_(), (M,)),
}  # fmt: skip

INTERNAL = frozenset((
    "_convolution", "_convolution.deprecated", "_scaled_dot_product_flash_attention",
    "_thnn_fused_gru_cell", "_thnn_fused_lstm_cell", "cudnn_convolution",
    "cudnn_convolution_transpose",
))  # fmt: skip
"""Entries of PyTorch's lists that only its own kernels call."""

TYPES = ("float32", "half", "mixed", "other half", "float64")
OTHER = {"float16": "bfloat16", "bfloat16": "float16"}


UNKNOWN = "unknown"
NEEDS_A_GPU = ("not linked with support", "not compiled with CUDA")
"""What PyTorch says where even its fake tensors need a GPU."""


def word_of(types: Any) -> list[str]:
    """The names of dtypes."""
    return [str(dtype).rpartition(".")[2] for dtype in types]


def arguments(t: Any, shapes: tuple[Any, ...], kind: str, region: str) -> list[Any]:
    """Tensors on `cuda:0`: floats of a kind of type, integers where a shape says so."""
    names = {"half": region, "other half": OTHER[region], "mixed": region}
    found = []
    for position, shape in enumerate(shapes):
        if shape[0] == INDEX:
            found.append(t.zeros(shape[1:], dtype=t.int64, device="cuda:0"))
            continue
        name = "float32" if kind == "mixed" and position else names.get(kind, kind)
        dtype = getattr(t, name)
        found.append(t.full(shape, 0.5, device="cuda:0").to(dtype))
    return found


def outcome(t: Any, name: str, kind: str, region: str, **options: Any) -> Any:
    """The names of the types that come out of a call, or "an error"."""
    _, call, shapes = LISTS[name]
    try:
        result = call(t, *arguments(t, shapes, kind, region), **options)
    except (RuntimeError, NotImplementedError, AssertionError) as error:
        text = str(error).split("\n")[0]
        return UNKNOWN if any(words in text for words in NEEDS_A_GPU) else f"an error: {text}"
    results = result if isinstance(result, (tuple, list)) else [result]
    return word_of(r.dtype for r in results)


def outcomes(t: Any) -> dict[str, Any]:
    """Of all calls, types and regions."""
    found: dict[str, Any] = {}
    for region in OTHER:
        t.set_autocast_dtype("cuda", getattr(t, region))
        for name, (word, *_) in LISTS.items():
            for kind in TYPES:
                found[f"{name} {kind} {region}"] = outcome(t, name, kind, region)
            if word == "float32_or_dtype":
                options = {"dtype": getattr(t, region)}
                found[f"{name} dtype {region}"] = outcome(t, name, "half", region, **options)
    return found


def main() -> None:
    warnings.simplefilter("ignore")
    if sys.argv[1] == "flambeau":
        import flambeau as t

        t.cuda.emulate()
        t.set_autocast_enabled("cuda", True)
        print(json.dumps(outcomes(t)))
        return
    import torch as t  # type: ignore[no-redef]
    from torch._subclasses.fake_tensor import FakeTensorMode

    t.set_autocast_enabled("cuda", True)
    with FakeTensorMode():
        print(json.dumps(outcomes(t)))


if __name__ == "__main__":
    main()
