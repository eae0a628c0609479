"""What drawn programs may use beside the library: data, hooks that tell, functions of a user's.

Everything is made for one library; what hooks and functions see is noted in the order in which
they see it.
"""

from __future__ import annotations

import contextlib
import copy
import io
import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from conformance.jit.generated.cases import TensorArgument
from conformance.jit.generated.making import laid

from . import observing
from .functions import functions
from .observing import BACKWARD


class Words:
    """The words of a program, and what it has noted with them.

    `shift`: by which part all numbers are changed, to see how well results are determined.
    """

    def __init__(self, torch: Any, shift: float = 0.0) -> None:
        self.torch = torch
        self.shift = shift
        self.notes: list[Any] = []

    def names(self) -> dict[str, Any]:
        """The names that programs see."""
        own = ("make", "note", "told", "scaled", "nothing", "threads", "pickled", "stored",
               "shape_of")  # fmt: skip
        return {
            "torch": self.torch, "F": self.torch.nn.functional, "copy": copy,
            **{name: getattr(self, name) for name in own},
            **functions(self.torch, self.note), **self._packs(),
        }  # fmt: skip

    def make(self, seed: int, shape: tuple[int, ...], dtype: str = "float64",
             layout: str = "rows", fill: str = "normal") -> Any:  # fmt: skip
        """A tensor of drawn numbers."""
        made = laid(TensorArgument(shape, dtype, seed, layout, "no", fill), self.torch).data
        if self.shift and (made.is_floating_point() or made.is_complex()):
            signs = self.torch.from_numpy(noise(seed, tuple(made.shape)))
            made.copy_(made + (self.shift * signs * made).to(made.dtype))
        return made

    def note(self, *values: Any) -> None:
        """Remember values as they are now."""
        self.notes.append([self.plain(value) for value in values])

    # ---- how a program is looked at

    ends = BACKWARD
    """What statements have after whose errors a program is over."""
    plain = staticmethod(observing.plain)
    looked = staticmethod(observing.seen)

    def watched(self, names: dict[str, Any]) -> dict[str, Any]:
        """What is looked at after each statement, whether it has changed or not."""
        return {}

    def apart(self) -> contextlib.AbstractContextManager[Any]:
        """What a program is run in."""
        return contextlib.nullcontext()

    def listening(self, line: observing.Line) -> contextlib.AbstractContextManager[Any]:
        """What a statement is run in."""
        return contextlib.nullcontext()

    # ---- hooks

    def told(self, name: str) -> Callable[..., None]:
        """A hook that changes nothing."""
        return lambda *values: self.note(name, *values)

    def scaled(self, name: str, factor: float) -> Callable[..., Any]:
        """A hook that gives gradients times a factor."""

        def hook(*values: Any) -> Any:
            self.note(name, *values)
            first = values[0]
            if not isinstance(first, tuple):
                return first * factor
            return tuple(None if g is None else g * factor for g in first)

        return hook

    def nothing(self, *values: Any) -> None:
        """A hook that does nothing at all."""

    def _packs(self) -> dict[str, Any]:
        hooks = self.torch.autograd.graph
        torch = self.torch

        def pack(name: str) -> Any:
            return hooks.saved_tensors_hooks(*PACKS[name](torch))

        return {"packed": pack}

    # ---- the rest

    def shape_of(self, tensor: Any) -> list[int]:
        return list(tensor.shape)

    def threads(self, *actions: Callable[[], Any]) -> None:
        """Run actions, each in a thread of its own, one after the other."""
        for action in actions:
            failed: list[BaseException] = []
            thread = threading.Thread(target=_guarded, args=(action, failed))
            thread.start()
            thread.join()
            if failed:
                raise failed[0]

    def pickled(self, value: Any) -> Any:
        return pickle.loads(pickle.dumps(value))  # noqa: S301

    def stored(self, value: Any) -> Any:
        """A value that was saved to a file, and loaded."""
        file = io.BytesIO()
        self.torch.save(value, file)
        file.seek(0)
        return self.torch.load(file)


def noise(seed: int, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers from -1 to 1."""
    return np.random.default_rng([seed, 1, *shape]).uniform(-1, 1, shape)


def _guarded(action: Callable[[], Any], failed: list[BaseException]) -> None:
    try:
        action()
    except Exception as error:  # noqa: BLE001  # raised again where it is waited for
        failed.append(error)


PACKS: dict[str, Callable[[Any], Any]] = {
    "same": lambda torch: (lambda t: t, lambda t: t),
    "copies": lambda torch: (lambda t: t.clone(), lambda t: t),
    "detached": lambda torch: (lambda t: t.detach().clone(), lambda t: t.clone()),
    "arrays": lambda torch: (
        lambda t: t.detach().resolve_conj().resolve_neg().numpy().copy(),
        lambda a: torch.from_numpy(a),
    ),
    "later": lambda torch: (lambda t: (t.detach(), 1), lambda pair: pair[0]),
}  # fmt: skip
"""Hooks for what is saved: (pack, unpack)."""
