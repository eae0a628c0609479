"""What the repr of a layer shows of its settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def is_changed(value: Any, default: Any) -> bool:
    """Whether a setting is another than its default; 0 is no False."""
    return value is not default if isinstance(default, bool) else value != default


def shown(
    *names: str, plain: tuple[str, ...] = (), unless: dict[str, Any] | None = None
) -> Callable[[Any], str]:
    """An `extra_repr` that shows the attributes of these names, after the values of `plain`; then
    those of `unless` whose value is another than there.

    Of a bias it says whether there is one; of `inplace` nothing, unless it is so.
    """

    def extra_repr(self: Any) -> str:
        parts = [f"{getattr(self, name)}" for name in plain]
        for name in names:
            value = getattr(self, name)
            if name == "bias":
                value = value is not None
            if name != "inplace":
                parts.append(f"{name}={value}")
            elif value:
                parts.append("inplace=True")
        for name, default in (unless or {}).items():
            value = getattr(self, name)
            if is_changed(value, default):
                parts.append(f"{name}={value}")
        return ", ".join(parts)

    return extra_repr
