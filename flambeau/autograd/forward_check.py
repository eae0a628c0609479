"""What `gradcheck(check_forward_ad=True)` does: Jacobians by dual tensors, against differences."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from flambeau._tensor.tensor import Tensor, wrap
from flambeau.autograd import forward_ad
from flambeau.autograd.backward_checks import GradcheckError
from flambeau.autograd.batched_checks import NO_DRAWING, directions
from flambeau.autograd.batches import REFUSED, batched
from flambeau.autograd.graph import tools
from flambeau.autograd.jacobians import numerical, outputs_of, real_parts

PARTS = (
    ("While considering the imaginary part of complex inputs only, ", slice(1, None, 2)),
    ("While considering the real part of complex inputs only, ", slice(0, None, 2)),
)
MISMATCH = (
    "{}Jacobian computed with forward mode mismatch for output {} with respect to input {},\n"
)

REASON = (
    "gradcheck failed while testing batched gradient computation with forward-mode AD. The "
    "function cannot run for several directions at once; `check_batched_forward_grad=False` leaves "
    "this check out.\n"
)
FAILED = "While computing batched gradients, got: {}\n\n" + REASON

Words = tuple[str, np.ndarray, np.ndarray]


def check_forward(func: Callable[..., Any], inputs: tuple[Any, ...], wanted: list[Tensor],
                  limits: Any) -> Iterator[str]:  # fmt: skip
    """What is to be said of each Jacobian that is not as finite differences have it."""
    for number, x in enumerate(wanted):
        for position, found in enumerate(_jacobians(func, inputs, x)):
            differences = numerical(func, inputs, x, position, limits.eps, limits.masked)
            for text, ours, theirs in _parts(found, differences, x._data.dtype.kind in "cW"):
                if not np.allclose(ours, theirs, limits.rtol, limits.atol):
                    head = MISMATCH.format(text, position, number)
                    yield (f"{head}numerical:{wrap(theirs.T.copy())}\n"
                           f"analytical:{wrap(ours.T.copy())}\n")  # fmt: skip


def _parts(found: np.ndarray, wanted: np.ndarray, is_complex: bool) -> Iterator[Words]:
    if not is_complex:
        yield "", found, wanted
        return
    for text, columns in PARTS:
        yield text, found[:, columns], wanted[:, columns]


def _jacobians(func: Callable[..., Any], inputs: tuple[Any, ...], x: Any) -> list[np.ndarray]:
    """For each output that has a derivative: its real parts by those of `x`."""
    columns: list[list[np.ndarray]] = []
    for unit in _units(x):
        for position, (primal, tangent) in enumerate(_derivatives(func, inputs, {id(x): unit})):
            if position == len(columns):
                columns.append([])
            shown = _zeros_like(primal) if tangent is None else tangent
            columns[position].append(real_parts(shown.detach()._data).copy())
    return [np.stack(found, axis=1) for found in columns]


def _derivatives(func: Callable[..., Any], inputs: tuple[Any, ...], tangents: dict[int, Any],
                 rest: bool = True) -> list[forward_ad.UnpackedDualTensor]:  # fmt: skip
    """Each output and its derivative; the function gets inputs that don't require grad.

    `tangents` are by the id of inputs; with `rest`, the others that are checked carry zeros.
    """
    given: list[Any] = []
    with forward_ad.dual_level():
        for value in inputs:
            plain = value.detach() if isinstance(value, Tensor) else value  # type: ignore[attr-defined]
            tangent = tangents.get(id(value))
            if tangent is None and rest and isinstance(value, Tensor) and value.requires_grad:
                tangent = _zeros_like(plain)
            given.append(plain if tangent is None else forward_ad.make_dual(plain, tangent))
        return [forward_ad.unpack_dual(output) for output in outputs_of(func(*given))]


def _zeros_like(tensor: Any) -> Any:
    return tensor.detach().new_zeros(tensor.shape)


def check_without_tangents(func: Callable[..., Any], inputs: tuple[Any, ...],
                           wanted: list[Tensor]) -> None:  # fmt: skip
    """An input without a tangent counts as one whose tangent is zeros, while the others carry one.
    GradcheckError otherwise."""
    for x in wanted:
        ones = {id(y): _zeros_like(y) + 1 for y in wanted if y is not x}
        with_zeros = _derivatives(func, inputs, {**ones, id(x): _zeros_like(x)})
        without = _derivatives(func, inputs, ones, rest=False)
        for position, (one, other) in enumerate(zip(with_zeros, without, strict=True)):
            got, expected = (_shown(each) for each in (one, other))
            if not np.allclose(got._data, expected._data, equal_nan=True):
                raise GradcheckError(
                    "Mismatch in tangent values for output with index: ", position,
                    " when input: ", x, " has an undefined tangent value. ",
                    " Got: ", got, " but expected: ", expected,
                )  # fmt: skip


def _shown(found: forward_ad.UnpackedDualTensor) -> Any:
    return _zeros_like(found.primal) if found.tangent is None else found.tangent.detach()


def check_batched_forward(func: Callable[..., Any], inputs: tuple[Any, ...],
                          wanted: list[Tensor]) -> None:  # fmt: skip
    """Derivatives in two directions at once are those in each of them. GradcheckError otherwise."""
    for x in wanted:
        both = directions(x)
        alone = [_derivatives(func, inputs, {id(x): each}, rest=False) for each in both]
        try:
            together = _batched_derivatives(func, inputs, x, both)
        except RuntimeError as error:
            words = NO_DRAWING if str(error) == REFUSED else error
            raise GradcheckError(FAILED.format(words)) from error
        for position, found in enumerate(together):
            wanted_ones = np.stack([_shown(found[position])._data for found in alone])
            if found is not None and not np.allclose(found._data, wanted_ones, equal_nan=True):
                raise GradcheckError(
                    f"For output {position} and input {list(map(id, inputs)).index(id(x))}:\n\n"
                    f"Got:\n{found}\n\nExpected:\n{wrap(wanted_ones)}\n\n{REASON}"
                )


def _batched_derivatives(func: Callable[..., Any], inputs: tuple[Any, ...], x: Any,
                         directions: list[Tensor]) -> list[Any]:  # fmt: skip
    with batched(len(directions), "error") as level:
        whole = tools.stack(directions)
        tangent = level.standing_for(whole)
        found = [each.tangent for each in _derivatives(func, inputs, {id(x): tangent}, rest=False)]
        examples = [None if each is None else level.example(each) for each in found]
    return [e.value if e is not None and e.is_batched else None for e in examples]


def _units(x: Any) -> Iterator[Tensor]:
    """Tangents with one real or imaginary part that is 1."""
    parts = (1, 1j) if x._data.dtype.kind in "cW" else (1,)
    for place in np.ndindex(x._data.shape):
        for part in parts:
            data = np.zeros(x._data.shape, x._data.dtype)
            data[place] = part
            yield wrap(data)
