"""What PyTorch has no deterministic kernel for on GPUs, by row: under
`use_deterministic_algorithms(True)` such a call raises or warns, here too, though the kernels here
give the same bits each time. The names are those that PyTorch's errors give its kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau._core.settings import Determinism, alert_not_deterministic

Condition = Callable[[tuple[Any, ...]], bool]
Alert = Callable[[tuple[Any, ...]], None]

ALWAYS = {
    "upsample_linear1d_backward": "upsample_linear1d_backward_out_cuda",
    "upsample_bicubic2d_backward": "upsample_bicubic2d_backward_out_cuda",
    "_upsample_bilinear2d_aa_backward": "upsample_bilinear2d_aa_backward_out_cuda",
    "_upsample_bicubic2d_aa_backward": "upsample_bicubic2d_aa_backward_out_cuda",
    "reflection_pad1d_backward": "reflection_pad1d_backward_out_cuda",
    "reflection_pad3d_backward": "reflection_pad3d_backward_out_cuda",
    "_adaptive_avg_pool2d_backward": "adaptive_avg_pool2d_backward_cuda",
    "_adaptive_avg_pool3d_backward": "adaptive_avg_pool3d_backward_cuda",
    "_avg_pool3d_backward": "avg_pool3d_backward_cuda",
    "_max_pool3d_backward": "max_pool3d_with_indices_backward_cuda",
    "grid_sampler_2d_backward": "grid_sampler_2d_backward_cuda",
    "grid_sampler_3d_backward": "grid_sampler_3d_backward_cuda",
    "_ctc_loss_backward": "ctc_loss_backward_gpu",
    "median.dim": "median CUDA with indices output",
    "nanmedian.dim": "median CUDA with indices output",
    "put": "put_",
    "index_reduce": "index_reduce_cuda",
}
SOMETIMES: dict[str, tuple[str, Condition]] = {
    "nll_loss2d": ("nll_loss2d_forward_out_cuda_template", lambda given: given[3] != 0),
    "_cross_entropy2d": ("nll_loss2d_forward_out_cuda_template", lambda given: given[3] != 0),
    "histc": ("_histc_cuda with floating point input", lambda given: given[0].is_floating_point()),
    "bincount": ("_bincount_cuda", lambda given: given[1] is not None),
    "scatter.reduce": ("scatter_reduce_cuda_kernel", lambda given: given[4] == "multiply"),
    "scatter.value_reduce": ("scatter_reduce_cuda_kernel", lambda given: given[4] == "multiply"),
    "scatter_reduce.two": ("scatter_reduce_cuda_prod_", lambda given: given[4] == "prod"),
}
"""The names, and for which arguments."""


def alert_of(row: str) -> Alert | None:
    """What is to be asked before a row's call, if something is."""
    if row in ALWAYS:
        name, concerned = ALWAYS[row], None
    elif row in SOMETIMES:
        name, concerned = SOMETIMES[row]
    else:
        return None

    def alert(given: tuple[Any, ...]) -> None:
        if Determinism.enabled and (concerned is None or concerned(given)):
            alert_not_deterministic(name)

    return alert
