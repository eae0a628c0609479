"""`torch.utils.serialization.config`: how `torch.save` and `torch.load` work by default.

config.load.mmap = True
with config.patch("save.compute_crc32", False):
    torch.save(model.state_dict(), "model.pt")
"""

from __future__ import annotations

from contextlib import ContextDecorator
from typing import Any

from flambeau._core.file_options import LoadOptions, SaveOptions, load, save

__all__ = ["get_config_copy", "load", "load_config", "patch", "save"]

GROUPS: dict[str, LoadOptions | SaveOptions] = {"load": load, "save": save}


def get_config_copy() -> dict[str, Any]:
    """All choices by their full names, such as "save.compute_crc32"."""
    return {
        f"{group}.{name}": getattr(options, name)
        for group, options in GROUPS.items()
        for name in options.__slots__
    }


def load_config(values: dict[str, Any]) -> None:
    """Set choices by their full names. Raises AttributeError for a name that is none."""
    for full_name, value in values.items():
        group, _, name = full_name.partition(".")
        if group not in GROUPS:
            raise AttributeError(f"{__name__}.{full_name} does not exist")
        setattr(GROUPS[group], name, value)


class patch(ContextDecorator):
    """Other choices for a `with` block or a decorated function: a name and a value, or a dict."""

    def __init__(self, name: str | dict[str, Any] | None = None, value: Any = None, **more: Any):
        self.changes: dict[str, Any] = dict(more)
        if isinstance(name, dict):
            self.changes.update(name)
        elif name is not None:
            self.changes[name] = value

    def __enter__(self) -> None:
        before = get_config_copy()
        self.previous = {full_name: before.get(full_name) for full_name in self.changes}
        load_config(self.changes)

    def __exit__(self, *exc: object) -> None:
        load_config(self.previous)
