"""`einsum`: sums of products by letters, through transposes and batched products.

Two operands at a time, from left to right: dims that both have and the result keeps are batches,
dims that both have and nobody needs any more are summed by the product, all others are its rows
and columns.
"""

from __future__ import annotations

import math
import string
from dataclasses import dataclass
from typing import Any

from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import composite
from flambeau._tensor.symbolic_numbers import is_symbolic
from flambeau._tensor.tensor import Tensor

LETTERS = string.ascii_uppercase + string.ascii_lowercase
"""Label k of the sublist format is the k-th of these."""
ELLIPSIS = "..."
OUTPUT = "output"
REPEATED = ("for which an ellipsis was already found",
            "but an ellipsis (...) was already found")  # fmt: skip


@composite(
    "einsum(str equation, Tensor[] tensors) -> Tensor",
    regular=True,
    may_give_input=True,
    bare=True,
    method=False,
)
def einsum(*args: Any) -> Any:
    """The sum over all letters that the result does not name, of products of the operands.

    `einsum("ij,jk->ik", a, b)` multiplies matrices; `...` stands for dims that broadcast; without
    an arrow the result has the letters that occur once, in alphabetical order. The other form
    gives lists of ints instead of letters: `einsum(a, [0, 1], b, [1, 2], [0, 2])`.

    >>> import flambeau as torch
    >>> torch.einsum("i,i->", torch.tensor([1., 2.]), torch.tensor([3., 4.]))
    tensor(11.)
    """
    if len(args) < 2:
        raise ValueError(NO_OPERAND)
    if len(args) == 3 and args[0].__class__ is str and isinstance(args[1], Tensor):
        try:
            known = PLANS.get((args[0], args[1]._data.shape, args[2]._data.shape))
        except TypeError:  # sizes are symbols
            known = None
        if known is not None:
            return known.run(args[1], args[2])
    equation, operands = arguments(args)
    if not operands:
        raise ValueError(NO_OPERAND)
    inputs, output = _parse(equation, operands)
    contraction = _Contraction(inputs, output, operands)
    if len(operands) == 2:
        _remember(equation, contraction, operands)
    return contraction.run()


NO_OPERAND = ("einsum(): must specify the equation string and at least one operand, or at least "
              "one operand and its subscripts list")  # fmt: skip


def arguments(args: tuple[Any, ...]) -> tuple[str, list[Any]]:
    """The equation and the operands of a call in either of its forms."""
    if isinstance(args[0], Tensor):
        return _from_sublists(args)
    operands = list(args[1:])
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = list(operands[0])
    if not isinstance(args[0], str):
        raise TypeError("einsum(): argument 'equation' (position 1) must be str, not "
                        f"{type(args[0]).__name__}")  # fmt: skip
    return args[0], operands


def _from_sublists(args: tuple[Any, ...]) -> tuple[str, list[Any]]:
    pairs = len(args) // 2
    operands = [args[2 * i] for i in range(pairs)]
    equation = ",".join(_letters(args[2 * i + 1]) for i in range(pairs))
    if len(args) % 2:
        equation += "->" + _letters(args[-1])
    return equation, operands


def _letters(labels: Any) -> str:
    return "".join([_letter(label) for label in labels])


def _letter(label: Any) -> str:
    if label is Ellipsis:
        return ELLIPSIS
    if isinstance(label, int) and 0 <= label < 52:
        return LETTERS[label]
    raise ValueError("einsum(): subscript in subscript list is not within the valid range [0, 52)")


# ---- the equation


def _parse(equation: str, operands: list[Any]) -> tuple[list[list[str]], list[str] | None]:
    """The labels of each operand and of the result (None where there is no arrow)."""
    left, arrow, right = equation.partition("->")
    _check_letters(left + "  " + right)
    terms = left.split(",")
    inputs = [_labels(term, f"operand {position}") for position, term in enumerate(terms)]
    if len(terms) < len(operands):
        raise RuntimeError("einsum(): more operands were provided than specified in the equation")
    if len(terms) > len(operands):
        raise RuntimeError("einsum(): fewer operands were provided than specified in the equation")
    output = None
    if arrow:
        output = _labels(right, OUTPUT)
        _check_output(output, inputs)
    return inputs, output


def _check_letters(without_arrow: str) -> None:
    for index, character in enumerate(without_arrow):
        if character not in LETTERS and character not in " .,":
            raise RuntimeError(f"einsum(): invalid subscript given at index {index} in the "
                               "equation string, subscripts must be in [a-zA-Z]")  # fmt: skip


def _labels(term: str, place: str) -> list[str]:
    """The letters of a term, "..." among them."""
    labels: list[str] = []
    rest = term.strip(" ")
    found = False
    while rest:
        if rest.startswith(ELLIPSIS):
            if found:
                raise RuntimeError(f"einsum(): found '.' for {place} " + REPEATED[place == OUTPUT])
            found = True
            labels.append(ELLIPSIS)
            rest = rest[3:]
            continue
        if rest[0] == ".":
            hint = " (...)" if place == OUTPUT else ""
            raise RuntimeError(
                f"einsum(): found '.' for {place} that is not part of any ellipsis{hint}"
            )
        if rest[0] != " ":
            labels.append(rest[0])
        rest = rest[1:]
    return labels


def _check_output(output: list[str], inputs: list[list[str]]) -> None:
    known = {label for labels in inputs for label in labels}
    for label in output:
        if output.count(label) > 1:
            raise RuntimeError(
                f"einsum(): output subscript {label} appears more than once in the output"
            )
        if label not in known and label != ELLIPSIS:
            raise RuntimeError(f"einsum(): output subscript {label} does not appear in the "
                               "equation for any input operand")  # fmt: skip


def _expand_ellipsis(labels: list[str], rank: int, ndim: int) -> list[Any]:
    """Labels with "..." replaced by the numbers of the dims it stands for, counted from behind."""
    if ELLIPSIS not in labels:
        return list(labels)
    place = labels.index(ELLIPSIS)
    covered = ndim - (len(labels) - 1)
    return [*labels[:place], *range(rank - covered, rank), *labels[place + 1 :]]


# ---- the contraction


class _Contraction:
    """Operands as tensors with a list of labels each, contracted from left to right."""

    def __init__(self, inputs: list[list[str]], output: list[str] | None,
                 operands: list[Any]) -> None:  # fmt: skip
        for position, (labels, operand) in enumerate(zip(inputs, operands, strict=True)):
            _check_count(position, labels, operand)
        covered = [
            operand._data.ndim - len(labels) + 1
            for labels, operand in zip(inputs, operands, strict=True)
            if ELLIPSIS in labels
        ]
        self.rank = max(covered, default=0)
        self.labels = [
            _expand_ellipsis(labels, self.rank, operand._data.ndim)
            for labels, operand in zip(inputs, operands, strict=True)
        ]
        self.output = self._output(inputs, output)
        self.sizes: dict[Any, int] = {}
        self.operands = [self._without_repeats(i, operand) for i, operand in enumerate(operands)]

    def _output(self, inputs: list[list[str]], output: list[str] | None) -> list[Any]:
        if output is not None:
            place = output.index(ELLIPSIS) if ELLIPSIS in output else None
            if place is None:
                return list(output)
            return [*output[:place], *range(self.rank), *output[place + 1 :]]
        letters = [label for labels in inputs for label in labels if label != ELLIPSIS]
        once = sorted(label for label in letters if letters.count(label) == 1)
        return [*range(self.rank), *sorted(once, key=LETTERS.index)]

    def _without_repeats(self, position: int, operand: Any) -> Any:
        """Diagonals where an operand names a letter twice; notes the sizes of letters."""
        labels = self.labels[position]
        for label, size in zip(list(labels), operand._data.shape, strict=True):
            self._note_size(position, label, size, list(labels), operand)
        for label in dict.fromkeys(labels):
            while labels.count(label) > 1:
                first = labels.index(label)
                second = labels.index(label, first + 1)
                operand = ops.diagonal(operand, 0, first, second).movedim(-1, first)
                del labels[second]
        return operand

    def _note_size(self, position: int, label: Any, size: int, labels: list[Any],
                   operand: Any) -> None:  # fmt: skip
        shape = operand._data.shape
        inside = [n for other, n in zip(labels, shape, strict=True) if other == label]
        for other in inside:
            if other != inside[0]:
                raise RuntimeError(
                    f"einsum(): subscript {label} is repeated for operand {position} but the sizes "
                    f"don't match, {other} != {inside[0]}"
                )
        known = self.sizes.get(label, 1)
        if known != 1 and size not in (1, known):
            if isinstance(label, int):
                raise RuntimeError(
                    f"einsum(): dimension {label} covered by ellipsis in operand {position}has "
                    f"size {size} which does not broadcast with previously seen ellipsis with size "
                    f"{known} for the respective dimension"
                )
            raise RuntimeError(
                f"einsum(): subscript {label} has size {size} for operand {position} which does "
                f"not broadcast with previously seen size {known}"
            )
        self.sizes[label] = max(known, size) if size else 0

    def run(self) -> Any:
        """Contract the operands one after the other and order the result's dims."""
        tensor, labels = self.operands[0], self.labels[0]
        tensor, labels = self._sum_lonely(tensor, labels, self._needed_after(0))
        for position in range(1, len(self.operands)):
            needed = self._needed_after(position)
            right, right_labels = self.operands[position], self.labels[position]
            here = {*labels, *needed}
            right, right_labels = self._sum_lonely(right, right_labels, here)
            here = {*right_labels, *needed}
            tensor, labels = self._sum_lonely(tensor, labels, here)
            pair = _Pair(labels, right_labels, self.output, needed)
            if len(self.operands) == 2 and pair.is_turned:
                pair = _Pair(right_labels, labels, self.output, needed)
                tensor, right = right, tensor
            tensor, labels = _product(pair, tensor, right)
        order = [labels.index(label) for label in self.output if label in labels]
        untouched = tensor is self.operands[0]  # of which the result is a view
        permuted = untouched or order != [*range(len(order))]
        tensor = tensor.permute(order) if permuted else tensor
        summed = len(self.operands) > 1 and not self.sizes.keys() <= {*self.output}
        if summed and (permuted or tensor._root is None):
            return tensor.view(tensor._data.shape)
        return tensor

    def _needed_after(self, position: int) -> set[Any]:
        rest = {label for labels in self.labels[position + 1 :] for label in labels}
        return rest | set(self.output)

    def _sum_lonely(self, tensor: Any, labels: list[Any],
                    needed: set[Any]) -> tuple[Any, list[Any]]:  # fmt: skip
        lonely = [label for label in labels if label not in needed]
        if not lonely:
            return tensor, labels
        kept = [label for label in labels if label in needed]
        return _summed(tensor, labels, kept, lonely, self.output)


def _check_count(position: int, labels: list[str], operand: Any) -> None:
    ndim = operand._data.ndim
    named = len([label for label in labels if label != ELLIPSIS])
    if ELLIPSIS in labels:
        if named > ndim:
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({named}) is more than the "
                f"number of dimensions ({ndim}) for operand {position}"
            )
        return
    if named != ndim:
        raise RuntimeError(
            f"einsum(): the number of subscripts in the equation ({named}) does not match the "
            f"number of dimensions ({ndim}) for operand {position} and no ellipsis was given"
        )


def _arranged(labels: list[Any], output: list[Any]) -> list[Any]:
    """Labels in the order of the result, those that it has not last."""
    last = len(output)
    return sorted(labels, key=lambda label: output.index(label) if label in output else last)


class _Pair:
    """Two operands' labels in groups, each in the order of the result, so that it lies as torch's:
    those of both (batch, or inner where nobody needs them any more), of the left, of the right."""

    def __init__(self, left: list[Any], right: list[Any], output: list[Any],
                 needed: set[Any]) -> None:  # fmt: skip
        self.left, self.right, self.needed, self.output = left, right, needed, output
        shared = [label for label in left if label in right]
        self.inner = [label for label in shared if label not in needed]
        self.batch = _arranged([label for label in shared if label in needed], output)
        self.rows = _arranged([label for label in left if label not in shared], output)
        self.columns = _arranged([label for label in right if label not in shared], output)

    @property
    def is_turned(self) -> bool:
        """Whether the result has all of the right before the left: then the product is turned."""
        if not (self.inner and self.rows and self.columns):
            return False
        last, first = self.columns[-1], self.rows[0]
        return {last, first} <= set(self.output) and (
            self.output.index(last) < self.output.index(first))  # fmt: skip


def _product(pair: _Pair, left: Any, right: Any) -> tuple[Any, list[Any]]:
    """The product of two operands, summed over shared labels that nobody needs any more."""
    if not pair.inner:
        return _broadcast_product(pair, left, right)
    broadcast = _broadcast_within(pair, left, right)
    if broadcast:
        left, one = _without(left, pair.left, broadcast, pair.output)
        right, other = _without(right, pair.right, broadcast, pair.output)
        return _product(_Pair(one, other, pair.output, pair.needed), left, right)
    left, right = (
        _matched(left, pair.left, right, pair.right, pair.needed),
        _matched(right, pair.right, left, pair.left, pair.needed),
    )
    a = _grouped(left, pair.left, (pair.batch, pair.rows, pair.inner))
    b = _grouped(right, pair.right, (pair.batch, pair.inner, pair.columns))
    sizes = {**_sizes(right, pair.right), **_sizes(left, pair.left)}
    labels = [*pair.batch, *pair.rows, *pair.columns]
    return ops.bmm(a, b).reshape([sizes[label] for label in labels]), labels


def _broadcast_within(pair: _Pair, left: Any, right: Any) -> list[Any]:
    """The inner labels of which one operand has a single element: each is summed for itself."""
    one, other = _sizes(left, pair.left), _sizes(right, pair.right)
    return [label for label in pair.inner if 1 in (one[label], other[label])]


def _without(tensor: Any, labels: list[Any], dropped: list[Any],
             output: list[Any]) -> tuple[Any, list[Any]]:  # fmt: skip
    """The sum over some labels, and the labels of it."""
    dims = [d for d, label in enumerate(labels) if label in dropped]
    kept = [label for label in labels if label not in dropped]
    if all(tensor._data.shape[d] == 1 for d in dims):
        return ops.squeeze(tensor, dims), kept
    return _summed(tensor, labels, kept, dropped, output)


def _summed(tensor: Any, labels: list[Any], kept: list[Any], dropped: list[Any],
            output: list[Any]) -> tuple[Any, list[Any]]:  # fmt: skip
    """The sum over dropped labels, of a tensor that has the kept ones in the order of the result,
    so that the sum lies in memory in that order."""
    kept = _arranged(kept, output)
    order = _order(labels, [*kept, *dropped])
    tensor = tensor if order is None else tensor.permute(order)
    return ops.sum(tensor, list(range(len(kept), len(labels)))), kept


def _sizes(tensor: Any, labels: list[Any]) -> dict[Any, int]:
    return dict(zip(labels, tensor._data.shape, strict=True))


def _matched(tensor: Any, labels: list[Any], other: Any, other_labels: list[Any],
             needed: set[Any]) -> Any:  # fmt: skip
    """The tensor with the other's sizes in shared dims: batches expand, sums against 1 shrink."""
    theirs = _sizes(other, other_labels)
    for d, label in enumerate(labels):
        size = tensor._data.shape[d]
        if theirs.get(label, size) == size:
            continue
        if label not in needed and size != 1:
            tensor = ops.sum(tensor, d, True)
        elif label in needed and size == 1:
            shape = list(tensor._data.shape)
            shape[d] = theirs[label]
            tensor = ops.expand(tensor, shape)
    return tensor


# ---- the same product again


@dataclass(frozen=True, slots=True)
class _Plan:
    """A product of two operands: how each is permuted and shaped, and the result after it, which is
    a view whether it is permuted (`order`, with the shape before that) or not."""

    left: tuple[Any, Any]
    right: tuple[Any, Any]
    order: tuple[int, ...] | None
    unordered: list[int]
    shape: list[int]
    batched: bool
    turned: bool

    def run(self, left: Any, right: Any) -> Any:
        """The result for operands of the shapes that the plan was made for."""
        if self.turned:
            left, right = right, left
        order, shape = self.left
        left = left if order is None else ops.permute(left, order)
        left = left if shape is None else left.reshape(shape)
        order, shape = self.right
        right = right if order is None else ops.permute(right, order)
        right = right if shape is None else right.reshape(shape)
        product = ops.bmm(left, right) if self.batched else ops.mm(left, right)
        if self.order is not None:
            product = ops.permute(product.view(self.unordered), self.order)
        return product.view(self.shape)


PLANS: dict[Any, _Plan] = {}
"""(equation, shape, shape) -> plan, for products that need no sums or broadcasts before."""
MOST_PLANS = 1024


def _remember(equation: str, contraction: _Contraction, operands: list[Any]) -> None:
    left, right = contraction.labels
    shapes = [operand._data.shape for operand in operands]
    if any(map(is_symbolic, shapes[0] + shapes[1])):
        return
    sizes = dict(zip(left, shapes[0], strict=False)) | dict(zip(right, shapes[1], strict=False))
    output = contraction.output
    plain = len(left) == len(shapes[0]) and len(right) == len(shapes[1])
    shared = [label for label in left if label in right]
    inner = [label for label in shared if label not in output]
    lonely = [label for label in {*left, *right} - {*output} if label not in shared]
    single = any(sizes[label] == 1 for label in inner)
    if not plain or not inner or single or lonely or len(PLANS) > MOST_PLANS:
        return
    if any(sizes[label] != n for label, n in zip(left, shapes[0], strict=True)):
        return
    pair = _Pair(left, right, output, set(output))
    turned = pair.is_turned
    if turned:
        pair = _Pair(right, left, output, set(output))
    batch, rows, columns = pair.batch, pair.rows, pair.columns
    whole = [*batch, *rows, *columns]
    order = _order(whole, output)
    groups = [[sizes[label] for label in labels] for labels in (batch, rows, columns)]
    result = [n for group in groups for n in group]
    PLANS[equation, shapes[0], shapes[1]] = _Plan(
        _operand_plan(pair.left, (batch, rows, pair.inner), sizes),
        _operand_plan(pair.right, (batch, pair.inner, columns), sizes),
        order,
        result,
        [sizes[label] for label in output],
        bool(batch),
        turned,
    )


def _order(labels: list[Any], wanted: list[Any]) -> tuple[int, ...] | None:
    """The permutation that brings labels into an order, None if they are in it."""
    return None if labels == wanted else tuple([labels.index(label) for label in wanted])


def _operand_plan(labels: list[Any], groups: Any, sizes: dict[Any, int]) -> tuple[Any, Any]:
    order = _order(labels, [label for group in groups for label in group])
    if not groups[0]:
        groups = groups[1:]
    if all(len(group) == 1 for group in groups):
        return order, None
    return order, [math.prod([sizes[label] for label in group]) for group in groups]


def _grouped(tensor: Any, labels: list[Any], groups: Any) -> Any:
    """The tensor with its dims in groups, each flattened into one."""
    order = [labels.index(label) for group in groups for label in group]
    if order != [*range(len(order))]:
        tensor = tensor.permute(order)
    shape = tensor._data.shape
    sizes = []
    start = 0
    for group in groups:
        size = 1
        for n in shape[start : start + len(group)]:
            size *= n
        sizes.append(size)
        start += len(group)
    return tensor.reshape(sizes)


def _broadcast_product(pair: _Pair, left: Any, right: Any) -> tuple[Any, list[Any]]:
    """The product where nothing is summed: dims line up and broadcast."""
    labels = [*pair.left, *(label for label in pair.right if label not in pair.left)]
    labels = _arranged(labels, pair.output)
    return _aligned(left, pair.left, labels) * _aligned(right, pair.right, labels), labels


def _aligned(tensor: Any, own: list[Any], labels: list[Any]) -> Any:
    missing = [label for label in labels if label not in own]
    for _ in missing:
        tensor = tensor.unsqueeze(-1)
    order = _order([*own, *missing], labels)
    return tensor if order is None else tensor.permute(order)
