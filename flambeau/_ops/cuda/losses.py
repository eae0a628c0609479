"""Losses on GPUs, and their gradients."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from flambeau._compiler.expr import where
from flambeau._compiler.fuse import Formula, at, formula, position, total
from flambeau._compiler.gpu.ptx import Shape
from flambeau._compiler.types import NAMES, OF_NUMPY
from flambeau._ops.cuda import fills, formulas, rows
from flambeau._ops.cuda.elementwise import apply
from flambeau._ops.cuda.kernels.online import class_loss_online
from flambeau._ops.cuda.repeating import repeated
from flambeau._ops.cuda.softmaxes import _floats
from flambeau._ops.cuda.table import Kernel, checked, on_gpu
from flambeau._ops.losses.elementwise import MEAN, NONE
from flambeau._ops.rows import formulas as shared
from flambeau._ops.rows.losses import HUBER, LOGIT, PROBABILITY, SMOOTH, SOFT_MARGIN, SQUARED, Loss
from flambeau._runtime.cpu import address
from flambeau._runtime.cuda.launch import kernel
from flambeau._tensor.device_array import DeviceArray


def working(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type that values of a type are computed in."""
    return np.dtype(np.float64 if dtype.itemsize == 8 else np.float32)  # noqa: PLR2004


def total_of(form: Formula, arrays: tuple[Any, ...], numbers: tuple[float, ...], divisor: float,
             dtype: Any) -> Any:  # fmt: skip
    """The sum of a loss over arrays of one shape, over a number."""
    first = arrays[0]
    compute = rows.compute_type(first.dtype)
    view = rows.matrix(1, first.size)
    parts = rows.parts_for(view)
    pieces = fills.new((parts,), None, working(first.dtype), first)
    rows.run(form, compute, (*arrays, *numbers), (pieces,), view, parts=parts)
    out = fills.new((), None, dtype, first)
    rows.run(formulas.mean_of, compute, (pieces, divisor), (out,), rows.matrix(1, parts))
    return out


# ---- losses of elements


def _by_elements(loss: Loss, composed: bool = False) -> tuple[Kernel, Kernel]:
    """What computes a loss of elements, and what its gradient. Numbers that are 0 or less are the
    host's to refuse.

    composed: in torch it is made of other operators: it lies in memory as the target does, its
    gradient as the input; those of one operator lie as the input, their gradients are row-major.
    """

    @repeated
    @checked
    def value(x: Any, target: Any, reduction: int = MEAN, *numbers: float) -> Any:
        if not _alike(x, target) or any(number <= 0 for number in numbers):
            return NotImplemented
        if reduction == NONE:
            like = target if composed else x
            return apply(loss.value, (x, target, *numbers), fills.new_like(like))
        divisor = float(x.size) if reduction == MEAN else 1.0
        arrays = fills.plain(x), fills.plain(target)
        return total_of(loss.total, arrays, numbers, divisor, x.dtype)

    @repeated
    @checked
    def slope(grad: Any, x: Any, target: Any, reduction: int, *numbers: float) -> Any:
        if not _alike(x, target, grad) or any(number <= 0 for number in numbers):
            return NotImplemented
        factor = 1 / x.size if reduction == MEAN else 1.0
        result = fills.new_like(x) if composed else fills.new(x.shape, None, x.dtype, x)
        return apply(loss.scaled_slope, (x, target, *numbers, grad, factor), result)

    return value, slope


def _alike(x: Any, target: Any, *others: Any) -> bool:
    arrays = all(isinstance(array, DeviceArray) for array in (x, target, *others))
    return arrays and x.shape == target.shape and x.dtype == target.dtype and x.size > 0 and (
        _floats(x.dtype))  # fmt: skip


for _row, _loss in (("mse_loss", SQUARED), ("huber_loss", HUBER), ("smooth_l1_loss", SMOOTH)):
    _value, _slope = _by_elements(_loss)
    on_gpu(_row)(_value)
    on_gpu(f"{_row}_backward")(_slope)
LOGIT_VALUE, LOGIT_SLOPE = _by_elements(LOGIT, composed=True)


SOFT_MARGIN_VALUE, _ = _by_elements(SOFT_MARGIN)
PROBABILITY_VALUE, PROBABILITY_SLOPE = _by_elements(PROBABILITY)


@on_gpu("soft_margin_loss")
@repeated
def soft_margin_loss(x: Any, target: Any, reduction: int = MEAN) -> Any:
    """Log of 1 + exp(-target * x)."""
    return SOFT_MARGIN_VALUE(x, target, reduction)


@on_gpu("binary_cross_entropy")
@repeated
def cross_entropy_of_probabilities(x: Any, target: Any, weight: Any = None,
                                   reduction: int = MEAN) -> Any:  # fmt: skip
    """Binary cross-entropy of probabilities; none that is outside of 0 to 1 is looked for."""
    return PROBABILITY_VALUE(x, target, reduction) if weight is None else NotImplemented


@on_gpu("binary_cross_entropy_backward")
@repeated
def cross_entropy_of_probabilities_backward(grad: Any, x: Any, target: Any, weight: Any = None,
                                            reduction: int = MEAN) -> Any:  # fmt: skip
    """Its gradient."""
    return PROBABILITY_SLOPE(grad, x, target, reduction) if weight is None else NotImplemented


@on_gpu("binary_cross_entropy_with_logits")
@repeated
def cross_entropy_of_logits(x: Any, target: Any, weight: Any = None, pos_weight: Any = None,
                            reduction: int = MEAN) -> Any:  # fmt: skip
    """Binary cross-entropy of `sigmoid(x)`."""
    plain = weight is None and pos_weight is None
    return LOGIT_VALUE(x, target, reduction) if plain else NotImplemented


@on_gpu("_binary_cross_entropy_with_logits_backward")
@repeated
def cross_entropy_of_logits_backward(grad: Any, x: Any, target: Any, weight: Any, pos_weight: Any,
                                     reduction: int) -> Any:  # fmt: skip
    """Its gradient."""
    plain = weight is None and pos_weight is None
    return LOGIT_SLOPE(grad, x, target, reduction) if plain else NotImplemented


# ---- losses of classes


@formula(x="full", target="index", ignored="number")
def class_loss(x: Any, target: Any, ignored: Any) -> Any:
    """The loss of every row, 0 for those to be ignored; its largest score, its sum of exponentials,
    and 1 if it counts."""
    loss, peak, weights = shared.cross_entropy.function(x, target)
    return where(target == ignored, 0, loss), peak, weights, where(target == ignored, 0, 1)


@formula(loss="full", counts="full")
def mean_that_counts(loss: Any, counts: Any) -> Any:
    """The mean of the rows that count."""
    return total(loss) / total(counts)


@formula(loss="full", counts="full")
def two_sums(loss: Any, counts: Any) -> Any:
    """Both sums of such a mean."""
    return total(loss), total(counts)


@formula(counts="full", ignored="number")
def how_many(counts: Any, ignored: Any) -> Any:
    """How many targets are not to be ignored."""
    return total(where(counts == ignored, 0, 1))


def row_factor(target: Any, grad: Any, count: Any, ignored: Any) -> Any:
    """What a row's gradient is multiplied by."""
    return where(target == ignored, 0, grad / count)


def _scores(scores: DeviceArray, target: DeviceArray) -> Any:
    """(scores, targets, rows): a row for every position."""
    scores, target = fills.plain(scores), fills.plain(target)
    if scores.ndim == 1:
        return scores, target.reshape(1), rows.matrix(1, scores.size)
    batch, classes = scores.shape[:2]
    spatial = scores.size // max(batch * classes, 1)
    return scores, target, rows.columns(batch, classes, spatial)


def _plain_classes(scores: Any, target: Any, weight: Any) -> bool:
    arrays = isinstance(scores, DeviceArray) and isinstance(target, DeviceArray)
    return arrays and weight is None and scores.size > 0 and target.size > 0 and (
        target.dtype.kind in "iu" and _floats(scores.dtype))  # fmt: skip


def _in_one_pass(scores: Any, target: Any, ignored: int, row_data: Any, view: rows.Rows,
                 summed: bool) -> Any:  # fmt: skip
    """Losses and counts, of each row or summed over blocks: a launch that reads all scores once;
    the sum of exponentials is scaled as the largest grows."""
    vector = 16 // scores.itemsize
    peel = view.n % vector != 0
    if address(scores) % 16 or (peel and view.n < PEELED):
        vector, peel = 1, False
    group, several = _shares(view.n, vector)
    short = group <= WARP
    count = max(1, (SHORT_THREADS if short else ONLINE_THREADS) // group)
    groups = -(-view.count // count)
    turns = max(1, groups // BLOCKS) if short and summed else 1
    blocks = -(-groups // turns)
    found = fills.new((2, blocks if summed else view.count), None, row_data.dtype, scores)
    form = Shape(threads=group * count, aligned=vector > 1, reads=("x", "target"))
    made = kernel(
        class_loss_online, form, T=OF_NUMPY[NAMES[scores.dtype]], I=OF_NUMPY[NAMES[target.dtype]],
        V=vector, U=several, G=group, ROWS=count, PEEL=peel, SUMMED=summed,
    )  # fmt: skip
    made(blocks, scores, target, found[0], row_data[0], row_data[1], found[1], view.count, view.n,
         ignored, turns)  # fmt: skip
    return found


WARP = 32
ONLINE_THREADS, SHORT_THREADS = 128, 256
"""Threads of a block for rows of more than a warp, and for shorter ones."""
BLOCKS = 2112
"""Blocks that a GPU has work with: 16 for each of 132 processors."""
PEELED = 1 << 12
"""Scores of a row from which on those before and behind whole vectors are looked at apart."""
EACH = 4
"""Vectors of a row's threads at least, where it has as many."""


def _shares(n: int, vector: int) -> tuple[int, int]:
    """(threads of a row of n scores, vectors that each has under way)."""
    several = 4 if vector > 1 else 8
    vectors = -(-n // vector)
    group = min(1 << (max(vectors // EACH, 1) - 1).bit_length(), ONLINE_THREADS)
    needed = -(-vectors // group)
    return group, min(several, needed)


class Closing(NamedTuple):
    """What becomes of the numbers of all rows: `begin` of a part of them, `end` of what all parts
    gave, or `whole` at once."""

    whole: Formula
    begin: Formula
    end: Formula
    results: int = 1
    """Numbers that `begin` gives."""

    def run(self, compute: Any, given: tuple[Any, ...], out: Any) -> None:
        """Launch it for arrays of one length."""
        count = given[0].size
        parts = min(count // CLOSING_PART // 4 * 4, CLOSING_PARTS)  # all of them begin at 16 bytes
        if not parts:
            rows.run(self.whole, compute, given, (out,), rows.matrix(1, count))
            return
        pieces = fills.new((self.results, parts), None, working(out.dtype), out)
        found = tuple(pieces[k] for k in range(self.results))
        rows.run(self.begin, compute, given, found, rows.matrix(1, count), parts=parts)
        rows.run(self.end, rows.compute_type(pieces.dtype), found, (out,), rows.matrix(1, parts))


CLOSING_PART, CLOSING_PARTS = 1 << 12, 256
SUM = Closing(shared.sum_of, shared.sum_of, shared.sum_of)
COUNTED_MEAN = Closing(mean_that_counts, two_sums, mean_that_counts, 2)
COUNT = Closing(how_many, how_many, shared.sum_of)


@on_gpu("_cross_entropy", "_cross_entropy2d")
@repeated
@checked
def cross_entropy(scores: Any, target: Any, weight: Any, reduction: int, ignored: int) -> Any:
    """The loss; the greatest score and the sum of exponentials of each position."""
    return _class_losses(scores, target, weight, reduction, ignored)


@on_gpu("_cross_entropy_of_halves")
@repeated
@checked
def cross_entropy_of_halves(scores: Any, target: Any, reduction: int, ignored: int) -> Any:
    """The same for scores of half types, the loss in float32."""
    return _class_losses(scores, target, None, reduction, ignored, np.dtype(np.float32))


def _class_losses(scores: Any, target: Any, weight: Any, reduction: int, ignored: int,
                  result: np.dtype[Any] | None = None) -> Any:  # fmt: skip
    if not _plain_classes(scores, target, weight):
        return NotImplemented
    dtype, shape = result or scores.dtype, () if scores.ndim == 1 else target.shape
    scores, target, view = _scores(scores, target)
    kept = working(dtype)
    compute = rows.compute_type(dtype)
    positions = (target.shape[0], view.inner) if scores.ndim > 2 else target.shape  # noqa: PLR2004
    row_data = fills.new((2, *positions), None, kept, scores)
    if view.is_plain and kept.itemsize == 4:  # noqa: PLR2004
        losses = _in_one_pass(scores, target, ignored, row_data, view, reduction != NONE)
    else:
        losses = fills.new((2, view.count), None, kept, scores)
        results = losses[0], row_data[0], row_data[1], losses[1]
        rows.run(class_loss, compute, (scores, target, float(ignored)), results, view)
    if reduction == NONE:
        out = fills.new(shape, None, dtype, scores)
        return out if fills.copy(out, losses[0].reshape(shape)) else NotImplemented, row_data
    out = fills.new((), None, dtype, scores)
    if reduction == MEAN:
        COUNTED_MEAN.run(compute, (losses[0], losses[1]), out)
    else:
        SUM.run(compute, (losses[0],), out)
    return out, row_data


@on_gpu("_cross_entropy_backward")
@repeated
@checked
def cross_entropy_backward(grad: Any, scores: Any, target: Any, weight: Any, row_data: Any,
                           reduction: int, ignored: int) -> Any:  # fmt: skip
    """`(softmax - one_hot) * grad`, divided by how many count for a mean."""
    if not _plain_classes(scores, target, weight) or not isinstance(grad, DeviceArray):
        return NotImplemented
    shape, dtype = scores.shape, scores.dtype
    scores, target, view = _scores(scores, target)
    compute, kept = rows.compute_type(dtype), working(dtype)
    factor = _factors(target, grad, reduction, ignored, view, kept)
    out = fills.new(shape, None, dtype, scores)
    peaks, weights = (fills.plain(row_data[k]).reshape(-1) for k in range(2))
    rows.run(shared.cross_entropy_backward, compute,
             (scores, target.reshape(-1), peaks, weights, factor), (out,), view)  # fmt: skip
    return out


# ---- negative log-likelihood


@formula(x="full", target="index", ignored="number")
def picked_loss(x: Any, target: Any, ignored: Any) -> Any:
    """Minus the score of each row's class, 0 for those to be ignored, and 1 if it counts."""
    return where(target == ignored, 0, -at(x, target)), where(target == ignored, 0, 1)


@formula(size="full", target="index", factor="row")
def picked_slope(size: Any, target: Any, factor: Any) -> Any:
    """Minus a factor at each row's class, else 0; `size` is not looked at."""
    return where(position() == target, -factor, 0)


@on_gpu("nll_loss", "nll_loss2d")
@repeated
@checked
def nll_loss(scores: Any, target: Any, weight: Any = None, reduction: int = MEAN,
             ignored: int = -100) -> Any:  # fmt: skip
    """Minus the score of each target's class."""
    if not _plain_classes(scores, target, weight):
        return NotImplemented
    dtype, shape = scores.dtype, () if scores.ndim == 1 else target.shape
    scores, target, view = _scores(scores, target)
    compute = rows.compute_type(dtype)
    found = fills.new((2, view.count), None, working(dtype), scores)
    rows.run(picked_loss, compute, (scores, target, float(ignored)), (found[0], found[1]), view)
    if reduction == NONE:
        out = fills.new(shape, None, dtype, scores)
        return fills.done(fills.copy(out, found[0].reshape(shape)), out)
    out = fills.new((), None, dtype, scores)
    if reduction == MEAN:
        COUNTED_MEAN.run(compute, (found[0], found[1]), out)
    else:
        SUM.run(compute, (found[0],), out)
    return out


@on_gpu("nll_loss_backward")
@repeated
@checked
def nll_loss_backward(grad: Any, target: Any, weight: Any, size: Any, reduction: int,
                      ignored: int) -> Any:  # fmt: skip
    """Zero but at each target's class."""
    if weight is not None or not isinstance(grad, DeviceArray) or not isinstance(
        target, DeviceArray) or not target.size or not _floats(grad.dtype):  # fmt: skip
        return NotImplemented
    out = fills.new(tuple(size), None, grad.dtype, grad)
    _, target, view = _scores(out, target)
    factor = _factors(target, grad, reduction, ignored, view, working(grad.dtype))
    rows.run(picked_slope, rows.compute_type(grad.dtype), (out, target.reshape(-1), factor), (out,),
             view)  # fmt: skip
    return out


def _factors(target: Any, grad: Any, reduction: int, ignored: int, view: rows.Rows,
             kept: np.dtype[Any]) -> Any:  # fmt: skip
    """What the gradient of each row is multiplied by."""
    count: Any = 1.0
    if reduction == MEAN:
        count = fills.new((), None, kept, grad)
        COUNT.run(rows.compute_type(target.dtype), (target, ignored), count)
    grad = fills.plain(grad).reshape(-1) if grad.ndim else grad
    factor = fills.new((view.count,), None, kept, grad)
    return apply(row_factor, (target.reshape(-1), grad, count, float(ignored)), factor)
