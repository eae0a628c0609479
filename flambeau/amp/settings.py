"""The functions of `torch` that ask for autocast's settings and change them, in this thread."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import flambeau._ops.table.autocast  # noqa: F401  (it watches operators from now on)
from flambeau._core import dtype as dt
from flambeau._core.autocast import checked_kind, lower_type, settings
from flambeau._core.doc_text import with_example


def expect(function: str, name: str, position: int, value: Any, kind: type) -> None:
    """Torch's TypeError for an argument of another type."""
    if isinstance(value, kind):
        return
    wanted = "torch.dtype" if kind is dt.dtype else kind.__name__
    raise TypeError(f"{function}(): argument '{name}' (position {position}) must be {wanted}, not "
                    f"{type(value).__name__}")  # fmt: skip


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether operators on a device choose their precision.

    >>> import flambeau as torch
    >>> with torch.autocast("cpu"):
    ...     inside = torch.is_autocast_enabled("cpu")
    >>> inside, torch.is_autocast_enabled("cpu")
    (True, False)
    """
    expect("is_autocast_enabled", "device_type", 1, device_type, str)
    return settings.enabled[checked_kind(device_type)]


def set_autocast_enabled(*args: Any, **kwargs: Any) -> None:
    """`set_autocast_enabled(device_type, enabled)`; of old also `(enabled)`, which means CUDA.

    >>> import flambeau as torch
    >>> torch.set_autocast_enabled("cpu", True)
    >>> torch.is_autocast_enabled("cpu")
    True
    >>> torch.set_autocast_enabled("cpu", False)
    """
    names = ["device_type", "enabled"] if len(args) + len(kwargs) > 1 else ["enabled"]
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    for position, name in enumerate(names, 1):
        kind = str if name == "device_type" else bool
        expect("set_autocast_enabled", name, position, given.get(name), kind)
    settings.set_enabled(checked_kind(given.get("device_type", "cuda")), given["enabled"])


def get_autocast_dtype(device_type: str) -> dt.dtype:
    """The type of a device's fast operators in a region.

    >>> import flambeau as torch
    >>> torch.get_autocast_dtype("cpu")
    torch.bfloat16
    """
    expect("get_autocast_dtype", "device_type", 1, device_type, str)
    return lower_type(device_type)


def set_autocast_dtype(device_type: str, dtype: Any) -> None:
    """Set the type of a device's fast operators.

    >>> import flambeau as torch
    >>> torch.set_autocast_dtype("cpu", torch.float16)
    >>> torch.get_autocast_dtype("cpu")
    torch.float16
    >>> torch.set_autocast_dtype("cpu", torch.bfloat16)
    """
    expect("set_autocast_dtype", "device_type", 1, device_type, str)
    expect("set_autocast_dtype", "dtype", 2, dtype, dt.dtype)
    lower_type(device_type)
    settings.lower_types[checked_kind(device_type)] = dtype


# ---- weights in lower precision


def is_autocast_cache_enabled() -> bool:
    """Whether weights in lower precision are kept until the outermost region ends.

    >>> import flambeau as torch
    >>> torch.is_autocast_cache_enabled()
    True
    """
    return settings.cache_enabled


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Keep weights in lower precision, or make them anew for every operator.

    >>> import flambeau as torch
    >>> torch.set_autocast_cache_enabled(False)
    >>> torch.is_autocast_cache_enabled()
    False
    >>> torch.set_autocast_cache_enabled(True)
    """
    if not isinstance(enabled, bool):
        raise TypeError(f"enabled must be a bool (got {type(enabled).__name__})")
    settings.cache_enabled = enabled


def clear_autocast_cache() -> None:
    """Forget the weights in lower precision.

    >>> import flambeau as torch
    >>> torch.clear_autocast_cache()
    """
    settings.cache.clear()


def autocast_increment_nesting() -> int:
    """Note that a region begins; returns how many there are now.

    >>> import flambeau as torch
    >>> with torch.autocast("cpu"):
    ...     inside = torch.autocast_increment_nesting()
    ...     torch.autocast_decrement_nesting()
    1
    >>> inside
    2
    """
    settings.nesting += 1
    return settings.nesting


def autocast_decrement_nesting() -> int:
    """Note that a region ends; returns how many there still are.

    >>> import flambeau as torch
    >>> torch.autocast_increment_nesting()
    1
    >>> torch.autocast_decrement_nesting()
    0
    """
    settings.nesting -= 1
    return settings.nesting


# ---- the old spellings: one function for each device


def _deprecated(old: str, new: str) -> None:
    text = f"torch.{old} is deprecated. Please use torch.{new} instead."
    warnings.warn(text, DeprecationWarning, stacklevel=3)


def _switches(word: str, device_type: str) -> list[Callable[..., Any]]:
    """`is_autocast_cpu_enabled` and `set_autocast_cpu_enabled`."""

    def is_enabled() -> bool:
        _deprecated(f"is_autocast_{word}_enabled()", f"is_autocast_enabled('{device_type}')")
        return is_autocast_enabled(device_type)

    def set_enabled(enabled: bool) -> None:
        if not isinstance(enabled, bool):
            raise TypeError(f"enabled must be a bool (got {type(enabled).__name__})")
        _deprecated(f"set_autocast_{word}_enabled(enabled)",
                    f"set_autocast_enabled('{device_type}', enabled)")  # fmt: skip
        set_autocast_enabled(device_type, enabled)

    return _named([is_enabled, set_enabled], word, device_type)


def _types(word: str, device_type: str) -> list[Callable[..., Any]]:
    """`get_autocast_cpu_dtype` and `set_autocast_cpu_dtype`."""

    def get_dtype() -> dt.dtype:
        _deprecated(f"get_autocast_{word}_dtype()", f"get_autocast_dtype('{device_type}')")
        return get_autocast_dtype(device_type)

    def set_dtype(dtype: Any) -> None:
        if not isinstance(dtype, dt.dtype):
            raise TypeError(f"dtype must be a torch.dtype (got {type(dtype).__name__})")
        _deprecated(f"set_autocast_{word}_dtype(dtype)",
                    f"set_autocast_dtype('{device_type}', dtype)")  # fmt: skip
        set_autocast_dtype(device_type, dtype)

    return _named([get_dtype, set_dtype], word, device_type)


def _shown(verb: str, what: str, kind: str) -> tuple[str, str]:
    """The call that is written today, and what it prints."""
    usual = lower_type(kind)
    value = usual if what == "dtype" else False
    given = f"{kind!r}" if verb != "set" else f"{kind!r}, {value}"
    return f"torch.{verb}_autocast_{what}({given})", "" if verb == "set" else f"{value}"


def _named(functions: list[Callable[..., Any]], word: str, kind: str) -> list[Callable[..., Any]]:
    for function in functions:
        verb, _, what = function.__name__.partition("_")
        function.__name__ = function.__qualname__ = f"{verb}_autocast_{word}_{what}"
        function.__doc__ = with_example(
            f"`{verb}_autocast_{what}` for {kind!r}, as it was spelled before; deprecated.",
            *_shown(verb, what, kind),
        )
    return functions


OLD_SPELLINGS = [
    *_switches("cpu", "cpu"), *_switches("ipu", "ipu"), *_switches("xla", "xla"),
    *_types("cpu", "cpu"), *_types("ipu", "ipu"), *_types("xla", "xla"), *_types("gpu", "cuda"),
]  # fmt: skip
globals().update({function.__name__: function for function in OLD_SPELLINGS})
