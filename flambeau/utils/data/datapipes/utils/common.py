"""Checks of functions and columns; files: their names, and streams that close themselves."""

from __future__ import annotations

import fnmatch
import functools
import inspect
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

__all__ = [
    "StreamWrapper", "get_file_binaries_from_pathnames", "get_file_pathnames_from_root",
    "match_masks", "validate_input_col", "validate_pathname_binary_tuple",
]  # fmt: skip

NO_PICKLE = (
    "{} function is not supported by pickle, please use regular python function or "
    "functools.partial instead."
)


def _check_unpickable_fn(fn: Callable[..., Any]) -> None:
    """Warn of a function that does not survive a journey to another process."""
    if not callable(fn):
        raise TypeError(f"A callable function is expected, but {type(fn)} is provided.")
    while isinstance(fn, functools.partial):
        fn = fn.func
    if inspect.isfunction(fn):
        kind = "Local" if "<locals>" in fn.__qualname__ else "Lambda"
        if kind == "Local" or fn.__name__ == "<lambda>":
            warnings.warn(NO_PICKLE.format(kind), stacklevel=4)


def validate_input_col(fn: Callable[..., Any], input_col: Any) -> None:
    """ValueError if a function cannot take so many columns."""
    try:
        parameters = inspect.signature(fn).parameters.values()
    except ValueError:  # of a function in C that does not tell
        return
    kinds = inspect.Parameter
    needed = [p for p in parameters if p.default is p.empty
              and p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)]  # fmt: skip
    listed = [
        p for p in parameters if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)
    ]
    several = any(p.kind is kinds.VAR_POSITIONAL for p in parameters)
    given = len(input_col) if isinstance(input_col, (list, tuple)) else 1
    name = getattr(fn, "__name__", repr(fn))
    named = [p for p in parameters if p.kind is kinds.KEYWORD_ONLY and p.default is p.empty]
    if named:
        raise ValueError(f"The function {name} takes {len(named)} keyword-only parameters, which "
                         "is not allowed.")  # fmt: skip
    if several and given >= len(needed):
        return
    if given < len(needed):
        raise ValueError(f"The function {name} takes {len(needed)} positional parameters, but "
                         f"{given} are required.")  # fmt: skip
    if given > len(listed):
        raise ValueError(f"The function {name} takes {len(listed)} parameters, but {given} are "
                         "required.")  # fmt: skip


def match_masks(name: str, masks: str | list[str]) -> bool:
    """Whether a name fits one of the patterns; without patterns, all do."""
    listed = [masks] if isinstance(masks, str) else masks
    return not masks or any(fnmatch.fnmatch(name, mask) for mask in listed)


def get_file_pathnames_from_root(
    root: str, masks: str | list[str], recursive: bool = False, abspath: bool = False,
    non_deterministic: bool = False,
) -> Iterator[str]:  # fmt: skip
    """The files of a folder, in the order of their names."""

    def failed(error: OSError) -> None:
        warnings.warn(f"{error.filename} : {error.strerror}", stacklevel=2)
        raise error

    if Path(root).is_file():
        if match_masks(Path(root).name, masks):
            yield str(Path(root).absolute()) if abspath else root
        return
    for folder, below, files in os.walk(root, onerror=failed):
        place = str(Path(folder).absolute()) if abspath else folder
        if not non_deterministic:
            files.sort()
            below.sort()
        for name in files:
            if match_masks(name, masks):
                yield f"{place.removesuffix(os.sep)}{os.sep}{name}"
        if not recursive:
            return


def get_file_binaries_from_pathnames(
    pathnames: Any, mode: str, encoding: str | None = None
) -> Iterator[tuple[str, Any]]:
    """Each name with its opened file."""
    names = pathnames if hasattr(pathnames, "__iter__") else [pathnames]
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"Expected string type for pathname, but got {type(name)}")
        text = mode if mode not in ("b", "t") else f"r{mode}"
        file = Path(name).open(text, encoding=encoding)  # noqa: SIM115  # the reader closes it
        yield name, StreamWrapper(file, name=name)


def validate_pathname_binary_tuple(data: Any) -> None:
    """TypeError for anything but a name and a stream."""
    if not isinstance(data, tuple):
        raise TypeError(f"pathname binary data should be tuple type, but it is type {type(data)}")
    if len(data) != 2:  # noqa: PLR2004
        raise TypeError("pathname binary stream tuple length should be 2, but got "
                        f"{len(data)}")  # fmt: skip
    if not isinstance(data[0], str):
        raise TypeError("pathname within the tuple should have string type pathname, but it is "
                        f"type {type(data[0])}")  # fmt: skip


class StreamWrapper:
    """A file that is closed when nobody holds it any more."""

    def __init__(self, file_obj: Any, parent_stream: Any = None, name: str | None = None) -> None:
        self.file_obj = file_obj
        self.parent_stream = parent_stream
        self.name = name
        self.closed = False

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self)["file_obj"], name)

    def close(self) -> None:
        """Close the file."""
        if not self.closed:
            self.closed = True
            self.file_obj.close()

    def autoclose(self) -> None:
        """Close the file, as `close` does."""
        self.close()

    def __del__(self) -> None:
        if not vars(self).get("closed", True):
            self.close()

    def __iter__(self) -> Iterator[Any]:
        yield from self.file_obj

    def __next__(self) -> Any:
        return next(self.file_obj)

    def __repr__(self) -> str:
        return f"StreamWrapper<{self.file_obj!r}>"

    def __getstate__(self) -> Any:
        return self.file_obj

    def __setstate__(self, state: Any) -> None:
        self.__init__(state)  # type: ignore[misc]
