"""Activation functions: operators that have a form which writes into its argument, softmax & co."""

from __future__ import annotations


def _threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    if inplace:
        return torch.threshold_(input, threshold, value)
    return torch.threshold(input, threshold, value)


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    return torch.relu_(input) if inplace else torch.relu(input)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    return torch.relu6_(input) if inplace else torch.relu6(input)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    return torch.selu_(input) if inplace else torch.selu(input)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    return torch.silu_(input) if inplace else torch.silu(input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    return torch.mish_(input) if inplace else torch.mish(input)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    return torch.hardswish_(input) if inplace else torch.hardswish(input)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    return torch.hardsigmoid_(input) if inplace else torch.hardsigmoid(input)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    return torch.elu_(input, alpha) if inplace else torch.elu(input, alpha)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    return torch.celu_(input, alpha) if inplace else torch.celu(input, alpha)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    if inplace:
        return torch.leaky_relu_(input, negative_slope)
    return torch.leaky_relu(input, negative_slope)


def rrelu(input: Tensor, lower: float = 0.125, upper: float = 0.3333333333333333,
          training: bool = False, inplace: bool = False) -> Tensor:  # fmt: skip
    if inplace:
        return torch.rrelu_(input, lower, upper, training)
    return torch.rrelu(input, lower, upper, training)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0,
             inplace: bool = False) -> Tensor:  # fmt: skip
    if max_val < min_val:
        raise ValueError("min_val cannot be greater than max_val")
    if inplace:
        return torch.hardtanh_(input, min_val, max_val)
    return torch.hardtanh(input, min_val, max_val)


# ---- without


def tanh(input: Tensor) -> Tensor:
    return torch.tanh(input)


def sigmoid(input: Tensor) -> Tensor:
    return torch.sigmoid(input)


def tanhshrink(input: Tensor) -> Tensor:
    return input - torch.tanh(input)


def softsign(input: Tensor) -> Tensor:
    return input / (torch.abs(input) + 1)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    if input.dim() == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    return torch.glu(input, dim)


# ---- softmax


def _get_softmax_dim(name: str, ndim: int, stacklevel: int) -> int:
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. "
        "Change the call to include dim=X as an argument.",
        stacklevel=stacklevel,
    )
    return 1 if ndim == 2 or ndim > 3 else 0


def softmax(input: Tensor, dim: Optional[int] = None, _stacklevel: int = 3,
            dtype: Optional[int] = None) -> Tensor:  # fmt: skip
    if dim is None:
        dim = _get_softmax_dim("softmax", input.dim(), _stacklevel)
    return torch.softmax(input, dim, dtype)


def log_softmax(input: Tensor, dim: Optional[int] = None, _stacklevel: int = 3,
                dtype: Optional[int] = None) -> Tensor:  # fmt: skip
    if dim is None:
        dim = _get_softmax_dim("log_softmax", input.dim(), _stacklevel)
    return torch.log_softmax(input, dim, dtype)


def softmin(input: Tensor, dim: Optional[int] = None, _stacklevel: int = 3,
            dtype: Optional[int] = None) -> Tensor:  # fmt: skip
    if dim is None:
        dim = _get_softmax_dim("softmin", input.dim(), _stacklevel)
    return torch.softmax(-input, dim, dtype)


def _sharpest(soft: Tensor, dim: int) -> Tensor:
    winners = soft.max(dim, keepdim=True)[1]
    zeros = torch.zeros_like(soft, memory_format=torch.contiguous_format)
    return zeros.scatter_(dim, winners, 1.0)


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10,
                   dim: int = -1) -> Tensor:  # fmt: skip
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.")
    waits = torch.empty_like(logits, memory_format=torch.contiguous_format).exponential_()
    soft = torch.softmax((logits - waits.log()) / tau, dim)
    if not hard:
        return soft
    return _sharpest(soft, dim) - soft.detach() + soft  # one winner, and the soft one's gradient
