"""Sizes given once or per dim."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple[Any, ...]]:
    def parse(value: Any) -> tuple[Any, ...]:
        return tuple(value) if isinstance(value, Iterable) else (value,) * n

    parse.__doc__ = f"A sequence as a tuple, or one value {n} times."
    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(values: tuple[int, ...], n: int) -> tuple[int, ...]:
    """(1, 2) as (2, 2, 1, 1) for n = 2: what `F.pad` takes."""
    return tuple(value for value in reversed(values) for _ in range(n))


def _list_with_default(out_size: Any, defaults: list[int]) -> Any:
    """Output sizes with None replaced by the input's size."""
    if isinstance(out_size, int):
        return out_size
    if len(defaults) <= len(out_size):
        raise ValueError(f"Input dimension should be at least {len(out_size) + 1}")
    known = defaults[-len(out_size) :]
    return [size if size is not None else d for size, d in zip(out_size, known, strict=True)]


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Take a prefix such as "module." off the keys of a state, in place."""
    for key in list(state_dict):
        if key.startswith(prefix):
            state_dict[key.removeprefix(prefix)] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", None)
    if metadata is None:
        return
    for key in list(metadata):
        # The module itself has the key "", with a prefix "module" or "module." in front.
        if key and (key.startswith(prefix) or key == prefix.removesuffix(".")):
            metadata[key.removeprefix(prefix) if key.startswith(prefix) else ""] = metadata.pop(key)
