"""`torch.jit.isinstance`: whether an object is of a type such as `List[int]`."""

from __future__ import annotations

import builtins
import types
import typing
import warnings
from typing import Any

EXAMPLES = {"List": "List[int]", "Dict": "Dict[int, int]", "Tuple": "Tuple[int, int]",
            "Optional": "Optional[int]", "Union": "Union[int, None]"}  # fmt: skip
BARE = {getattr(typing, name): name for name in EXAMPLES}
BARE |= {list: "List", dict: "Dict", tuple: "Tuple"}
"""Types that lack the types of their elements."""


def isinstance(obj: Any, target_type: Any) -> bool:  # noqa: A001
    """Whether an object is of a type such as `List[int]` or `Optional[Tuple[int, str]]`.

    All elements are looked at; an empty container is of every such type, with a warning.
    """
    if type(target_type) is tuple:
        return any(isinstance(obj, one) for one in target_type)
    if target_type in BARE:
        name = BARE[target_type]
        raise RuntimeError(
            f"Attempted to use {name} without a contained type. "
            f"Please add a contained type, e.g. {EXAMPLES[name]}"
        )
    origin = typing.get_origin(target_type)
    if origin is None:
        return builtins.isinstance(obj, target_type)
    arguments = typing.get_args(target_type)
    if origin in (typing.Union, types.UnionType):
        return obj is None or any(isinstance(obj, one) for one in arguments)
    if origin in (list, dict, tuple):
        return _is_container(obj, origin, arguments)
    return builtins.isinstance(obj, origin)


def _is_container(obj: Any, origin: Any, arguments: tuple[Any, ...]) -> bool:
    if obj in ([], {}, ()):
        warnings.warn(
            "The inner type of a container is lost when calling torch.jit.isinstance in eager "
            "mode. For example, List[int] would become list and therefore falsely return True for "
            "List[float] or List[str].",
            stacklevel=4,
        )
    if not builtins.isinstance(obj, origin):
        return False
    if origin is tuple:
        arguments = () if arguments == ((),) else arguments
        return len(obj) == len(arguments) and all(map(isinstance, obj, arguments))
    if origin is list:
        return all(isinstance(item, arguments[0]) for item in obj)
    key, value = arguments
    return all(isinstance(k, key) and isinstance(v, value) for k, v in obj.items())


_isinstance = isinstance
