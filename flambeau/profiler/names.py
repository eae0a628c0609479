"""From flambeau's rows to the operators that PyTorch's profiler shows.

Most names are the same: `mul` is `aten::mul`. Some rows do in one pass what is a chain of operators
in PyTorch; such a row is shown as that chain, one within the other, so that what is looked for by
PyTorch's names is found. Rows that PyTorch has not keep their own names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

CHAINS = {
    "linear": "linear addmm",
    "linear_no_bias": "linear matmul mm",
    "linear_nd": "linear addmm",
    "linear_nd_no_bias": "linear matmul mm",
    "softmax": "softmax _softmax",
    "log_softmax": "log_softmax _log_softmax",
    "convolution": "convolution _convolution",
    "attention": "scaled_dot_product_attention _scaled_dot_product_flash_attention_for_cpu",
    "attention_backward": "_scaled_dot_product_flash_attention_for_cpu_backward",
    "cross_entropy": "cross_entropy_loss",
    "cross_entropy2d": "cross_entropy_loss",
    "clamp_both": "clamp",
    "clamp_both_tensors": "clamp",
    "clamp_low": "clamp_min",
    "clamp_low_tensor": "clamp_min",
    "clamp_high": "clamp_max",
    "clamp_high_tensor": "clamp_max",
    "div_floor": "div",
    "div_trunc": "div",
    "gelu_tanh": "gelu",
    "logit_eps": "logit",
    "copied": "clone",
    "split_size": "split",
    "view_dtype": "view",
    "adjoint_times": "mm",
    "times_adjoint": "mm",
    "matmul_dot": "matmul dot",
    "matmul_mv": "matmul mv",
    "to_copy": "_to_copy",
    "unsafe_view": "_unsafe_view",
    "max_pool2d": "max_pool2d max_pool2d_with_indices",
    "max_pool3d": "max_pool3d max_pool3d_with_indices",
    "relu_grad": "threshold_backward",
    "threshold_grad": "threshold_backward",
    "gelu_slope": "gelu_backward",
    "gelu_tanh_slope": "gelu_backward",
    "silu_slope": "silu_backward",
    "sigmoid_slope": "sigmoid_backward",
    "tanh_slope": "tanh_backward",
    "mish_slope": "mish_backward",
    "softmax_backward_data": "_softmax_backward_data",
    "log_softmax_backward_data": "_log_softmax_backward_data",
    "lstm_layer": "mkldnn_rnn_layer",
    "fft_c2c": "_fft_c2c",
    "fft_c2r": "_fft_c2r",
    "fft_r2c": "_fft_r2c",
    "cdist_forward": "_cdist_forward",
    "pdist_forward": "_pdist_forward",
    "prelu_kernel": "prelu _prelu_kernel",
    "upsample_nearest_exact1d": "_upsample_nearest_exact1d",
    "upsample_nearest_exact2d": "_upsample_nearest_exact2d",
    "upsample_nearest_exact3d": "_upsample_nearest_exact3d",
    "upsample_bilinear2d_aa": "_upsample_bilinear2d_aa",
    "upsample_bicubic2d_aa": "_upsample_bicubic2d_aa",
    "adaptive_avg_pool2d_backward": "_adaptive_avg_pool2d_backward",
    "nn.functional.logsigmoid": "log_sigmoid",
}
"""Row -> PyTorch's operators, the outermost first."""

_known: dict[str, tuple[str, ...]] = {}


def chain(row: str) -> tuple[str, ...]:
    """The keys of a row's events, the outermost first.

    >>> chain("mul"), chain("linear"), chain("linalg.det")
    (('aten::mul',), ('aten::linear', 'aten::addmm'), ('aten::linalg_det',))
    """
    found = _known.get(row)
    if found is None:
        plain = row.removeprefix("nn.functional.").replace(".", "_")
        found = tuple(f"aten::{name}" for name in CHAINS.get(row, plain).split())
        _known[row] = found
    return found


_BY_COUNT = {
    2: "cat clone gelu index permute reshape stack view",
    3: (
        "_log_softmax _softmax add add_ argmax bernoulli_ chunk copy_ cumsum dropout expand "
        "linear log_softmax rsub select softmax sort split sub sub_ transpose"
    ),
    4: "gather mean normal_ std sum uniform_ var",
    5: (
        "addmm addmv arange baddbmm embedding linalg_norm native_layer_norm ones rand randn "
        "slice to zeros"
    ),
    6: (
        "cross_entropy_loss empty empty_like full layer_norm max_pool2d "
        "max_pool2d_with_indices ones_like randn_like zeros_like"
    ),
    7: "_scaled_dot_product_flash_attention_for_cpu conv2d",
    8: "native_batch_norm scaled_dot_product_attention",
    9: "batch_norm convolution",
    13: "_convolution",
}
ARGUMENTS = {name: count for count, names in _BY_COUNT.items() for name in names.split()}
"""How many arguments PyTorch's operator has: those that are no tensors have the shape []."""

WITHOUT_DIM = {"sum": 2, "mean": 2}
"""The same for the overload of the whole tensor."""

Shapes = list[list[int]]


def _addmm(shapes: Shapes) -> Shapes:
    features, matrix = shapes[0], shapes[1]
    rows = 1
    for n in features[:-1]:
        rows *= n
    return [shapes[2], [rows, features[-1]], matrix[::-1], [], []]


def _mm(shapes: Shapes) -> Shapes:
    return _addmm([*shapes[:2], []])[1:3]


def _flipped(shape: list[int]) -> list[int]:
    return [*shape[:-2], *shape[:-3:-1]]


def _batch_norm(shapes: Shapes) -> Shapes:
    """`batch_norm(input, running_mean, running_var, weight, bias, ...)`: PyTorch's operator takes
    weight and bias first."""
    statistics, affine = shapes[1:3], shapes[3:5]
    affine += [[] for _ in range(2 - len(affine))]
    return [shapes[0], *affine, *statistics, [], [], [], []]


SHAPES: dict[tuple[str, str], Callable[[Shapes], Shapes]] = {
    ("linear", "addmm"): _addmm,
    ("linear_nd", "addmm"): _addmm,
    ("linear_no_bias", "matmul"): lambda shapes: [shapes[0], _flipped(shapes[1])],
    ("linear_nd_no_bias", "matmul"): lambda shapes: [shapes[0], _flipped(shapes[1])],
    ("linear_no_bias", "mm"): _mm,
    ("linear_nd_no_bias", "mm"): _mm,
    ("batch_norm", "batch_norm"): _batch_norm,
    ("einsum", "einsum"): lambda shapes: [[], [], []],
    ("adjoint_times", "mm"): lambda shapes: [_flipped(shapes[0]), shapes[1]],
    ("times_adjoint", "mm"): lambda shapes: [shapes[0], _flipped(shapes[1])],
}
"""(row, operator of its chain) -> the operator's shapes, where they are not the row's."""


def shapes_for(row: str, key: str, shapes: Shapes, values: tuple[Any, ...]) -> Shapes:
    """The shapes of one operator of a row's chain, as many as PyTorch's operator has arguments.

    shapes: those of the row's arguments; values: the arguments.
    """
    name = key.removeprefix("aten::")
    change = SHAPES.get((row, name))
    if change is not None:
        return change(shapes)
    count = ARGUMENTS.get(name, len(shapes))
    if name in WITHOUT_DIM and (len(values) < 2 or values[1] is None):  # noqa: PLR2004
        count = WITHOUT_DIM[name]
    return [*shapes[:count], *[[] for _ in range(count - len(shapes))]]
