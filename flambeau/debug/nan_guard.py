"""The first operator that turns finite numbers into NaN or infinity."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import ContextDecorator
from typing import Any

import numpy as np

from flambeau._core.dtype import NUMPY_HALVES
from flambeau._core.modes import Observer, observing
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.engine import running
from flambeau.debug.places import ModulePath, Place, caller


class NonFiniteError(RuntimeError):
    """An operator made NaN or infinity of finite numbers."""


class NonFiniteWarning(UserWarning):
    """The same, as a warning."""


class nan_guard(ContextDecorator):
    """Name the first operator, forward or backward, that turns finite inputs into NaN or infinity.

        with flambeau.debug.nan_guard():
            loss = model(x)
            loss.backward()

    The message has the operator, the line of the program, the module, and shape, type and range of
    every input. An operator whose input is NaN already is not to blame, nor one that is given an
    infinity, such as masking with -inf, unless it makes NaN of it.

    action: "raise" a NonFiniteError, or "warn" (each line once).
    infinities: whether infinities count, or NaN only (as in training with scaled losses, where
        overflowing gradients are part of the method).
    backward: whether gradients are looked at, too.
    """

    def __init__(self, action: str = "raise", *, infinities: bool = True,
                 backward: bool = True) -> None:  # fmt: skip
        if action not in ("raise", "warn"):
            raise ValueError(f"action should be 'raise' or 'warn', but got {action!r}")
        self.action, self.infinities, self.backward = action, infinities, backward
        self.open: list[Any] = []

    def __enter__(self) -> nan_guard:
        modules = ModulePath()
        guard = observing(Guard(self, modules))
        modules.__enter__()
        guard.__enter__()
        self.open.append((guard, modules))
        return self

    def __exit__(self, *exc: object) -> None:
        for part in self.open.pop():
            part.__exit__(*exc)


class Guard(Observer):
    """Looks at every result."""

    def __init__(self, options: nan_guard, modules: ModulePath) -> None:
        self.options, self.modules = options, modules
        self.reported: set[Any] = set()

    def before(self, name: str, values: tuple[Any, ...], functional: bool | None) -> Any:
        """In place, the input is gone afterwards."""
        if functional:
            return None
        return worst(values), described(values)

    def after(self, name: str, values: tuple[Any, ...], result: Any, seen: Any) -> None:
        """Compare what an operator made with what it was given."""
        if running.task is not None:  # part of a node of backward, which is looked at as a whole
            return
        if not any(isinstance(value, Tensor) for value in flat(values)):
            return
        self.remember(result)
        made = worst(result)
        if made <= (FINITE if self.options.infinities else INFINITE):
            return
        given = worst(values) if seen is None else seen[0]
        if made > given:
            inputs = described(values) if seen is None else seen[1]
            self.report(name, made, given, result, inputs, caller(), str(self.modules))

    def remember(self, result: Any) -> None:
        """Note on a node where its operator was called, for backward."""
        if not self.options.backward:
            return
        for item in flat(result):
            node = item._node if isinstance(item, Tensor) else None
            if node is not None and hasattr(node, "metadata"):
                node.metadata.setdefault("nan_guard", (caller(), str(self.modules)))

    def node(self, node: Any, grad: Any, grads: tuple[Any, ...]) -> None:
        """Compare what a node of backward made with what it was given."""
        if not self.options.backward:
            return
        made = worst(grads)
        given = worst(grad)
        if made <= (FINITE if self.options.infinities else INFINITE) or made <= given:
            return
        place, module = node.metadata.get("nan_guard", (None, ""))
        name = f"the gradient of {node.name().removesuffix('0').removesuffix('Backward')}"
        self.report(name, made, given, grads, described((grad,)), place, module)

    def report(self, what: str, made: int, given: int, result: Any, inputs: list[str],
               place: Place | None, module: str) -> None:  # fmt: skip
        """Raise or warn."""
        key = (what, place)
        if key in self.reported:
            return
        self.reported.add(key)
        where = [f"  {place}"] if place is not None else []
        where += [f"  in module {module}"] if module else []
        source = "finite" if given == FINITE else "infinite"
        head = f"{what} made {counted(result, made)} of {source} input"
        text = "\n".join([head, *where, *[f"  input: {each}" for each in inputs]])
        if self.options.action == "raise":
            raise NonFiniteError(text)
        warnings.warn(text, NonFiniteWarning, stacklevel=6)


# ---- looking at values


FINITE, INFINITE, NAN = 0, 1, 2


def flat(value: Any) -> Iterator[Any]:
    """What is in lists and tuples."""
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from flat(item)
    else:
        yield value


def numbers_of(value: Any) -> np.ndarray | None:
    """The floats of a tensor or number; None of anything else."""
    if isinstance(value, Tensor):
        data = getattr(value, "_entries", value)._data  # of a sparse tensor
        if data.dtype in NUMPY_HALVES:
            return data.astype(np.float32)
        return data if data.dtype.kind in "fc" else None
    if isinstance(value, (float, complex)):
        return np.asarray(value)
    return None


def worst(value: Any) -> int:
    """FINITE, INFINITE or NAN: the worst that is in there."""
    found = FINITE
    for item in flat(value):
        data = numbers_of(item)
        if data is None or not data.size:
            continue
        with np.errstate(all="ignore"):
            if np.isfinite(np.add.reduce(data, None)):  # as cheap as can be: a sum shows both
                continue
            if np.isnan(data).any():
                return NAN
            if np.isinf(data).any():
                found = INFINITE
    return found


def counted(result: Any, made: int) -> str:
    """How many of which values there are, and where the first is."""
    test, word = (np.isnan, "NaN") if made == NAN else (np.isinf, "inf")
    for item in flat(result):
        data = numbers_of(item)
        if data is None or not test(data).any():
            continue
        first = tuple(int(k) for k in np.argwhere(test(data))[0])
        return f"{int(test(data).sum())} {word} (of {data.size}, the first at {list(first)})"
    return word


def described(values: Any) -> list[str]:
    """Shape, type and range of each tensor, and numbers as they are."""
    found = []
    for item in flat(values):
        if isinstance(item, Tensor):
            name = str(item.dtype).removeprefix("torch.")
            found.append(f"{name}{list(item.shape)}{range_of(numbers_of(item))}")
        elif isinstance(item, (float, complex)):
            found.append(repr(item))
    return found


def range_of(data: np.ndarray | None) -> str:
    """From the smallest to the largest finite number, and how many are 0 or not finite."""
    if data is None or data.dtype.kind == "c" or not data.size:
        return ""
    finite = data[np.isfinite(data)]
    text = f" from {float(finite.min()):.6g} to {float(finite.max()):.6g}" if finite.size else ""
    counts = {"0": data == 0, "inf": np.isposinf(data), "-inf": np.isneginf(data),
              "NaN": np.isnan(data)}  # fmt: skip
    parts = [f"{int(found.sum())} {word}" for word, found in counts.items() if found.any()]
    return f"{text} ({', '.join(parts)})" if parts else text
