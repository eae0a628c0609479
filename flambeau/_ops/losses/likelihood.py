"""The negative log-likelihood of classes."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from flambeau._ops.elementwise.bounds import beside
from flambeau._ops.launching.modules import launcher
from flambeau._ops.launching.precision import narrow, refuse, widen
from flambeau._ops.losses.elementwise import MEAN, NONE, reduction_of
from flambeau._ops.losses.targets import (
    Targets,
    check_targets,
    flat_scores,
    pick,
    put,
    reduce_losses,
    row_factor,
)
from flambeau._ops.table.binder import explained
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import InAten, composite, kernel
from flambeau._runtime import choice


def _nll(self: np.ndarray, target: np.ndarray, weight: np.ndarray | None, reduction: int,
         ignore_index: int) -> Any:  # fmt: skip
    """Minus the score of each target's class, reduced: scores [N, C, *], targets [N, *]."""
    if self.dtype.kind not in "fV":
        raise refuse("nll_loss_out_frame", self.dtype)
    if weight is None and reduction != NONE and _is_plain(self, target):
        total = launcher("losses.launch").likelihood(self, target, ignore_index, reduction == MEAN)
        if total is not None:
            return total
    scores, flat = flat_scores(widen(self), target)
    targets = Targets(flat, weight, ignore_index, scores.shape[1])
    shape = () if self.ndim == 1 else target.shape
    losses = pick(scores, targets.indices)
    np.negative(losses, out=losses)
    return reduce_losses(losses, targets, reduction, shape, self.dtype)


def _is_plain(scores: np.ndarray, target: np.ndarray) -> bool:
    """Whether a kernel takes scores [N, C] and targets [N]."""
    if scores.dtype.kind != "f" or scores.itemsize < 4 or scores.ndim != 2:  # noqa: PLR2004
        return False
    if not (scores.flags.c_contiguous and target.flags.c_contiguous):
        return False
    return scores.size > 0 and choice.compiled("softmax", scores.size)


def _nll_in_aten(name: str, self: Any, target: Any, weight: Any = None, reduction: int = 1,
                 ignore_index: int = -100) -> InAten:  # fmt: skip
    return InAten(name, (self, target, weight, reduction, ignore_index), pick=0)


UNSETTLED = ("nll_loss2d_forward_out_cuda_template", lambda given: given[3] != NONE)
"""What PyTorch calls the sum over an image's elements, whose order it leaves open."""


def _nll_row(name: str, node: str) -> None:
    kernel(f"{name}(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, "
           "int ignore_index=-100) -> Tensor", method=False, function=False, node=node, inline=True,
           aten=partial(_nll_in_aten, f"{name}_forward"), device_check=f"{name}_forward",
           saved_names={"self_shape": None},
           nondeterministic=UNSETTLED if name.endswith("2d") else "",
           autocast="float32", constants={"weight": f"{name}_forward"}, backward={
        "self": lambda grad, self, self_shape, target, weight, reduction, ignore_index: beside(
            ops.nll_loss_backward(grad, target, weight, self_shape, reduction, ignore_index), self),
    })(_nll)  # fmt: skip


def _forward_row(name: str) -> None:
    @composite(f"{name}_forward(Tensor self, Tensor target, Tensor? weight, int reduction, "
               "int ignore_index) -> (Tensor output, Tensor total_weight)",
               method=False, function=False)  # fmt: skip
    def forward(self: Any, target: Any, weight: Any, reduction: int, ignore_index: int) -> Any:
        """ATen's name for the loss, and for the sum of the weights that it is divided by."""
        loss = getattr(ops, name)(self, target, weight, reduction, ignore_index)
        counted = target != ignore_index
        if reduction == NONE:
            return loss, self.new_zeros(())
        if weight is None:
            return loss, counted.sum().to(self.dtype)
        return loss, weight[ops.where(counted, target, 0)].mul(counted).sum()


_nll_row("nll_loss", "NllLossBackward0")
_nll_row("nll_loss2d", "NllLoss2DBackward0")
_forward_row("nll_loss")
_forward_row("nll_loss2d")


def _nll_second(grad: Any, target: Any, weight: Any, reduction: int, ignore_index: int) -> Any:
    """The gradient is linear in the incoming one: its own is the same choice of elements."""
    return ops.nll_loss(grad, target, weight, reduction, ignore_index)


def _nll_backward_parts(grad_output: Any, target: Any, weight: Any, size: Any, reduction: int,
                        ignore_index: int) -> Any:  # fmt: skip
    """The gradient by public operators: minus the weights, put where the targets say."""
    counted = target != ignore_index
    indices = ops.where(counted, target, 0)
    weights = counted.to(grad_output.dtype) if weight is None else weight[indices] * counted
    share = grad_output / weights.sum() if reduction == MEAN else grad_output
    dim = min(1, len(size) - 1)
    values = (-(weights * share)).unsqueeze(dim)
    return grad_output.new_zeros(list(size)).scatter(dim, indices.unsqueeze(dim), values)


@kernel(
    "nll_loss_backward(Tensor grad_output, Tensor target, Tensor? weight, int[] size,"
    " int reduction, int ignore_index) -> Tensor",
    method=False,
    function=False,
    decomposition=_nll_backward_parts,
    backward={
        "grad_output": _nll_second,
    },
)
def nll_loss_backward(grad: np.ndarray, target: np.ndarray, weight: np.ndarray | None, size: Any,
                      reduction: int, ignore_index: int) -> np.ndarray:  # fmt: skip
    """Zero but at each target's class, where it is minus its weight times the gradient."""
    result = np.zeros(size, grad.dtype)
    scores, flat = flat_scores(result, target)
    targets = Targets(flat, weight, ignore_index, scores.shape[1])
    factor = row_factor(grad, targets, reduction, widen(result[:0]).dtype)
    put(scores, targets.indices, narrow(np.asarray(-factor), grad.dtype))
    return result


@composite(
    "nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean,"
    " int ignore_index=-100) -> Tensor",
    method=False,
    function=False,
)
def nll_loss_nd(input: Any, target: Any, weight: Any = None, reduction: int = NONE,
                ignore_index: int = -100) -> Any:  # fmt: skip
    """Minus the score of each target's class: input [C], [N, C] or [N, C, *], target [N, *]."""
    try:
        check_targets(input, target, weight)
    except AttributeError as error:
        values = (input, target, weight, reduction, ignore_index)
        raise explained(nll_loss_nd, values, error) from None
    if input._data.ndim <= 2:
        return ops.nll_loss(input, target, weight, reduction, ignore_index)
    return ops.nll_loss2d(input, target, weight, reduction, ignore_index)


@composite(
    "nll_loss(Tensor self, Tensor target, Tensor? weight=None, bool? size_average=None,"
    " int ignore_index=-100, bool? reduce=None, str reduction='mean') -> Tensor",
    namespace="nn.functional",
)
def functional_nll_loss(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Any:
    """Minus the log-probability of each target: input [C], [N, C] or [N, C, *], target [N, *].

    Targets are numbers of classes; those that are `ignore_index` count nothing. `weight` [C] weighs
    classes. `reduction`: "mean" (over the weights of the targets), "sum", or "none" for [N, *].
    The input holds logarithms: `cross_entropy` takes scores.

    >>> import flambeau as torch
    >>> torch.nn.functional.nll_loss(torch.tensor([[-0.5, -1.0]]), torch.tensor([1]))
    tensor(1.)
    """
    code = reduction_of(size_average, reduce, reduction)
    return nll_loss_nd.body(input, target, weight, code, ignore_index)
