"""Nested state dicts as flat ones: `{"a": {"b": x}}` as `{"a.b": x}`, and the way back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from flambeau._tensor.tensor import Tensor

Path = tuple[str | int, ...]
"""The keys that lead to a value: texts in mappings, numbers in lists."""


def flatten(state_dict: Mapping[Any, Any]) -> tuple[dict[str, Any], dict[str, Path]]:
    """The values under flat names, and the path that each name stands for.

    Mappings are entered, lists where there is a tensor or a mapping in them. Other values, tuples
    among them, stay as they are.

    Raises:
        ValueError: two values have the same flat name.
    """
    flat: dict[str, Any] = {}
    paths: dict[str, Path] = {}
    for path, value in _walk(state_dict, ()):
        name = ".".join(map(str, path))
        if name in flat:
            raise ValueError(f"duplicated flatten key {name}")
        flat[name], paths[name] = value, path
    return flat, paths


def _walk(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _walk(inner, (*path, str(key)))
    elif isinstance(value, list) and _is_entered(value):
        for position, inner in enumerate(value):
            yield from _walk(inner, (*path, position))
    else:
        yield path, value


def _is_entered(values: list[Any]) -> bool:
    """Whether a list has a tensor or a mapping in it."""
    for value in values:
        if isinstance(value, Tensor | Mapping):
            return True
        if isinstance(value, list) and _is_entered(value):
            return True
    return False


def put(state_dict: Any, path: Path, value: Any) -> None:
    """Set the value at a path; dicts and lists on the way are made where they are missing."""
    here = state_dict
    for key, following in zip(path[:-1], path[1:], strict=True):
        here = _enter(here, key, [] if isinstance(following, int) else {})
    _put_one(here, path[-1], value)


def _enter(here: Any, key: str | int, empty: Any) -> Any:
    found = _find(here, key)
    if found is None:
        _put_one(here, key, empty)
        return empty
    return found


def _find(here: Any, key: str | int) -> Any:
    if isinstance(key, int):
        return here[key] if key < len(here) else None
    return here.get(_own_key(here, key))


def _own_key(here: Any, key: str) -> Any:
    """The key whose text is `key`: names are texts, keys may be numbers."""
    if key in here:
        return key
    return next((own for own in here if str(own) == key), key)


def _put_one(here: Any, key: str | int, value: Any) -> None:
    if isinstance(key, int):
        here += [None] * (key + 1 - len(here))
        here[key] = value
    else:
        here[_own_key(here, key)] = value
