"""BatchNorm folded into the layer before it, for evaluation."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.nn.parameter import Parameter

__all__ = [
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
]

ConvT = TypeVar("ConvT")
LinearT = TypeVar("LinearT")


def fuse_conv_bn_eval(conv: ConvT, bn: Any, transpose: bool = False) -> ConvT:
    """A copy of a convolution that does what it and the BatchNorm after it do.

    Args:
        transpose: the convolution is a transposed one, with its outputs in dim 1 of the weight.

    Raises:
        AssertionError: either of them is in training mode, or the BatchNorm has no statistics.

    >>> import flambeau as torch
    >>> conv, norm = torch.nn.Conv2d(3, 8, 3).eval(), torch.nn.BatchNorm2d(8).eval()
    >>> one = torch.nn.utils.fuse_conv_bn_eval(conv, norm)
    >>> x = torch.ones(1, 3, 5, 5)
    >>> torch.allclose(one(x), norm(conv(x)), atol=1e-6)
    True
    """
    fused = _copy_for(conv, bn)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, *_numbers_of(bn), transpose
    )
    return fused  # type: ignore[no-any-return]


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """(weight, bias) of the fused convolution: s w and s (b - mean) + bias_bn, s = w_bn / std.

    >>> import flambeau as torch
    >>> weight, zero, one = torch.ones(2, 1, 1, 1), torch.zeros(2), torch.ones(2)
    >>> fused = torch.nn.utils.fuse_conv_bn_weights(weight, None, zero, 4 * one, 0.0, one, one)
    >>> fused[0].flatten().tolist(), fused[1].tolist()
    ([0.5, 0.5], [1.0, 1.0])
    """
    dtypes = _dtypes(conv_w, conv_b)
    conv_b = ops.zeros_like(bn_rm) if conv_b is None else conv_b
    bn_w = ops.ones_like(bn_rm) if bn_w is None else bn_w
    bn_b = ops.zeros_like(bn_rm) if bn_b is None else bn_b
    inverse_std = ops.rsqrt(bn_rv + bn_eps)
    shape = [1] * max(conv_w.ndim, 2)
    shape[1 if transpose else 0] = -1
    weight = conv_w * (bn_w * inverse_std).reshape(shape)
    bias = (conv_b - bn_rm) * inverse_std * bn_w + bn_b
    return (
        Parameter(weight.to(dtype=dtypes[0]), conv_w.requires_grad),
        Parameter(bias.to(dtype=dtypes[1]), conv_b.requires_grad),
    )


def fuse_linear_bn_eval(linear: LinearT, bn: Any) -> LinearT:
    """A copy of a Linear that does what it and the BatchNorm after it do.

    Raises:
        AssertionError: either of them is in training mode, the BatchNorm has no statistics, or its
            number of features is neither that of the outputs nor 1.

    >>> import flambeau as torch
    >>> linear, norm = torch.nn.Linear(3, 8).eval(), torch.nn.BatchNorm1d(8).eval()
    >>> one = torch.nn.utils.fuse_linear_bn_eval(linear, norm)
    >>> x = torch.ones(1, 3)
    >>> torch.allclose(one(x), norm(linear(x)), atol=1e-6)
    True
    """
    fused = _copy_for(linear, bn, check=_check_features)
    fused.weight, fused.bias = fuse_linear_bn_weights(fused.weight, fused.bias, *_numbers_of(bn))
    return fused  # type: ignore[no-any-return]


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor,
    bn_b: Tensor,
) -> tuple[Parameter, Parameter]:
    """(weight, bias) of the fused Linear: s w and s (b - mean) + bias_bn, s = w_bn / std.

    >>> import flambeau as torch
    >>> weight, zero, one = torch.ones(2, 1), torch.zeros(2), torch.ones(2)
    >>> fused = torch.nn.utils.fuse_linear_bn_weights(weight, None, zero, 4 * one, 0.0, one, one)
    >>> fused[0].flatten().tolist(), fused[1].tolist()
    ([0.5, 0.5], [1.0, 1.0])
    """
    dtypes = _dtypes(linear_w, linear_b)
    linear_b = ops.zeros_like(bn_rm) if linear_b is None else linear_b
    scale = bn_w * ops.rsqrt(bn_rv + bn_eps)
    weight = linear_w * scale.unsqueeze(-1).to(dtype=dtypes[0])
    bias = (linear_b - bn_rm) * scale + bn_b
    return (
        Parameter(weight, linear_w.requires_grad),
        Parameter(bias.to(dtype=dtypes[1]), linear_b.requires_grad),
    )


def _dtypes(weight: Tensor, bias: Tensor | None) -> tuple[Any, Any]:
    """What the fused weight and bias are cast to."""
    return weight.dtype, weight.dtype if bias is None else bias.dtype


def _check_features(linear: Any, bn: Any) -> None:
    """BatchNorm works over dim 1 and Linear over the last: they meet only if one has size 1."""
    if bn.num_features not in (linear.out_features, 1):
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1, got "
            f"linear.out_features={linear.out_features} and bn.num_features={bn.num_features}"
        )


def _copy_for(layer: Any, bn: Any, check: Any = None) -> Any:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if check is not None:
        check(layer, bn)
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")
    return copy.deepcopy(layer)


def _numbers_of(bn: Any) -> tuple[Any, Any, Any, Any, Any]:
    return bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
