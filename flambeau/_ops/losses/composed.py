"""Losses made of other operators: KL divergence, likelihoods, hinge embedding."""

from __future__ import annotations

import math
import warnings
from typing import Any

from flambeau._ops.elementwise.arithmetic import NO_BOOL_SUBTRACTION
from flambeau._ops.losses.elementwise import (
    NONE,
    legacy_reduction,
    reduced,
    reduction_code,
    reduction_of,
)
from flambeau._ops.table.binder import require_tensor
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import composite, functional
from flambeau._ops.table.scalars import checked_number
from flambeau._tensor.examples import numbers_under
from flambeau._tensor.tensor import Tensor


def _check_divergence(tensor: Any) -> None:
    if tensor.is_complex():
        raise RuntimeError("kl_div: Complex inputs not supported.")
    if not tensor.is_floating_point():
        raise RuntimeError("kl_div: Integral inputs not supported.")


@composite(
    "kl_div(Tensor self, Tensor target, int reduction=Mean, *, bool log_target=False) -> Tensor",
    autocast="float32",
    method=False,
)
def kl_div(input: Any, target: Any, reduction: int = NONE, *, log_target: bool = False) -> Any:
    """`target * (log(target) - input)`; `input` holds log-probabilities, `target` too if said.

    Input and target broadcast; without reduction the result has their shape, else ().

    >>> import flambeau as torch
    >>> torch.kl_div(torch.tensor([0.5, 0.5]).log(), torch.tensor([1.0, 0.0]))
    tensor([0.6931, 0.0000])
    """
    for tensor in (input, target):
        _check_divergence(tensor)
    if log_target:
        values = target.exp() * (target - input)
    else:
        product = target * input  # first: as in PyTorch, its gradient is taken last
        values = ops.xlogy(target, target) - product
    return reduced(values, reduction)


@functional()
def functional_kl_div(
    input: Any,
    target: Any,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Any:
    """Kullback-Leibler divergence; "batchmean" divides the sum by the batch size.

    >>> import flambeau as torch
    >>> torch.nn.functional.kl_div(torch.tensor([0.5]).log(), torch.tensor([0.5]),
    ...     reduction="sum")
    tensor(0.)
    """
    if reduction == "mean" and size_average is None and reduce is None:
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size."
            "'batchmean' divides only by the batch size, and aligns with the KL div math "
            "definition.'mean' will be changed to behave the same as 'batchmean' in the next major "
            "release.",
            stacklevel=2,
        )
    batchmean = reduction == "batchmean"
    code = reduction_of(size_average, reduce, "sum" if batchmean else reduction)
    result = ops.kl_div(input, target, code, log_target=log_target)
    return result / input.size()[0] if batchmean and input.dim() else result


@composite(
    "poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps,"
    " int reduction) -> Tensor",
    autocast="float32",
    method=False,
)
def poisson_nll_loss(
    input: Any, target: Any, log_input: bool, full: bool, eps: float, reduction: int
) -> Any:
    """Minus the log-likelihood of Poisson counts; `full` adds Stirling's term for large targets.

    Input and target broadcast; without reduction the result has their shape, else ().

    >>> import flambeau as torch
    >>> rates, counts = torch.tensor([0., 1.]), torch.tensor([1., 2.])
    >>> torch.poisson_nll_loss(rates, counts, True, False, 1e-8, 1)
    tensor(0.8591)
    """
    if log_input:
        weighted = target * input  # before exp, as in torch: its gradient is the second to arrive
        values = input.exp() - weighted
    else:
        values = input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        values = values + stirling.masked_fill(target <= 1, 0).to(values.dtype)
    return reduced(values, reduction)


@functional()
def functional_poisson_nll_loss(
    input: Any,
    target: Any,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Any:
    """Minus the log-likelihood of counts `target` at rates `input` (or their logarithms).

    Input and target broadcast; without reduction the result has their shape, else ().

    >>> import flambeau as torch
    >>> log_rates, counts = torch.tensor([0., 1.]), torch.tensor([1., 2.])
    >>> torch.nn.functional.poisson_nll_loss(log_rates, counts)
    tensor(0.8591)
    """
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    if reduction == "elementwise_mean":
        raise ValueError(f"{reduction} is not a valid value for reduction")
    code = reduction_code(reduction)
    require_tensor("poisson_nll_loss", "target", 2, target)
    return ops.poisson_nll_loss(input, target, log_input, full, eps, code)


def _variance(input: Any, var: Any) -> Any:
    """The variance as a tensor that broadcasts to the input."""
    if not isinstance(var, Tensor):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        return var * ops.ones_like(input)
    if (numbers_under(var._data) < 0).any():
        raise ValueError("var has negative entry/entries")
    if var.size() == input.size():
        return var
    if input.size()[:-1] == var.size():
        return var.unsqueeze(-1)
    pairs = zip(input.shape, var.shape, strict=False)
    different = [size for have, size in pairs if have != size]
    if var.dim() != input.dim() or different != [1]:  # one variance for all of a single dim
        raise ValueError("var is of incorrect size")
    return var


@functional()
def gaussian_nll_loss(
    input: Any,
    target: Any,
    var: Any,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Any:
    """`0.5 * (log(var) + (input - target)**2 / var)`, with variances of at least `eps`.

    Shapes: input, target and var (*), or var without the last dim, or with size 1 there.

    >>> import flambeau as torch
    >>> mean, value, var = torch.tensor([1., 2.]), torch.tensor([1., 4.]), torch.tensor([1., 1.])
    >>> torch.nn.functional.gaussian_nll_loss(mean, value, var)
    tensor(1.)
    """
    var = _variance(input, var)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    var = var + (var.detach().clamp_min(eps) - var.detach())  # the gradient passes the limit
    gap = input - target
    values = 0.5 * (var.log() + gap * gap / var)
    if full:
        values = values + 0.5 * math.log(2 * math.pi)
    return reduced(values, {"none": 0, "mean": 1, "sum": 2}[reduction])


@composite(
    "hinge_embedding_loss(Tensor self, Tensor target, float margin=1.0, int reduction=Mean)"
    " -> Tensor",
    autocast="float32",
    method=False,
)
def hinge_embedding_loss(
    input: Any, target: Any, margin: float = 1.0, reduction: int = NONE
) -> Any:
    """`input` where the target is 1, `max(0, margin - input)` where it is -1.

    Input and target broadcast; without reduction the result has their shape, else ().

    >>> import flambeau as torch
    >>> torch.hinge_embedding_loss(torch.tensor([0.2, 0.4]), torch.tensor([1, -1]))
    tensor([0.2000, 0.6000])
    """
    if input._data.dtype.kind == "b":
        raise NO_BOOL_SUBTRACTION["bool"]
    if input._data.dtype.kind in "iu":
        checked_number(margin, input._data.dtype)
    zeros = ops.zeros_like(input)
    # torch writes the margin into memory of the input's type, and takes the input away from it
    distances = (ops.full_like(input, float(margin)) - input).clamp_min(0)
    far = ops.where(target != 1, distances, zeros)
    near = ops.where(target != -1, input, zeros)
    return reduced(far + near, reduction)


@functional()
def functional_hinge_embedding_loss(
    input: Any,
    target: Any,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Any:
    """Loss of distances: near for targets 1, at least `margin` apart for targets -1.

    Input and target broadcast; without reduction the result has their shape, else ().

    >>> import flambeau as torch
    >>> torch.nn.functional.hinge_embedding_loss(torch.tensor([0.2, 0.4]), torch.tensor([1, -1]))
    tensor(0.4000)
    """
    code = reduction_of(size_average, reduce, reduction)
    return ops.hinge_embedding_loss(input, target, margin, code)
