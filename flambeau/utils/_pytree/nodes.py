"""The kinds of containers: how each is taken apart, put together, and what its keys are."""

from __future__ import annotations

import dataclasses
import warnings
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from flambeau._core.layout import Size
from flambeau.utils._pytree import text
from flambeau.utils._pytree.keys import GetAttrKey, MappingKey, SequenceKey
from flambeau.utils._pytree.types import (
    FlattenFn,
    FlattenWithKeysFn,
    FromDumpableContextFn,
    ToDumpableContextFn,
    UnflattenFn,
)


class NodeDef(NamedTuple):
    """How containers of a type are flattened, and made again."""

    type: Any
    flatten_fn: FlattenFn
    unflatten_fn: UnflattenFn
    flatten_with_keys_fn: FlattenWithKeysFn | None


class ConstantNode(NamedTuple):
    """The context of a value without leaves: the value."""

    value: Any


SUPPORTED_NODES: dict[Any, NodeDef] = {}
CONSTANT_NODES: set[type] = set()
TWICE = "{cls} is already registered as pytree node."


# ---- kinds of classes


def _classes(obj: Any) -> type:
    return obj if isinstance(obj, type) else type(obj)


def is_namedtuple_class(cls: Any) -> bool:
    """Is it a class made by `namedtuple`?"""
    if not isinstance(cls, type) or not issubclass(cls, tuple):
        return False
    fields = getattr(cls, "_fields", None)
    named = isinstance(fields, tuple) and all(isinstance(field, str) for field in fields)
    return named and callable(getattr(cls, "_make", None)) and not is_structseq_class(cls)


def is_namedtuple_instance(obj: object) -> bool:
    """Is it an instance of such a class?"""
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj: Any) -> bool:
    """Is it a named tuple, or its class?"""
    return is_namedtuple_class(_classes(obj))


def is_structseq_class(cls: Any) -> bool:
    """Is it a class of the results of operators, or of the system, with several values?"""
    if not isinstance(cls, type) or not issubclass(cls, tuple):
        return False
    if cls.__module__ == "torch.return_types":
        return True
    sizes = (getattr(cls, name, None) for name in ("n_fields", "n_sequence_fields"))
    return cls.__bases__ == (tuple,) and all(isinstance(size, int) for size in sizes)


def is_structseq_instance(obj: object) -> bool:
    """Is it such a result?"""
    return is_structseq_class(type(obj))


def is_structseq(obj: Any) -> bool:
    """Is it such a result, or its class?"""
    return is_structseq_class(_classes(obj))


def _get_node_type(tree: Any) -> Any:
    """The key of the table of kinds; all named tuples are of one kind."""
    kind = type(tree)
    if kind not in SUPPORTED_NODES:
        if is_namedtuple_class(kind):
            return namedtuple  # noqa: PYI024  the function stands for all classes that it makes
        if is_structseq_class(kind):
            _register_structseq(kind)
    return kind


def _register_structseq(kind: type) -> None:
    SUPPORTED_NODES[kind] = NodeDef(
        kind, lambda tree: (list(tree), None), lambda leaves, context: kind(leaves), _by_index
    )


# ---- registration


def register_pytree_node(
    cls: type,
    flatten_fn: FlattenFn,
    unflatten_fn: UnflattenFn,
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: ToDumpableContextFn | None = None,
    from_dumpable_context: FromDumpableContextFn | None = None,
    flatten_with_keys_fn: FlattenWithKeysFn | None = None,
) -> None:
    """Make instances of a class nodes of trees: `flatten_fn` gives their children and a context."""
    if cls in SUPPORTED_NODES:
        raise ValueError(TWICE.format(cls=cls))
    both = to_dumpable_context, from_dumpable_context
    text.hold_type(cls, serialized_type_name, *both)
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)
    CONSTANT_NODES.discard(cls)


def _private_register_pytree_node(cls: type, *args: Any, **kwargs: Any) -> None:
    """The same, over what was registered before."""
    if cls in SUPPORTED_NODES:
        warnings.warn(
            f"{TWICE.format(cls=cls)} Overwriting the previous registration.", stacklevel=3
        )
        del SUPPORTED_NODES[cls]
    register_pytree_node(cls, *args, **kwargs)


def _register_pytree_node(
    cls: type,
    flatten_fn: FlattenFn,
    unflatten_fn: UnflattenFn,
    to_str_fn: Any = None,
    maybe_from_str_fn: Any = None,
    **kwargs: Any,
) -> None:
    """An older form of `register_pytree_node`."""
    warnings.warn(
        "`torch.utils._pytree._register_pytree_node` is deprecated. "
        "Please use `torch.utils._pytree.register_pytree_node` instead.",
        FutureWarning,
        stacklevel=2,
    )
    _private_register_pytree_node(cls, flatten_fn, unflatten_fn, **kwargs)


def _deregister_pytree_node(cls: type) -> None:
    """Instances of the class are leaves again."""
    del SUPPORTED_NODES[cls]
    text.forget_type(cls)
    CONSTANT_NODES.discard(cls)


def register_dataclass(
    cls: type,
    *,
    field_names: list[str] | None = None,
    drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:
    """Make instances nodes by their fields; fields that are None go into the context."""
    names = _checked_fields(cls, field_names, drop_field_names)

    def split(obj: Any) -> tuple[list[str], list[str]]:
        values = [(name, getattr(obj, name)) for name in names]
        held = [name for name, value in values if value is not None]
        return held, [name for name, value in values if value is None]

    def flatten(obj: Any) -> tuple[list[Any], Any]:
        held, none = split(obj)
        return [getattr(obj, name) for name in held], [held, none]

    def flatten_with_keys(obj: Any) -> tuple[list[tuple[Any, Any]], Any]:
        values, context = flatten(obj)
        keys = [GetAttrKey(name) for name in context[0]]
        return list(zip(keys, values, strict=True)), context

    def unflatten(values: Iterable[Any], context: Any) -> Any:
        held, none = context
        return cls(**dict(zip(held, values, strict=True)), **dict.fromkeys(none))

    _private_register_pytree_node(
        cls, flatten, unflatten, serialized_type_name=serialized_type_name,
        flatten_with_keys_fn=flatten_with_keys,
    )  # fmt: skip


def _checked_fields(cls: type, given: list[str] | None, dropped: list[str] | None) -> list[str]:
    if not dataclasses.is_dataclass(cls):
        if given is None:
            raise ValueError(
                "field_names must be specified with a list of all fields used to initialize "
                f"{cls}, as it is not a dataclass."
            )
        return [name for name in given if name not in (dropped or [])]
    declared = [field.name for field in dataclasses.fields(cls) if field.init]
    wanted = declared if given is None else given
    kept = [name for name in wanted if name not in (dropped or [])]
    strange = set(wanted) ^ set(declared) - set(dropped or [])
    if given is not None and strange:
        raise ValueError(f"Fields of {cls} that do not fit `field_names`: {sorted(strange)}.")
    return kept


def register_constant(cls: type) -> None:
    """Make instances nodes without leaves: they are part of the spec, and compared there."""
    for name in ("__eq__", "__hash__"):
        if getattr(cls, name) in (getattr(object, name), None):
            raise TypeError(
                f"register_constant(cls) expects `cls` to have a non-default `{name}` "
                "implementation."
            )
    _private_register_pytree_node(
        cls,
        lambda value: ([], ConstantNode(value)),
        lambda leaves, context: context.value,
        flatten_with_keys_fn=lambda value: ([], ConstantNode(value)),
    )
    CONSTANT_NODES.add(cls)


def is_constant_class(cls: type) -> bool:
    """Was the class given to `register_constant`?"""
    return cls in CONSTANT_NODES


# ---- containers of Python


def _by_index(tree: Any) -> tuple[list[tuple[Any, Any]], Any]:
    return _steps_by_index(tree), SUPPORTED_NODES[_get_node_type(tree)].flatten_fn(tree)[1]


def _steps_by_index(tree: Any) -> list[tuple[Any, Any]]:
    return [(SequenceKey(index), value) for index, value in enumerate(tree)]


def _steps_by_key(tree: Any) -> list[tuple[Any, Any]]:
    return [(MappingKey(key), value) for key, value in tree.items()]


def _steps_by_name(tree: Any) -> list[tuple[Any, Any]]:
    items = zip(type(tree)._fields, tree, strict=True)
    return [(GetAttrKey(name), value) for name, value in items]


def _ways(
    flatten: FlattenFn, unflatten: UnflattenFn, steps: Callable[[Any], list[tuple[Any, Any]]]
) -> tuple[FlattenFn, UnflattenFn, FlattenWithKeysFn]:
    """What a kind's node needs; its children with keys have the context that `flatten` gives."""
    return flatten, unflatten, lambda tree: (steps(tree), flatten(tree)[1])


def _pairs(keys: Iterable[Any], values: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    return zip(keys, values, strict=True)


def _keys(tree: Any) -> tuple[list[Any], Any]:
    return list(tree.values()), list(tree)


def _default_keys(tree: Any) -> tuple[list[Any], Any]:
    return list(tree.values()), [tree.default_factory, list(tree)]


def _new_default(values: Any, context: Any) -> Any:
    return defaultdict(context[0], _pairs(context[1], values))


NODES: dict[Any, tuple[FlattenFn, UnflattenFn, FlattenWithKeysFn]] = {
    tuple: _ways(lambda t: (list(t), None), lambda values, _: tuple(values), _steps_by_index),
    list: _ways(lambda t: (t, None), lambda values, _: list(values), _steps_by_index),
    dict: _ways(_keys, lambda values, keys: dict(_pairs(keys, values)), _steps_by_key),
    namedtuple: _ways(
        lambda t: (list(t), type(t)), lambda values, cls: cls(*values), _steps_by_name
    ),
    OrderedDict: _ways(
        _keys, lambda values, keys: OrderedDict(_pairs(keys, values)), _steps_by_key
    ),
    defaultdict: _ways(_default_keys, _new_default, _steps_by_key),
    deque: _ways(
        lambda t: (list(t), t.maxlen),
        lambda values, longest: deque(values, maxlen=longest),
        _steps_by_index,
    ),
}
"""Kind -> its children and context, the container of those, its children with keys."""

NAMES = {
    tuple: "builtins.tuple", list: "builtins.list", dict: "builtins.dict",
    namedtuple: "collections.namedtuple", OrderedDict: "collections.OrderedDict",
    defaultdict: "collections.defaultdict", deque: "collections.deque", Size: "torch.Size",
}  # fmt: skip
BUILTIN_TYPES = frozenset(NODES)
STANDARD_DICT_TYPES = frozenset((dict, OrderedDict, defaultdict))

for _kind, _functions in NODES.items():
    SUPPORTED_NODES[_kind] = NodeDef(_kind, *_functions)
SUPPORTED_NODES[Size] = NodeDef(
    Size, lambda tree: (list(tree), None), lambda values, context: Size(values), _by_index
)
for _kind, _name in NAMES.items():
    text.hold_type(_kind, _name)
text.hold_type(namedtuple, NAMES[namedtuple], text.name_of_namedtuple, text.namedtuple_of_name)
text.hold_type(defaultdict, NAMES[defaultdict], text.of_defaultdict, text.to_defaultdict)

# Libraries call the functions of Python's containers by these names, for containers of their own.
_tuple_flatten, _tuple_unflatten, _tuple_flatten_with_keys = NODES[tuple]
_list_flatten, _list_unflatten, _list_flatten_with_keys = NODES[list]
_dict_flatten, _dict_unflatten, _dict_flatten_with_keys = NODES[dict]
_namedtuple_flatten, _namedtuple_unflatten, _namedtuple_flatten_with_keys = NODES[namedtuple]
_ordereddict_flatten, _ordereddict_unflatten, _ordereddict_flatten_with_keys = NODES[OrderedDict]
_odict_flatten, _odict_unflatten = _ordereddict_flatten, _ordereddict_unflatten
_defaultdict_flatten, _defaultdict_unflatten, _defaultdict_flatten_with_keys = NODES[defaultdict]
_deque_flatten, _deque_unflatten, _deque_flatten_with_keys = NODES[deque]
