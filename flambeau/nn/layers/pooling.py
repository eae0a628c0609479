"""Pooling: a window slides over the trailing dims."""

from __future__ import annotations

from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau.nn import functional as F
from flambeau.nn.layers.shown import shown
from flambeau.nn.layers.sizes import _ntuple, _single
from flambeau.nn.module import Module


class _MaxPoolNd(Module):
    """What max pooling layers share; the stride is the window's size by default."""

    __constants__ = [
        "kernel_size",
        "stride",
        "padding",
        "dilation",
        "return_indices",
        "ceil_mode",
    ]
    return_indices: bool
    ceil_mode: bool

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    extra_repr = shown("kernel_size", "stride", "padding", "dilation", "ceil_mode")


class MaxPool1d(_MaxPoolNd):
    """The largest value of each window of (N, C, L) or (C, L).

    >>> import flambeau as torch
    >>> torch.nn.MaxPool1d(2)(torch.tensor([[1.0, 5.0, 2.0, 3.0]]))
    tensor([[5., 3.]])
    """

    def forward(self, input: Tensor) -> Any:
        return F.max_pool1d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )


class MaxPool2d(_MaxPoolNd):
    """The largest value of each window of (N, C, H, W) or (C, H, W).

    kernel_size: the window, an int or one for each dim.
    stride: steps between windows; None takes `kernel_size`.
    padding: places on both sides that count as the lowest number.
    dilation: the distance of the places that a window reads.
    return_indices: also where each value was, for `MaxUnpool2d`.
    ceil_mode: whether a window may reach over the edge.

    Gives (N, C, H', W') or (C, H', W'), with floor((n + 2·padding - dilation·(kernel_size - 1) - 1)
    / stride + 1) for each of the sizes n; ceil instead of floor with `ceil_mode`.

    >>> import flambeau as torch
    >>> torch.nn.MaxPool2d(2)(torch.ones(1, 3, 8, 8)).shape
    torch.Size([1, 3, 4, 4])
    """

    def forward(self, input: Tensor) -> Any:
        return F.max_pool2d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )


class MaxPool3d(_MaxPoolNd):
    """The largest value of each window of (N, C, D, H, W) or (C, D, H, W).

    >>> import flambeau as torch
    >>> torch.nn.MaxPool3d(2)(torch.ones(1, 3, 4, 8, 8)).shape
    torch.Size([1, 3, 2, 4, 4])
    """

    def forward(self, input: Tensor) -> Any:
        return F.max_pool3d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )


class _MaxUnpoolNd(Module):
    """What the inverses of max pooling share."""

    _dims: int

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        spread = _ntuple(self._dims)
        self.kernel_size = spread(kernel_size)
        self.stride = spread(kernel_size if stride is None else stride)
        self.padding = spread(padding)

    extra_repr = shown("kernel_size", "stride", "padding")


class MaxUnpool1d(_MaxUnpoolNd):
    """Put pooled values back at their indices, zeros elsewhere: (N, C, L) or (C, L).

    >>> import flambeau as torch
    >>> pool = torch.nn.MaxPool1d(2, return_indices=True)
    >>> values, places = pool(torch.tensor([[1., 3., 7., 5.]]))
    >>> torch.nn.MaxUnpool1d(2)(values, places)
    tensor([[0., 3., 7., 0.]])
    """

    _dims = 1

    def forward(
        self, input: Tensor, indices: Tensor, output_size: list[int] | None = None
    ) -> Tensor:
        return F.max_unpool1d(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )


class MaxUnpool2d(_MaxUnpoolNd):
    """Put pooled values back at their indices, zeros elsewhere: (N, C, H, W) or (C, H, W).

    >>> import flambeau as torch
    >>> pool = torch.nn.MaxPool2d(2, return_indices=True)
    >>> torch.nn.MaxUnpool2d(2)(*pool(torch.arange(4.).reshape(1, 2, 2)))
    tensor([[[0., 0.],
             [0., 3.]]])
    """

    _dims = 2

    def forward(
        self, input: Tensor, indices: Tensor, output_size: list[int] | None = None
    ) -> Tensor:
        return F.max_unpool2d(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )


class MaxUnpool3d(_MaxUnpoolNd):
    """Put pooled values back at their indices, zeros elsewhere: (N, C, D, H, W), (C, D, H, W).

    >>> import flambeau as torch
    >>> pool = torch.nn.MaxPool3d(2, return_indices=True)
    >>> torch.nn.MaxUnpool3d(2)(*pool(torch.ones(1, 1, 2, 2, 2))).shape
    torch.Size([1, 1, 2, 2, 2])
    """

    _dims = 3

    def forward(
        self, input: Tensor, indices: Tensor, output_size: list[int] | None = None
    ) -> Tensor:
        return F.max_unpool3d(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )


class _AvgPoolNd(Module):
    """What average pooling layers share."""

    __constants__ = ["kernel_size", "stride", "padding", "ceil_mode", "count_include_pad"]

    extra_repr = shown("kernel_size", "stride", "padding")


class AvgPool1d(_AvgPoolNd):
    """The mean of each window of (N, C, L) or (C, L).

    >>> import flambeau as torch
    >>> torch.nn.AvgPool1d(2)(torch.tensor([[1.0, 5.0, 2.0, 4.0]]))
    tensor([[3., 3.]])
    """

    kernel_size: Any

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = _single(kernel_size)
        self.stride = _single(kernel_size if stride is None else stride)
        self.padding = _single(padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
        )


class _AvgPoolWithDivisor(_AvgPoolNd):
    """Average pooling whose divisor can be given."""

    __constants__ = [*_AvgPoolNd.__constants__, "divisor_override"]

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("padding", 0)
        self.__dict__.setdefault("ceil_mode", False)
        self.__dict__.setdefault("count_include_pad", True)


class AvgPool2d(_AvgPoolWithDivisor):
    """The mean of each window of (N, C, H, W) or (C, H, W).

    >>> import flambeau as torch
    >>> torch.nn.AvgPool2d(2)(torch.ones(1, 3, 8, 8)).shape
    torch.Size([1, 3, 4, 4])
    """

    kernel_size: Any

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool2d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )


class AvgPool3d(_AvgPoolWithDivisor):
    """The mean of each window of (N, C, D, H, W) or (C, D, H, W).

    >>> import flambeau as torch
    >>> torch.nn.AvgPool3d(2)(torch.ones(1, 3, 4, 8, 8)).shape
    torch.Size([1, 3, 2, 4, 4])
    """

    kernel_size: Any

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool3d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )


class _LPPoolNd(Module):
    """What power-average pooling layers share: (Σ xᵖ)^(1/p) of each window."""

    __constants__ = ["norm_type", "kernel_size", "stride", "ceil_mode"]

    def __init__(
        self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
    ) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    extra_repr = shown("norm_type", "kernel_size", "stride", "ceil_mode")


class LPPool1d(_LPPoolNd):
    """Power-average pooling of (N, C, L) or (C, L).

    >>> import flambeau as torch
    >>> torch.nn.LPPool1d(2, 2)(torch.tensor([[3., 4., 6., 8.]]))
    tensor([[ 5., 10.]])
    """

    norm_type: float

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool1d(
            input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode
        )


class LPPool2d(_LPPoolNd):
    """Power-average pooling of (N, C, H, W) or (C, H, W).

    >>> import flambeau as torch
    >>> torch.nn.LPPool2d(2, 2)(torch.ones(1, 3, 4, 4)).shape
    torch.Size([1, 3, 2, 2])
    """

    norm_type: float

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool2d(
            input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode
        )


class LPPool3d(_LPPoolNd):
    """Power-average pooling of (N, C, D, H, W) or (C, D, H, W).

    >>> import flambeau as torch
    >>> torch.nn.LPPool3d(2, 2)(torch.ones(1, 3, 4, 4, 4)).shape
    torch.Size([1, 3, 2, 2, 2])
    """

    norm_type: float

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool3d(
            input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode
        )


class _AdaptiveMaxPoolNd(Module):
    """What adaptive max pooling layers share: the output's size is given, windows follow."""

    __constants__ = ["output_size", "return_indices"]
    return_indices: bool

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    extra_repr = shown("output_size")


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """Max pooling of (N, C, L) or (C, L) to a length.

    >>> import flambeau as torch
    >>> torch.nn.AdaptiveMaxPool1d(2)(torch.tensor([[1., 3., 7., 5.]]))
    tensor([[3., 7.]])
    """

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool1d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """Max pooling of (N, C, H, W) or (C, H, W) to a size; None keeps a dim.

    >>> import flambeau as torch
    >>> torch.nn.AdaptiveMaxPool2d((2, None))(torch.ones(2, 3, 7, 5)).shape
    torch.Size([2, 3, 2, 5])
    """

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool2d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """Max pooling of (N, C, D, H, W) or (C, D, H, W) to a size; None keeps a dim.

    >>> import flambeau as torch
    >>> torch.nn.AdaptiveMaxPool3d(2)(torch.ones(1, 3, 4, 8, 8)).shape
    torch.Size([1, 3, 2, 2, 2])
    """

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool3d(input, self.output_size, self.return_indices)


class _AdaptiveAvgPoolNd(Module):
    """What adaptive average pooling layers share."""

    __constants__ = ["output_size"]

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    extra_repr = shown("output_size")


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """Average pooling of (N, C, L) or (C, L) to a length.

    >>> import flambeau as torch
    >>> torch.nn.AdaptiveAvgPool1d(1)(torch.tensor([[1.0, 3.0]]))
    tensor([[2.]])
    """

    output_size: Any

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """Average pooling of (N, C, H, W) or (C, H, W) to a size; None keeps a dim.

    >>> import flambeau as torch
    >>> torch.nn.AdaptiveAvgPool2d(1)(torch.ones(2, 3, 7, 5)).shape
    torch.Size([2, 3, 1, 1])
    """

    output_size: Any

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool2d(input, self.output_size)


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """Average pooling of (N, C, D, H, W) or (C, D, H, W) to a size; None keeps a dim.

    >>> import flambeau as torch
    >>> torch.nn.AdaptiveAvgPool3d((None, 2, 2))(torch.ones(1, 3, 4, 8, 8)).shape
    torch.Size([1, 3, 4, 2, 2])
    """

    output_size: Any

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool3d(input, self.output_size)


class _FractionalMaxPoolNd(Module):
    """Max pooling over windows at pseudo-random places (Graham, 2014)."""

    __constants__ = ["kernel_size", "return_indices", "output_size", "output_ratio"]
    _dims: int

    def __init__(
        self,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Any = None,
    ) -> None:
        super().__init__()
        spread = _ntuple(self._dims)
        self.kernel_size = spread(kernel_size)
        if self._dims == 3 and min(self.kernel_size, default=1) <= 0:
            raise ValueError(f"kernel_size must be greater than 0, but got {kernel_size}")
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else spread(output_size)
        self.output_ratio = None if output_ratio is None else spread(output_ratio)
        if output_size is None and output_ratio is None:
            raise ValueError(
                f"{type(self).__name__} requires specifying either an output size, or a pooling "
                "ratio"
            )
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if not all(0 < ratio < 1 for ratio in self.output_ratio or ()):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    """Fractional max pooling of (N, C, H, W) or (C, H, W).

    >>> import flambeau as torch
    >>> torch.nn.FractionalMaxPool2d(2, output_size=3)(torch.ones(1, 4, 8, 8)).shape
    torch.Size([1, 4, 3, 3])
    """

    _dims = 2

    def forward(self, input: Tensor) -> Any:
        return F.fractional_max_pool2d(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            _random_samples=self._random_samples,
        )


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """Fractional max pooling of (N, C, D, H, W) or (C, D, H, W).

    >>> import flambeau as torch
    >>> torch.nn.FractionalMaxPool3d(2, output_ratio=0.5)(torch.ones(1, 4, 8, 8, 8)).shape
    torch.Size([1, 4, 4, 4, 4])
    """

    _dims = 3

    def forward(self, input: Tensor) -> Any:
        return F.fractional_max_pool3d(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            _random_samples=self._random_samples,
        )
