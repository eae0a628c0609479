"""Modules whose attributes are settings: reading asks a function, writing tells one."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from flambeau._core import precision


class Frozen:
    """Whether `disable_global_flags` was called, and how many `flags()` blocks are open."""

    frozen = False
    inside = 0


def flags_frozen() -> bool:
    """Whether flags may only be set by `flags()` of their module."""
    return Frozen.frozen and not Frozen.inside


def disable_global_flags() -> None:
    """From now on flags may only be set by `flags()` of their module."""
    Frozen.frozen = True


@contextmanager
def bracketed() -> Iterator[None]:
    """Flags may be set in here."""
    Frozen.inside += 1
    try:
        yield
    finally:
        Frozen.inside -= 1


def expect_bool(setter: str, value: Any) -> bool:
    """The value, which has to be a bool."""
    if not isinstance(value, bool):
        raise RuntimeError(f"{setter} expects a bool, but got {type(value).__name__}")
    return value


class Flag:
    """An attribute of a module. `freezes`: whether `disable_global_flags` forbids setting it."""

    def __init__(self, get: Callable[[], Any], set: Callable[[Any], object],
                 freezes: bool = True) -> None:  # fmt: skip
        self.get, self.set, self.freezes = get, set, freezes

    def __get__(self, module: Any, kind: type) -> Any:
        return self if module is None else self.get()

    def __set__(self, module: Any, value: Any) -> None:
        if self.freezes and flags_frozen():
            name = module.__name__.replace("flambeau", "torch", 1)
            raise RuntimeError(f"not allowed to set {name} flags after disable_global_flags; "
                               "please use flags() context manager instead")  # fmt: skip
        self.set(value)


def kept(start: Any, setter: str = "", freezes: bool = True,
         check: Callable[[Any], object] | None = None) -> Flag:  # fmt: skip
    """A flag that is kept and reported. `setter`: the name in the error for what is no bool;
    `check` raises for other wrong values. Without both any value is taken.
    """
    held = [start]

    def put(value: Any) -> None:
        if check is not None:
            check(value)
        held[0] = expect_bool(setter, value) if setter else value

    return Flag(lambda: held[0], put, freezes)


def held_by(holder: Any, name: str, setter: str = "") -> Flag:
    """A flag that is an attribute of a class, for code below to look at. `setter`: the name in the
    error for what is no bool."""

    def put(value: Any) -> None:
        setattr(holder, name, expect_bool(setter, value) if setter else value)

    return Flag(lambda: getattr(holder, name), put)


def of_precision(library: str, operator: str, freezes: bool = True) -> Flag:
    """`fp32_precision` of an operator of a library."""
    return Flag(
        lambda: precision.fp32_precision(library, operator),
        lambda value: precision.set_fp32_precision(library, operator, value),
        freezes,
    )


def give(module: str, **flags: Flag) -> None:
    """Give a module attributes that are flags."""
    found = sys.modules[module]
    found.__class__ = type("FlagsModule", (types.ModuleType,), flags)


class OperatorPrecision:
    """`torch.backends.mkldnn.conv` and the like: an operator with one setting, `fp32_precision`."""

    def __init__(self, library: str, operator: str) -> None:
        self.__dict__["_key"] = library, operator

    def __getattr__(self, name: str) -> Any:
        if name != "fp32_precision":
            raise AttributeError(f"Unknown attribute {name}")
        library, operator = self.__dict__["_key"]
        return precision.fp32_precision(library, operator)

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "fp32_precision":
            raise AttributeError(f"Unknown attribute {name}")
        library, operator = self.__dict__["_key"]
        precision.set_fp32_precision(library, operator, value)


def written(flags: tuple[Flag, ...], values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Set flags to values, but for None; what they were before."""
    before = tuple(flag.get() for flag in flags)
    for flag, value in zip(flags, values, strict=True):
        if value is not None:
            flag.set(value)
    return before


@contextmanager
def within(flags: tuple[Flag, ...], values: tuple[Any, ...]) -> Iterator[None]:
    """Other values of flags within a `with`."""
    with bracketed():
        before = written(flags, values)
    try:
        yield
    finally:
        with bracketed():
            written(flags, before)
