"""What drawn programs of modules may use beside the library."""

from __future__ import annotations

import contextlib
import importlib
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

from conformance.autograd.generated.observing import Line
from conformance.autograd.generated.words import Words

from . import observing
from .classes import classes

RULES = {"one": 1.0, "half": 0.5, "nothing": 0.0}


class ModuleWords(Words):
    """The words of a program of modules."""

    ends = (*Words.ends, "closure(")
    plain = staticmethod(observing.state)
    looked = staticmethod(observing.uncounted)

    def names(self) -> dict[str, Any]:
        torch = self.torch
        utils = torch.nn.utils
        prune = importlib.import_module(f"{torch.__name__}.nn.utils.prune")
        own = (
            "batch",
            "ends_in",
            "raises",
            "replaced",
            "added",
            "closure",
            "renamed",
            "everywhere",
        )
        return {
            **super().names(), "nn": torch.nn, "optim": torch.optim, "init": torch.nn.init,
            "utils": utils, "prune": prune,
            "parametrize": utils.parametrize,
            "parametrizations": utils.parametrizations, "schedulers": torch.optim.lr_scheduler,
            "swa": torch.optim.swa_utils,
            "functional_call": torch.func.functional_call, "OrderedDict": OrderedDict,
            **{name: getattr(self, name) for name in own}, **classes(torch, self.note),
        }  # fmt: skip

    def note(self, *values: Any) -> None:
        """Remember values as they are now; of modules, which: hooks run before or after leaves
        have their gradients."""
        named = [type(v).__name__ if hasattr(v, "named_modules") else v for v in values]
        super().note(*named)

    # ---- how a program is looked at

    def watched(self, names: dict[str, Any]) -> dict[str, Any]:
        """Every module, optimizer, scheduler and scaler."""
        return {
            f"{name} then": observing.state(value)
            for name, value in names.items()
            if name[:1] in "mosca" and name[1:].isdigit() and observing.is_tracked(value)
        }

    @contextlib.contextmanager
    def apart(self) -> Iterator[None]:
        """Nothing of it stays: global hooks, the default type, warnings that come once."""
        torch = self.torch
        before = torch.get_default_dtype()
        torch.set_warn_always(True)
        self.handles: list[Any] = []
        try:
            yield
        finally:
            torch.set_default_dtype(before)
            torch.set_warn_always(False)
            torch.set_autocast_enabled("cpu", False)
            for handle in self.handles:
                handle.remove()

    @contextlib.contextmanager
    def listening(self, line: Line) -> Iterator[None]:
        """Errors and warnings are weighed in words."""
        line.weighed = True
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            yield
        line.warned = sorted({_warning(warning) for warning in told})

    # ---- data

    def batch(self, seed: int, shape: tuple[int, ...] = (2, 3)) -> Any:
        """An input, in the default type."""
        return self.make(seed, shape).to(self.torch.get_default_dtype())

    # ---- hooks and functions

    def everywhere(self, kind: str, hook: Callable[..., Any]) -> Any:
        """Register a hook on every module there is."""
        handle = getattr(self.torch.nn.modules.module, f"register_module_{kind}_hook")(hook)
        self.handles.append(handle)
        return handle

    def raises(self, name: str) -> Callable[..., None]:
        """A hook that fails."""

        def hook(*values: Any) -> None:
            raise RuntimeError(f"{name} fails")

        return hook

    def replaced(self, name: str, factor: float) -> Callable[..., Any]:
        """A hook that gives its last argument times a factor."""

        def hook(*values: Any) -> Any:
            self.note(name, *values[1:])
            return _times(values[-1], factor)

        return hook

    def added(self, name: str) -> Callable[..., Any]:
        """A hook that gives its last argument, and it once more."""

        def hook(*values: Any) -> Any:
            last = values[-1] if isinstance(values[-1], tuple) else (values[-1],)
            self.note(name, len(last))
            return (*last, *last)

        return hook

    def renamed(self, old: str, new: str) -> Callable[..., None]:
        """A state dict's hook, which gives keys other names."""

        def hook(*values: Any) -> None:
            found = next(v for v in values if isinstance(v, dict))
            for key in [k for k in found if old in k]:
                found[key.replace(old, new)] = found.pop(key)

        return hook

    def ends_in(self, *values: Any) -> Any:
        """The sum of the squares of every tensor in values: a loss."""
        found = [(v * v).sum() for value in values for v in _leaves(value)]
        return sum(found[1:], found[0])

    def closure(self, optimizer: Any, loss: Callable[[], Any]) -> Callable[[], Any]:
        """What optimizers call to compute a loss again."""

        def call() -> Any:
            optimizer.zero_grad()
            found = loss()
            found.backward()
            return found

        return call


def _times(value: Any, factor: float) -> Any:
    if isinstance(value, dict):
        return {key: _times(item, factor) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value)(_times(item, factor) for item in value)
    return None if value is None else value * factor


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, (tuple, list)):
        for item in value:
            yield from _leaves(item)
    elif value is not None:
        yield value


def _warning(warning: warnings.WarningMessage) -> tuple[str, str]:
    first = str(warning.message).strip().partition("\n")[0]
    return warning.category.__name__, first.partition(" (Triggered internally")[0]
