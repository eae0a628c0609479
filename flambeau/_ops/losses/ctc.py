"""Connectionist temporal classification: the forward-backward algorithm over all alignments.

Graves et al., "Connectionist Temporal Classification" (2006), in logarithms. All samples of a
batch advance together, one time step after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._ops.launching.precision import refuse
from flambeau._ops.losses.elementwise import MEAN, NONE, SUM, reduction_code
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import composite, functional, internal, kernel
from flambeau._tensor.tensor import Tensor, on_device_of, wrap

NEVER = -np.inf


class Alignments:
    """Targets with blanks between them, padded to one length: labels [N, 2 S + 1]."""

    def __init__(self, targets: np.ndarray, input_lengths: Sequence[int],
                 target_lengths: Sequence[int], blank: int) -> None:  # fmt: skip
        self.input_lengths = np.asarray(input_lengths, np.int64)
        self.target_lengths = np.asarray(target_lengths, np.int64)
        longest = int(self.target_lengths.max(initial=0))
        batch = len(self.target_lengths)
        self.labels = np.full((batch, 2 * longest + 1), blank, np.int64)
        start = 0
        for sample, length in enumerate(self.target_lengths):
            row = targets[sample] if targets.ndim == 2 else targets[start : start + length]
            self.labels[sample, 1 : 2 * length : 2] = row[:length]
            start += int(length)
        self.states = 2 * self.target_lengths + 1
        before = np.full_like(self.labels, blank)
        before[:, 2:] = self.labels[:, :-2]
        self.skips = (self.labels != blank) & (self.labels != before)
        self.skips[:, :2] = False
        self.inside = np.arange(self.labels.shape[1]) < self.states[:, None]

    def emissions(self, log_probs: np.ndarray) -> np.ndarray:
        """[T, N, 2 S + 1]: the log-probability of each state's label."""
        return np.take_along_axis(log_probs, self.labels[None], 2)


def _shifted(values: np.ndarray, by: int) -> np.ndarray:
    """States moved by `by` places; what moves in is impossible."""
    result = np.full_like(values, NEVER)
    if abs(by) >= values.shape[1]:
        return result
    if by > 0:
        result[:, by:] = values[:, :-by]
    else:
        result[:, :by] = values[:, -by:]
    return result


def forward_scores(emissions: np.ndarray, paths: Alignments) -> np.ndarray:
    """[T, N, states]: log-probability of all prefixes that end in a state."""
    alpha = np.full_like(emissions, NEVER)
    if not len(alpha):
        return alpha
    alpha[0, :, :2] = emissions[0, :, :2]
    alpha[0][~paths.inside] = NEVER
    for t in range(1, len(alpha)):
        previous = alpha[t - 1]
        reach = np.logaddexp(previous, _shifted(previous, 1))
        skipped = np.where(paths.skips, _shifted(previous, 2), NEVER)
        alpha[t] = np.logaddexp(reach, skipped) + emissions[t]
        alpha[t][~paths.inside] = NEVER
    return alpha


def backward_scores(emissions: np.ndarray, paths: Alignments) -> np.ndarray:
    """[T, N, states]: log-probability of all suffixes that start in a state."""
    beta = np.full_like(emissions, NEVER)
    places = np.arange(emissions.shape[2])
    final = (places >= paths.states[:, None] - 2) & paths.inside
    skips = np.zeros_like(paths.skips)
    skips[:, :-2] = paths.skips[:, 2:]
    following = np.full(emissions.shape[1:], NEVER, emissions.dtype)
    for t in reversed(range(len(beta))):
        reach = np.logaddexp(following, _shifted(following, -1))
        reach = np.logaddexp(reach, np.where(skips, _shifted(following, -2), NEVER))
        last = (paths.input_lengths == t + 1)[:, None]
        reach = np.where(last, np.where(final, 0, NEVER), reach)
        reach = np.where(paths.inside & (t < paths.input_lengths)[:, None], reach, NEVER)
        beta[t] = reach + emissions[t]
        following = beta[t]
    return beta


def _losses(alpha: np.ndarray, paths: Alignments) -> np.ndarray:
    """Minus the log-probability of the whole target, for each sample."""
    batch = np.arange(alpha.shape[1])
    empty = np.where(paths.target_lengths == 0, 0.0, np.inf)
    if not len(alpha):
        return empty.astype(alpha.dtype)
    last = np.maximum(paths.input_lengths - 1, 0)
    ends = alpha[last, batch, paths.states - 1]
    second = alpha[last, batch, np.maximum(paths.states - 2, 0)]
    total = np.where(paths.states > 1, np.logaddexp(ends, second), ends)
    return np.where(paths.input_lengths == 0, empty, -total).astype(alpha.dtype)


def _check(log_probs: np.ndarray, targets: np.ndarray, input_lengths: Sequence[int],
           target_lengths: Sequence[int], blank: int) -> None:  # fmt: skip
    """Torch's errors about shapes, types and lengths."""
    if log_probs.dtype.kind != "f" or log_probs.itemsize < 4:
        raise refuse("ctc_loss_cpu", log_probs.dtype)
    if targets.dtype not in (np.int32, np.int64):
        name = dt.from_numpy_dtype(targets.dtype).scalar_name
        raise RuntimeError(f"\"ctc_loss_cpu\" not implemented for '{name}'")
    if not log_probs.size:
        raise RuntimeError("log_probs tensor must not be empty")
    where = "(while checking arguments for ctc_loss_allocate_outputs)"
    if targets.ndim not in (1, 2):
        raise RuntimeError(f"Expected 1 to 2 dimensions, but got {targets.ndim}-dimensional tensor "
                           f"for argument #2 'targets' {where}")  # fmt: skip
    steps, batch, classes = log_probs.shape
    if not 0 <= blank < classes:
        raise RuntimeError("blank must be in label range")
    if len(input_lengths) != batch:
        raise RuntimeError("input_lengths must be of size batch_size")
    if len(target_lengths) != batch:
        raise RuntimeError("target_lengths must be of size batch_size")
    _check_lengths("target_lengths", target_lengths, where)
    _check_lengths("input_lengths", input_lengths, where)
    for length in input_lengths:
        if length > steps:
            raise RuntimeError(f"Expected input_lengths to have value at most {steps}, but got "
                               f"value {length} {where}")  # fmt: skip
    _check_targets(targets, target_lengths, where)


def _check_lengths(name: str, lengths: Any, where: str) -> None:
    for length in lengths:
        if length < 0:
            raise RuntimeError(f"Expected {name} to have value at least 0, but got value {length} "
                               f"{where}")  # fmt: skip


def _check_targets(targets: np.ndarray, target_lengths: Sequence[int], where: str) -> None:
    if targets.ndim == 1:
        total = int(sum(target_lengths))
        if targets.shape[0] != total:
            raise RuntimeError(f"Expected tensor to have size {total} at dimension 0, but got size "
                               f"{targets.shape[0]} for argument #2 'targets' {where}")  # fmt: skip
        return
    if targets.shape[0] != len(target_lengths):
        raise RuntimeError(
            f"Expected tensor to have size {len(target_lengths)} at dimension 0, but got size "
            f"{targets.shape[0]} for argument #2 'targets' {where}"
        )
    longest = max(target_lengths, default=0)
    if targets.shape[1] < longest:
        raise RuntimeError(
            f"Expected tensor to have size at least {longest} at dimension 1, but got size "
            f"{targets.shape[1]} for argument #2 'targets' {where}"
        )


def _refuse_second(grad: Any) -> Any:
    raise RuntimeError("derivative for aten::_ctc_loss_backward is not implemented")


def _ctc_gradient(grad: Any, log_probs: Any, targets: Any, input_lengths: Any,
                  target_lengths: Any, result0: Any, result1: Any, blank: int,
                  zero_infinity: bool) -> Any:  # fmt: skip
    return ops._ctc_loss_backward(grad, log_probs, targets, input_lengths, target_lengths, result0,
                                  result1, blank, zero_infinity)  # fmt: skip


@kernel(
    "_ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths,"
    " int blank=0, bool zero_infinity=False) -> (Tensor, Tensor)",
    devices="any",
    method=False,
    node="CtcLossBackward0",
    nondifferentiable=("result1",),
    backward={
        "log_probs": _ctc_gradient,
    },
)
def _ctc_loss(log_probs: np.ndarray, targets: np.ndarray, input_lengths: Sequence[int],
              target_lengths: Sequence[int], blank: int, zero_infinity: bool) -> Any:  # fmt: skip
    """Losses [N] of log_probs [T, N, C], and the forward scores [N, T, 2 S + 1]."""
    _check(log_probs, targets, input_lengths, target_lengths, blank)
    paths = Alignments(targets, input_lengths, target_lengths, blank)
    alpha = forward_scores(paths.emissions(log_probs), paths)
    return _losses(alpha, paths), np.ascontiguousarray(alpha.transpose(1, 0, 2))


@internal(
    "_ctc_loss_backward(Tensor grad, Tensor log_probs, Tensor targets, int[] input_lengths,"
    " int[] target_lengths, Tensor neg_log_likelihood, Tensor log_alpha, int blank,"
    " bool zero_infinity) -> Tensor",
    devices="any",
    nondeterministic="ctc_loss_backward_gpu",
    backward={"grad": _refuse_second, "log_probs": _refuse_second},
)
def ctc_loss_backward(grad: np.ndarray, log_probs: np.ndarray, targets: np.ndarray,
                      input_lengths: Sequence[int], target_lengths: Sequence[int],
                      neg_log_likelihood: np.ndarray, log_alpha: np.ndarray, blank: int,
                      zero_infinity: bool) -> np.ndarray:  # fmt: skip
    """`exp(log_probs) - occupation` times the gradient: the derivative for normalised inputs."""
    paths = Alignments(targets, input_lengths, target_lengths, blank)
    emissions = paths.emissions(log_probs)
    both = log_alpha.transpose(1, 0, 2) + backward_scores(emissions, paths)
    peak = np.full(log_probs.shape, NEVER, log_probs.dtype)
    steps, batch = np.ogrid[: log_probs.shape[0], : log_probs.shape[1]]
    for state in range(both.shape[2]):
        label = paths.labels[None, :, state]
        peak[steps, batch, label] = np.logaddexp(peak[steps, batch, label], both[:, :, state])
    occupied = np.exp(peak + neg_log_likelihood[:, None] - log_probs)
    result = (np.exp(log_probs) - occupied) * grad[:, None]
    if zero_infinity:
        result[:, np.isinf(neg_log_likelihood)] = 0
    result[steps >= paths.input_lengths] = 0
    return np.ascontiguousarray(result, log_probs.dtype)


def _lengths(value: Any, name: str) -> list[int]:
    if not isinstance(value, Tensor):
        return [int(n) for n in value]
    if value._data.dtype.kind not in "iu":
        raise RuntimeError(f"{name} must be integral")
    if hasattr(type(value), "__torch_dispatch__"):  # there may be no numbers: it says so
        return [int(n) for n in value.flatten().tolist()]  # type: ignore[attr-defined]
    return [int(n) for n in value._data.reshape(-1).tolist()]  # at once: it may be on a device


@composite(
    "ctc_loss(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths,"
    " int blank=0, int reduction=Mean, bool zero_infinity=False) -> Tensor",
    batch="examples",
    autocast="cpu=float32",
    method=False,
)
def ctc_loss(
    log_probs: Any,
    targets: Any,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: int = NONE,
    zero_infinity: bool = False,
) -> Any:
    """Minus the log-probability of each target; a mean divides by the target's length first.

    Shapes: log-probabilities [T, N, C], targets [N, S] or in one row, lengths [N].

    >>> import flambeau as torch
    >>> log_probs = torch.full((3, 1, 2), 0.5).log()
    >>> lengths = torch.tensor([3]), torch.tensor([1])
    >>> torch.ctc_loss(log_probs, torch.tensor([[1]]), *lengths)
    tensor([0.2877])
    """
    inputs = _lengths(input_lengths, "input_lengths")
    lengths = _lengths(target_lengths, "target_lengths")
    unbatched = log_probs.dim() == 2
    if unbatched:
        log_probs = log_probs.unsqueeze(1)
    if targets.is_floating_point():
        targets = targets.long()
    losses = ops._ctc_loss(log_probs, targets, inputs, lengths, blank, zero_infinity)[0]
    if zero_infinity:
        infinite = ops.isinf(losses)
        losses = ops.where(infinite, ops.zeros_like(losses), losses)
    if reduction == MEAN:
        sizes = np.maximum(np.asarray(lengths), 1).astype(losses._data.dtype)
        return (losses / on_device_of(wrap(sizes), losses)).mean()
    if reduction == SUM:
        return losses.sum()
    return losses.squeeze(0) if unbatched else losses


@functional(batch="examples")
def functional_ctc_loss(
    log_probs: Any,
    targets: Any,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Any:
    """CTC loss of log_probs [T, N, C] or [T, C] and targets [N, S] or all in one row.

    >>> import flambeau as torch
    >>> log_probs = torch.full((3, 1, 2), 0.5).log()
    >>> lengths = torch.tensor([3]), torch.tensor([1])
    >>> torch.nn.functional.ctc_loss(log_probs, torch.tensor([[1]]), *lengths)
    tensor(0.2877)
    """
    code = reduction_code(reduction)
    return ops.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, code,
                        zero_infinity)  # fmt: skip
