"""Specs as JSON."""

from __future__ import annotations

import importlib
import json
import warnings
from enum import Enum
from typing import Any, NamedTuple

from flambeau.utils._pytree.types import FromDumpableContextFn, ToDumpableContextFn

DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL = 1
NO_SERIALIZED_TYPE_NAME_FOUND = "NO_SERIALIZED_TYPE_NAME_FOUND"
WITHOUT_NAME = (
    "No registered serialization name for {kind} found. Please update your "
    "_register_pytree_node call with a `serialized_type_name` kwarg."
)


class SerializedType(NamedTuple):
    """A type's name in JSON, and its contexts there and back."""

    typ: Any
    serialized_type_name: str
    to_dumpable_context: ToDumpableContextFn | None
    from_dumpable_context: FromDumpableContextFn | None


SUPPORTED_SERIALIZED_TYPES: dict[Any, SerializedType] = {}
SERIALIZED_TYPE_TO_PYTHON_TYPE: dict[str, Any] = {}
_NAMEDTUPLES: dict[type, str] = {}


def hold_type(
    kind: Any,
    name: str | None,
    to_dumpable: ToDumpableContextFn | None = None,
    from_dumpable: FromDumpableContextFn | None = None,
) -> None:
    """Give a type its name."""
    if (to_dumpable is None) != (from_dumpable is None):
        raise ValueError(
            f"Both to_dumpable_context and from_dumpable_context for {kind} must be None or "
            "registered."
        )
    name = NO_SERIALIZED_TYPE_NAME_FOUND if name is None else name
    SUPPORTED_SERIALIZED_TYPES[kind] = SerializedType(kind, name, to_dumpable, from_dumpable)
    SERIALIZED_TYPE_TO_PYTHON_TYPE[name] = kind


def forget_type(kind: Any) -> None:
    """Take its name away again."""
    name = SUPPORTED_SERIALIZED_TYPES.pop(kind).serialized_type_name
    SERIALIZED_TYPE_TO_PYTHON_TYPE.pop(name, None)


def _register_namedtuple(cls: type, *, serialized_type_name: str) -> None:
    """Give a class of named tuples its name."""
    _NAMEDTUPLES[cls] = serialized_type_name
    SERIALIZED_TYPE_TO_PYTHON_TYPE[serialized_type_name] = cls


def name_of_namedtuple(cls: type) -> str:
    """The context of named tuples: the name of their class."""
    if cls not in _NAMEDTUPLES:
        raise NotImplementedError(
            f"Can't serialize TreeSpec of namedtuple class {cls} because we didn't register a "
            "serializated_type_name. Please register using `_register_namedtuple`."
        )
    return _NAMEDTUPLES[cls]


def namedtuple_of_name(name: str) -> type:
    """The class of such a name."""
    if name not in SERIALIZED_TYPE_TO_PYTHON_TYPE:
        raise NotImplementedError(
            f"Can't deserialize TreeSpec of namedtuple class {name} because we couldn't find a "
            "serializated name."
        )
    return SERIALIZED_TYPE_TO_PYTHON_TYPE[name]


def of_defaultdict(context: Any) -> dict[str, Any]:
    """The factory by its name, and the keys."""
    factory, keys = context
    return {
        "default_factory_module": factory.__module__,
        "default_factory_name": factory.__qualname__,
        "dict_context": keys,
    }


def to_defaultdict(context: dict[str, Any]) -> list[Any]:
    """The reverse, which imports the factory's module."""
    module = importlib.import_module(context["default_factory_module"])
    return [getattr(module, context["default_factory_name"]), context["dict_context"]]


class _Contexts(json.JSONEncoder):
    """Members of enumerations by their names."""

    def default(self, o: Any) -> Any:
        if not isinstance(o, Enum):
            return super().default(o)
        kind = type(o)
        return {"__enum__": True, "fqn": f"{kind.__module__}:{kind.__qualname__}", "name": o.name}


def _enum_member(found: dict[str, Any]) -> Any:
    if "__enum__" not in found:
        return found
    module, _, path = found["fqn"].partition(":")
    kind: Any = importlib.import_module(module)
    for name in path.split("."):
        kind = getattr(kind, name)
    return kind[found["name"]]


def _as_json(spec: Any) -> dict[str, Any]:
    if spec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    held = SUPPORTED_SERIALIZED_TYPES.get(spec.type)
    if held is None or held.serialized_type_name == NO_SERIALIZED_TYPE_NAME_FOUND:
        raise NotImplementedError(WITHOUT_NAME.format(kind=spec.type))
    context = _context_as_json(spec.context, held)
    children = [_as_json(child) for child in spec.children()]
    return {"type": held.serialized_type_name, "context": context, "children_spec": children}


def _context_as_json(context: Any, held: SerializedType) -> Any:
    if held.to_dumpable_context is not None:
        return held.to_dumpable_context(context)
    try:
        return json.dumps(context, cls=_Contexts)
    except TypeError as error:
        raise TypeError(
            "Unable to serialize context. Please make the context json dump-able, or register a "
            "custom serializer using _register_pytree_node."
        ) from error


def _of_json(found: dict[str, Any]) -> Any:
    from flambeau.utils._pytree.spec import TreeSpec, treespec_leaf

    name = found["type"]
    if name is None and found["context"] is None and not found["children_spec"]:
        return treespec_leaf()
    if name not in SERIALIZED_TYPE_TO_PYTHON_TYPE:
        raise NotImplementedError(f"Deserializing {name} in pytree is not registered.")
    kind = SERIALIZED_TYPE_TO_PYTHON_TYPE[name]
    back = SUPPORTED_SERIALIZED_TYPES[kind].from_dumpable_context
    text = found["context"]
    context = json.loads(text, object_hook=_enum_member) if back is None else back(text)
    return TreeSpec(kind, context, [_of_json(child) for child in found["children_spec"]])


def _check_protocol(protocol: int) -> None:
    known = [DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL]
    if protocol not in known:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: {known}")


def treespec_dumps(treespec: Any, protocol: int | None = None) -> str:
    """A spec as JSON."""
    from flambeau.utils._pytree.spec import expect_spec

    spec = expect_spec(treespec)
    version = DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL if protocol is None else protocol
    _check_protocol(version)
    return json.dumps((version, _as_json(spec)), cls=_Contexts)


def treespec_loads(serialized: str) -> Any:
    """A spec from JSON."""
    version, found = json.loads(serialized)
    _check_protocol(version)
    return _of_json(found)


def pytree_to_str(treespec: Any) -> str:
    """An older name of `treespec_dumps`."""
    _warn_of("pytree_to_str", "treespec_dumps")
    return treespec_dumps(treespec)


def str_to_pytree(json: str) -> Any:
    """An older name of `treespec_loads`."""
    _warn_of("str_to_pytree", "treespec_loads")
    return treespec_loads(json)


def _warn_of(old: str, new: str) -> None:
    text = f"`{old}` is deprecated. Please use `{new}` instead."
    warnings.warn(text, FutureWarning, stacklevel=3)
