"""What `gradcheck(check_forward_ad=True)` does: Jacobians by dual tensors, against differences."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from flambeau._tensor.tensor import Tensor, wrap
from flambeau.autograd import forward_ad
from flambeau.autograd.jacobians import numerical, outputs_of, real_parts

PARTS = (
    ("While considering the imaginary part of complex inputs only, ", slice(1, None, 2)),
    ("While considering the real part of complex inputs only, ", slice(0, None, 2)),
)
MISMATCH = (
    "{}Jacobian computed with forward mode mismatch for output {} with respect to input {},\n"
)

Words = tuple[str, np.ndarray, np.ndarray]


def check_forward(func: Callable[..., Any], inputs: tuple[Any, ...], wanted: list[Tensor],
                  limits: Any) -> Iterator[str]:  # fmt: skip
    """What is to be said of each Jacobian that is not as finite differences have it."""
    for number, x in enumerate(wanted):
        for position, found in enumerate(_jacobians(func, inputs, x)):
            differences = numerical(func, inputs, x, position, limits.eps, limits.masked)
            for text, ours, theirs in _parts(found, differences, x._data.dtype.kind == "c"):
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
        with forward_ad.dual_level():
            given = [forward_ad.make_dual(v, unit) if v is x else v for v in inputs]
            outputs = [forward_ad.unpack_dual(o) for o in outputs_of(func(*given))]
        for position, (primal, tangent) in enumerate(outputs):
            if position == len(columns):
                columns.append([])
            shown = primal.detach().new_zeros(primal.shape) if tangent is None else tangent
            columns[position].append(real_parts(shown.detach()._data).copy())
    return [np.stack(found, axis=1) for found in columns]


def _units(x: Any) -> Iterator[Tensor]:
    """Tangents with one real or imaginary part that is 1."""
    parts = (1, 1j) if x._data.dtype.kind == "c" else (1,)
    for place in np.ndindex(x._data.shape):
        for part in parts:
            data = np.zeros(x._data.shape, x._data.dtype)
            data[place] = part
            yield wrap(data)
