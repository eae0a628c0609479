"""Activations: element by element, or softmax along a dim."""

from __future__ import annotations

import warnings
from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau.nn import functional as F
from flambeau.nn import init
from flambeau.nn.layers.shown import shown
from flambeau.nn.module import Module
from flambeau.nn.parameter import empty_parameter


class _Activation(Module):
    """An activation that can write its result over its input."""

    __constants__ = ["inplace"]
    inplace: bool

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    extra_repr = shown("inplace")


class Threshold(_Activation):
    """x where x > threshold, else value.

    Takes any shape; the result has the same.

    >>> import flambeau as torch
    >>> torch.nn.Threshold(0.5, 9.0)(torch.tensor([0.2, 0.7]))
    tensor([9.0000, 0.7000])
    """

    __constants__ = ["threshold", "value", "inplace"]

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.threshold = threshold
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)

    extra_repr = shown("threshold", "value", "inplace")


class ReLU(_Activation):
    """max(x, 0).

    Takes any shape; the result has the same.

    >>> import flambeau as torch
    >>> torch.nn.ReLU()(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(input, inplace=self.inplace)


class RReLU(_Activation):
    """Leaky ReLU with slopes drawn from [lower, upper] while training, else their mean.

    Takes any shape; the result has the same.

    >>> import flambeau as torch
    >>> torch.nn.RReLU(0.1, 0.3).eval()(torch.tensor([-1., 1.]))
    tensor([-0.2000,  1.0000])
    """

    __constants__ = ["lower", "upper", "inplace"]

    def __init__(
        self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False
    ) -> None:
        super().__init__(inplace)
        self.lower = lower
        self.upper = upper

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    extra_repr = shown("lower", "upper", "inplace")


class Hardtanh(_Activation):
    """x, limited to [min_val, max_val].

    Takes any shape; the result has the same.

    >>> import flambeau as torch
    >>> torch.nn.Hardtanh()(torch.tensor([-3.0, 0.5]))
    tensor([-1.0000,  0.5000])
    """

    __constants__ = ["min_val", "max_val", "inplace"]

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        super().__init__(inplace)
        if min_value is not None:
            _renamed("min_value", "min_val")
            min_val = min_value
        if max_value is not None:
            _renamed("max_value", "max_val")
            max_val = max_value
        self.min_val = min_val
        self.max_val = max_val
        if max_val <= min_val:
            raise AssertionError(f"max_val ({max_val}) must be greater than min_val ({min_val})")

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    extra_repr = shown("min_val", "max_val", "inplace")


def _renamed(old: str, new: str) -> None:
    warnings.warn(
        f"keyword argument `{old}` is deprecated and renamed to `{new}`",
        FutureWarning,
        stacklevel=3,
    )


class ReLU6(Hardtanh):
    """min(max(x, 0), 6).

    Takes any shape; the result has the same.

    >>> import flambeau as torch
    >>> torch.nn.ReLU6()(torch.tensor([-1.0, 9.0]))
    tensor([0., 6.])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    extra_repr = shown("inplace")


class Sigmoid(Module):
    """1 / (1 + exp(-x)).

    Takes any shape; the result has the same.

    >>> import flambeau as torch
    >>> torch.nn.Sigmoid()(torch.tensor([0.0, 2.0]))
    tensor([0.5000, 0.8808])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.sigmoid(input)


class Tanh(Module):
    """tanh(x).

    Takes any shape; the result has the same.

    >>> import flambeau as torch
    >>> torch.nn.Tanh()(torch.tensor([0.0, 2.0]))
    tensor([0.0000, 0.9640])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.tanh(input)


class Hardsigmoid(_Activation):
    """min(max(x / 6 + 1/2, 0), 1).

    Takes any shape; the result has the same.

    >>> import flambeau as torch
    >>> torch.nn.Hardsigmoid()(torch.tensor([-3.0, 0.0]))
    tensor([0.0000, 0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.hardsigmoid(input, self.inplace)

    extra_repr = shown()


class Hardswish(_Activation):
    """x · hardsigmoid(x).

    Takes any shape; the result has the same.

    >>> import flambeau as torch
    >>> torch.nn.Hardswish()(torch.tensor([-3.0, 3.0]))
    tensor([-0., 3.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.hardswish(input, self.inplace)

    extra_repr = shown()


class SiLU(_Activation):
    """x · sigmoid(x).

    Takes any shape; the result has the same.

    >>> import flambeau as torch
    >>> torch.nn.SiLU()(torch.tensor([-1.0, 2.0]))
    tensor([-0.2689,  1.7616])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.silu(input, inplace=self.inplace)


class Mish(_Activation):
    """x · tanh(softplus(x)).

    Takes any shape; the result has the same.

    >>> import flambeau as torch
    >>> torch.nn.Mish()(torch.tensor([-1.0, 2.0]))
    tensor([-0.3034,  1.9440])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.mish(input, inplace=self.inplace)


class ELU(_Activation):
    """x where x > 0, else alpha · (exp(x) - 1).

    Takes any shape; the result has the same.

    >>> import flambeau as torch
    >>> torch.nn.ELU()(torch.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """

    __constants__ = ["alpha", "inplace"]

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.alpha = alpha

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha, self.inplace)

    extra_repr = shown("alpha", "inplace")


class CELU(_Activation):
    """max(x, 0) + min(0, alpha · (exp(x / alpha) - 1)).

    Takes any shape; the result has the same.

    >>> import flambeau as torch
    >>> torch.nn.CELU()(torch.tensor([-1., 2.]))
    tensor([-0.6321,  2.0000])
    """

    __constants__ = ["alpha", "inplace"]

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.alpha = alpha

    def forward(self, input: Tensor) -> Tensor:
        return F.celu(input, self.alpha, self.inplace)

    extra_repr = shown("alpha", "inplace")


class SELU(_Activation):
    """ELU scaled so that mean 0 and variance 1 are a fixed point (Klambauer et al., 2017).

    Takes any shape; the result has the same.

    >>> import flambeau as torch
    >>> torch.nn.SELU()(torch.tensor([-1., 1.]))
    tensor([-1.1113,  1.0507])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.selu(input, self.inplace)


class GLU(Module):
    """The first half along `dim`, times the sigmoid of the second.

    >>> import flambeau as torch
    >>> torch.nn.GLU()(torch.ones(2, 6)).shape
    torch.Size([2, 3])
    """

    __constants__ = ["dim"]
    dim: int

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)

    extra_repr = shown("dim")


class GELU(Module):
    """x · Φ(x) with Φ of the standard normal, or its "tanh" approximation.

    Takes any shape; the result has the same.

    >>> import flambeau as torch
    >>> torch.nn.GELU()(torch.tensor([-1.0, 2.0]))
    tensor([-0.1587,  1.9545])
    """

    __constants__ = ["approximate"]
    approximate: str

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class Hardshrink(Module):
    """x where |x| > lambd, else 0.

    Takes any shape; the result has the same.

    >>> import flambeau as torch
    >>> torch.nn.Hardshrink()(torch.tensor([-1.0, 0.2]))
    tensor([-1.,  0.])
    """

    __constants__ = ["lambd"]
    lambd: float

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return F.hardshrink(input, self.lambd)

    extra_repr = shown(plain=("lambd",))


class LeakyReLU(_Activation):
    """x where x > 0, else negative_slope · x.

    Takes any shape; the result has the same.

    >>> import flambeau as torch
    >>> torch.nn.LeakyReLU(0.1)(torch.tensor([-1.0, 2.0]))
    tensor([-0.1000,  2.0000])
    """

    __constants__ = ["inplace", "negative_slope"]

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.negative_slope = negative_slope

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    extra_repr = shown("negative_slope", "inplace")


class LogSigmoid(Module):
    """log(sigmoid(x)).

    Takes any shape; the result has the same.

    >>> import flambeau as torch
    >>> torch.nn.LogSigmoid()(torch.tensor([0.0, -200.0]))
    tensor([  -0.6931, -200.0000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.logsigmoid(input)


class Softplus(Module):
    """log(1 + exp(beta · x)) / beta; x itself where beta · x > threshold.

    Takes any shape; the result has the same.

    >>> import flambeau as torch
    >>> torch.nn.Softplus()(torch.tensor([0.0, 30.0]))
    tensor([ 0.6931, 30.0000])
    """

    __constants__ = ["beta", "threshold"]
    beta: float
    threshold: float

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)

    extra_repr = shown("beta", "threshold")


class Softshrink(Module):
    """x moved towards 0 by lambd.

    Takes any shape; the result has the same.

    >>> import flambeau as torch
    >>> torch.nn.Softshrink()(torch.tensor([-1.0, 0.2]))
    tensor([-0.5000,  0.0000])
    """

    __constants__ = ["lambd"]
    lambd: float

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return F.softshrink(input, self.lambd)

    extra_repr = shown(plain=("lambd",))


class PReLU(Module):
    """Leaky ReLU with a slope to be learned, one or one per channel.

    Shapes (N, C, *) where there is a slope per channel, else any; the result has the same.

    >>> import flambeau as torch
    >>> torch.nn.PReLU()(torch.tensor([-1.0, 2.0])).detach()
    tensor([-0.2500,  2.0000])
    """

    __constants__ = ["num_parameters"]
    num_parameters: int

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = empty_parameter((num_parameters,), dtype, device)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """All slopes `init`."""
        init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)

    extra_repr = shown("num_parameters")


class Softsign(Module):
    """x / (1 + |x|).

    Takes any shape; the result has the same.

    >>> import flambeau as torch
    >>> torch.nn.Softsign()(torch.tensor([-1.0, 1.0]))
    tensor([-0.5000,  0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softsign(input)


class Tanhshrink(Module):
    """x - tanh(x).

    Takes any shape; the result has the same.

    >>> import flambeau as torch
    >>> torch.nn.Tanhshrink()(torch.tensor([0., 1.]))
    tensor([0.0000, 0.2384])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.tanhshrink(input)


class _AlongDim(Module):
    """What the softmax family shares; without `dim` it is guessed, with a warning."""

    __constants__ = ["dim"]
    dim: int | None

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("dim", None)

    extra_repr = shown("dim")


class Softmin(_AlongDim):
    """softmax(-x).

    Takes any shape; the result has the same.

    >>> import flambeau as torch
    >>> torch.nn.Softmin(dim=0)(torch.tensor([0., 1.]))
    tensor([0.7311, 0.2689])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmin(input, self.dim, _stacklevel=5)


class Softmax(_AlongDim):
    """exp(x) / Σ exp(x) along `dim`.

    >>> import flambeau as torch
    >>> torch.nn.Softmax(dim=-1)(torch.zeros(1, 4))
    tensor([[0.2500, 0.2500, 0.2500, 0.2500]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim, _stacklevel=5)


class LogSoftmax(_AlongDim):
    """log(softmax(x)) along `dim`.

    >>> import flambeau as torch
    >>> torch.nn.LogSoftmax(dim=-1)(torch.zeros(1, 2))
    tensor([[-0.6931, -0.6931]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim, _stacklevel=5)


class Softmax2d(Module):
    """Softmax over the channels of (N, C, H, W) or (C, H, W).

    >>> import flambeau as torch
    >>> torch.nn.Softmax2d()(torch.zeros(1, 4, 2, 2)).sum(1)
    tensor([[[1., 1.],
             [1., 1.]]])
    """

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.ndim}D instead")
        return F.softmax(input, -3, _stacklevel=5)
