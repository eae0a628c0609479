"""Ways to fill parameters before training; each fills its tensor in place and returns it.

Random fills draw from PyTorch's streams in PyTorch's order, so that equal seeds give equal weights.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from typing import Any

from flambeau._core.doc_text import with_example
from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.grad_mode import no_grad

GAINS: dict[str, float] = {
    "linear": 1,
    "conv1d": 1,
    "conv2d": 1,
    "conv3d": 1,
    "conv_transpose1d": 1,
    "conv_transpose2d": 1,
    "conv_transpose3d": 1,
    "sigmoid": 1,
    "tanh": 5.0 / 3,
    "relu": math.sqrt(2.0),
    "selu": 3.0 / 4,
}
EMPTY = "Initializing zero-element tensors is a no-op"


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor by which a layer's standard deviation grows to keep variance through it.

    `param`: the negative slope of "leaky_relu", 0.01 by default, for which the gain is
    sqrt(2 / (1 + slope^2)).

    >>> import flambeau as torch
    >>> torch.nn.init.calculate_gain("tanh")
    1.6666666666666667
    """
    if isinstance(nonlinearity, str) and nonlinearity in GAINS:
        return GAINS[nonlinearity]
    if nonlinearity != "leaky_relu":
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    if param is None:
        slope = 0.01
    elif isinstance(param, bool) or not isinstance(param, (int, float)):
        raise ValueError(f"negative_slope {param} not a valid number")
    else:
        slope = param
    return math.sqrt(2.0 / (1 + slope**2))


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Uniform on [a, b).

    >>> import flambeau as torch
    >>> torch.nn.init.uniform_(torch.empty(2, 3), -1.0, 1.0).shape
    torch.Size([2, 3])
    """
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)  # type: ignore[no-any-return]


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Normal with this mean and standard deviation.

    >>> import flambeau as torch
    >>> torch.nn.init.normal_(torch.empty(2, 3)).shape
    torch.Size([2, 3])
    """
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)  # type: ignore[no-any-return]


def constant_(tensor: Tensor, val: float) -> Tensor:
    """All `val`.

    >>> import flambeau as torch
    >>> torch.nn.init.constant_(torch.empty(2), 0.5)
    tensor([0.5000, 0.5000])
    """
    with no_grad():
        return tensor.fill_(val)  # type: ignore[no-any-return]


def ones_(tensor: Tensor) -> Tensor:
    """All 1.

    >>> import flambeau as torch
    >>> torch.nn.init.ones_(torch.empty(2))
    tensor([1., 1.])
    """
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """All 0.

    >>> import flambeau as torch
    >>> torch.nn.init.zeros_(torch.empty(2))
    tensor([0., 0.])
    """
    with no_grad():
        return tensor.zero_()  # type: ignore[no-any-return]


def eye_(tensor: Tensor) -> Tensor:
    """Ones on the diagonal of a matrix, zeros elsewhere.

    >>> import flambeau as torch
    >>> torch.nn.init.eye_(torch.empty(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with no_grad():
        tensor.zero_()
        for place in range(min(tensor.shape)):
            tensor[place, place] = 1
    return tensor


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Convolution weights (out, in, ...) that pass each channel through, in every group.

    >>> import flambeau as torch
    >>> torch.nn.init.dirac_(torch.empty(2, 2, 1)).squeeze()
    tensor([[1., 0.],
            [0., 1.]])
    """
    if tensor.ndimension() not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    out_channels, in_channels, *kernel = tensor.shape
    if out_channels % groups:
        raise ValueError("dim 0 must be divisible by groups")
    group_size = out_channels // groups
    center = tuple(size // 2 for size in kernel)
    with no_grad():
        tensor.zero_()
        for group in range(groups):
            for channel in range(min(group_size, in_channels)):
                tensor[(group * group_size + channel, channel, *center)] = 1
    return tensor


# ---- by fan


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """How many inputs feed an output, and how many outputs an input feeds."""
    if tensor.dim() < 2:
        raise ValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions"
        )
    shape = tensor.shape
    field = math.prod(shape[2:])
    return shape[1] * field, shape[0] * field


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    mode = mode.lower()
    modes = ["fan_in", "fan_out"]
    if mode not in modes:
        raise ValueError(f"Mode {mode} not supported, please use one of {modes}")
    return _calculate_fan_in_and_fan_out(tensor)[modes.index(mode)]


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Uniform on ±gain·sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio, 2010).

    >>> import flambeau as torch
    >>> torch.nn.init.xavier_uniform_(torch.empty(2, 3)).abs().max() <= (6 / 5) ** 0.5
    tensor(True)
    """
    std = _xavier_std(tensor, gain)
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Normal with std gain·sqrt(2 / (fan_in + fan_out)) (Glorot and Bengio, 2010).

    >>> import flambeau as torch
    >>> torch.nn.init.xavier_normal_(torch.empty(3, 5)).shape
    torch.Size([3, 5])
    """
    return normal_(tensor, 0.0, _xavier_std(tensor, gain), generator)


def _xavier_std(tensor: Tensor, gain: float) -> float:
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return gain * math.sqrt(2.0 / float(fan_in + fan_out))


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """Uniform on ±gain·sqrt(3 / fan) (He et al., 2015); `a` is the slope of a leaky ReLU.

    >>> import flambeau as torch
    >>> torch.nn.init.kaiming_uniform_(torch.empty(2, 3)).abs().max() <= 2 ** 0.5
    tensor(True)
    """
    if 0 in tensor.shape:
        warnings.warn(EMPTY, stacklevel=2)
        return tensor
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """Normal with std gain / sqrt(fan) (He et al., 2015).

    >>> import flambeau as torch
    >>> torch.nn.init.kaiming_normal_(torch.empty(3, 5)).shape
    torch.Size([3, 5])
    """
    if 0 in tensor.shape:
        warnings.warn(EMPTY, stacklevel=2)
        return tensor
    return normal_(tensor, 0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    fan = _calculate_correct_fan(tensor, mode)
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


# ---- truncated normal

LIKELY = 0.3
TOO_FAR = (
    "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may "
    "be incorrect."
)


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Any = None,
) -> Tensor:
    """Normal, with values outside [a, b] drawn again.

    Where less than 30 % of the normal lies in [a, b], candidates are uniform and accepted in
    proportion to the density. On a CUDA device, where to look at what was drawn is to wait for it,
    numbers are made by the inverse of the distribution function.

    >>> import flambeau as torch
    >>> bool(torch.nn.init.trunc_normal_(torch.empty(100), a=-1, b=1).abs().max() <= 1)
    True
    """
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(TOO_FAR, stacklevel=2)
    with no_grad():
        if tensor.is_cuda:
            return _by_inverse(tensor, mean, std, a, b, generator)
        if _cdf((b - mean) / std) - _cdf((a - mean) / std) > LIKELY:
            return _redraw_outside(tensor, mean, std, a, b, generator)
        return _accept_or_reject(tensor, mean, std, a, b, generator)


def _by_inverse(
    tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Any
) -> Tensor:
    low, high = (2 * _cdf((bound - mean) / std) - 1 for bound in (a, b))
    tensor.uniform_(low, high, generator=generator).erfinv_()
    return tensor.mul_(std * math.sqrt(2.0)).add_(mean).clamp_(min=a, max=b)


def _cdf(value: float) -> float:
    return (1.0 + math.erf(value / math.sqrt(2.0))) / 2.0


def _redraw_outside(
    tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Any
) -> Tensor:
    low, high = (float(tensor._data.dtype.type(bound).real) for bound in (a, b))
    tensor.normal_(mean, std, generator=generator)
    outside = (tensor < low) | (tensor > high)
    while bool(outside.any()):
        again = ops.empty_like(tensor).normal_(mean, std, generator=generator)
        tensor.copy_(ops.where(outside, again, tensor))
        outside = (tensor < low) | (tensor > high)
    return tensor


def _accept_or_reject(
    tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Any
) -> Tensor:
    """Rejection sampling from a uniform, with acceptances scaled to 1 at the density's peak."""
    peak = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2
    pending: Any = None
    while pending is None or bool(pending.any()):
        drawn = ops.empty_like(tensor).uniform_(a, b, generator=generator)
        tensor.copy_(drawn if pending is None else ops.where(pending, drawn, tensor))
        log_density = ((drawn - mean) / std).pow(2) * -0.5 - peak
        chance = ops.empty_like(tensor).uniform_(generator=generator).log()
        rejected = chance > log_density
        pending = rejected if pending is None else pending & rejected
    return tensor


# ---- orthogonal and sparse


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """A (semi-)orthogonal matrix, of the trailing dims flattened (Saxe et al., 2013).

    >>> import flambeau as torch
    >>> w = torch.nn.init.orthogonal_(torch.empty(3, 3))
    >>> torch.allclose(w @ w.T, torch.eye(3), atol=1e-5)
    True
    """
    if tensor.ndimension() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if 0 in tensor.shape:
        return tensor
    rows = tensor.shape[0]
    columns = math.prod(tensor.shape) // rows
    with no_grad():
        flat = ops.new_empty(tensor, (rows, columns)).normal_(0, 1, generator=generator)
        if rows < columns:
            flat = flat.t()
        q, r = ops.linalg.qr(flat)
        # Signs of the diagonal make the distribution uniform.
        q = q * ops.diagonal(r).sign()
        if rows < columns:
            q = q.t()
        tensor.copy_(q.reshape(tensor.shape))
        tensor.mul_(gain)
    return tensor


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """Normal, with a share of each column's entries set to 0 (Martens, 2010).

    >>> import flambeau as torch
    >>> (torch.nn.init.sparse_(torch.empty(4, 3), sparsity=0.5) == 0).sum(0)
    tensor([2, 2, 2])
    """
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows = tensor.shape[0]
    zeros = math.ceil(sparsity * rows)
    with no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in tensor.unbind(1):
            column[ops.randperm(rows)[:zeros]] = 0
    return tensor


# ---- other names: those that other libraries import, and those without the underscore

_no_grad_uniform_ = uniform_
_no_grad_normal_ = normal_
_no_grad_trunc_normal_ = trunc_normal_
_no_grad_fill_ = constant_
_no_grad_zero_ = zeros_


SHOWN = {"constant_": "torch.empty(2, 3), 7.0", "sparse_": "torch.empty(2, 3), 0.5",
         "dirac_": "torch.empty(2, 3, 1)"}  # fmt: skip
"""What initialisers are given in examples, where that is not a matrix alone."""


def _make_deprecate(function: Callable[..., Any]) -> Callable[..., Any]:
    name = function.__name__
    advice = f"`nn.init.{name[:-1]}` is now deprecated in favor of `nn.init.{name}`."

    def renamed(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(advice, FutureWarning, stacklevel=2)
        return function(*args, **kwargs)

    functools.update_wrapper(renamed, function)
    given = SHOWN.get(name, "torch.empty(2, 3)")
    renamed.__doc__ = with_example(
        f"The deprecated name of `{name}`, which fills a tensor and returns it, in its shape.",
        f"len(torch.nn.init.{name}({given}))", "2",
    )  # fmt: skip
    renamed.__name__ = name[:-1]
    return renamed


uniform = _make_deprecate(uniform_)
normal = _make_deprecate(normal_)
constant = _make_deprecate(constant_)
eye = _make_deprecate(eye_)
dirac = _make_deprecate(dirac_)
xavier_uniform = _make_deprecate(xavier_uniform_)
xavier_normal = _make_deprecate(xavier_normal_)
kaiming_uniform = _make_deprecate(kaiming_uniform_)
kaiming_normal = _make_deprecate(kaiming_normal_)
orthogonal = _make_deprecate(orthogonal_)
sparse = _make_deprecate(sparse_)
