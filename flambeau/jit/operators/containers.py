"""Lists, dictionaries, tuples and optional values. Dictionaries keep the order of insertion."""

from __future__ import annotations

from typing import Any

from flambeau.jit.operators.registry import functions, implements, in_scope, pieces

KEYS = ("str", "int", "bool", "float", "complex", "Tensor")

pieces({
    "len.*": "len({0})", "__getitem__.t select.t": "{0}[{1}]",
    "copy.t list.t": "{0}[:]", "clear.*": "{0}.clear()",
    "mul.left_t": "({0} * {1})", "mul.right_": "({0} * {1})", "add.t": "({0} + {1})",
    "sum.int": "number(sum({0}))", "sum.float": "sum({0}, 0.0)", "sum.complex": "sum({0}, 0j)",
    "sum.bool": "sum({0})", "any.int any.float any.bool any.str": "any({0})",
    "all.int all.float all.bool": "all({0})",
    "extend.t": "{0}.extend({1})", "reverse.t": "{0}.reverse()",
    "insert.t": "{0}.insert({1}, {2})",
    "count.int count.float count.bool count.str": "{0}.count({1})",
    "__contains__.int_list __contains__.str_list __contains__.float_list": "({1} in {0})",
    "sorted.int sorted.bool sorted.str": "sorted({0})",
    "keys.str keys.int keys.bool keys.float keys.complex": "list({0})",
    "values.str values.int values.bool values.float values.complex": "list({0}.values())",
    "items.str items.int items.bool items.float items.complex": "list({0}.items())",
    "dict": "{{}}", "prim::TupleIndex": "{0}[{1}]",
    "__is__": "({0} is {1})", "__isnot__": "({0} is not {1})",
    "prim::unchecked_cast prim::unchecked_unwrap_optional": "{0}",
    "prim::IfThenElse": "({1} if {0} else {2})",
    "prim::EnumName": "{0}.name", "prim::EnumValue.*": "{0}.value",
    "prim::ModuleContainerIndex.*": "{0}[{1}]",
})  # fmt: skip

for key in KEYS[:-1]:
    pieces({
        f"__contains__.{key}": "({1} in {0})", f"get.{key}": "{0}.get({1})",
        f"get.default_{key}": "{0}.get({1}, {2})", f"setdefault.{key}": "{0}.setdefault({1}, {2})",
        f"update.{key}": "{0}.update({1})", f"copy.Dict_{key} dict.Dict_{key}": "dict({0})",
        f"dict.{key}": "dict({0})",
    })  # fmt: skip


@implements("_unwrap_optional")
def unwrap_optional(value: Any) -> Any:
    """The value, which must not be None."""
    if value is None:
        raise RuntimeError("Unwrapping null optional")
    return value


# ---- lists


@implements("_set_item.t")
def set_item(items: list[Any], index: int, value: Any) -> list[Any]:
    """`items[index] = value`."""
    items[index] = value
    return items


@implements("append.t")
def append(items: list[Any], value: Any) -> list[Any]:
    """One more element; generated text calls the list's own method."""
    items.append(value)
    return items


pieces({"append.t": "{0}.append({1})"})


@implements("add_.t")
def extend_in_place(items: list[Any], others: list[Any]) -> list[Any]:
    """`items += others`."""
    items.extend(others)
    return items


@implements("mul_.t")
def repeat_in_place(items: list[Any], times: int) -> list[Any]:
    """`items *= times`."""
    items *= times
    return items


@implements("pop.t")
def pop(items: list[Any], index: int) -> Any:
    """Take an element out."""
    if not items:
        raise IndexError("pop from empty list")
    if not -len(items) <= index < len(items):
        raise IndexError("list index out of range")
    return items.pop(index)


@implements("Delete.t")
def delete(items: list[Any], index: int) -> None:
    """`del items[index]`."""
    pop(items, index)


@implements("index.list_int", "index.list_float", "index.list_bool", "index.list_str",
            "index.list_Tensor")  # fmt: skip
def index_of(items: list[Any], element: Any) -> int:
    """The place of the first equal element."""
    for index, item in enumerate(items):
        if item == element:
            return index
    from flambeau.jit.operators.formatting import text_of

    raise ValueError(f"'{text_of(element)}' is not in list")


@implements("remove.int", "remove.float", "remove.bool", "remove.str", "remove.Tensor")
def remove(items: list[Any], element: Any) -> None:
    """Take the first equal element out."""
    for index, item in enumerate(items):
        if item == element:
            del items[index]
            return
    raise ValueError("list.remove(x): x not in list")


@implements("eq.Tensor_list")
def equal_tensors(some: list[Any], others: list[Any]) -> bool:
    """Whether all tensors are equal, each of one element."""
    pairs = zip(some, others, strict=False)
    return len(some) == len(others) and all(bool(a == b) for a, b in pairs)


@in_scope
@implements("slice.t")
def slice_list(items: list[Any], start: int | None, end: int | None, step: int) -> list[Any]:
    """`items[start:end:step]`."""
    if not step:
        raise RuntimeError("List slice should have non-zero step")
    return items[start:end:step]


@implements("sort.int", "sort.float", "sort.bool", "sort.str", "sort.Tensor", "sort.any")
def sort(items: list[Any], reverse: bool) -> None:
    """Sort in place; objects by their `__lt__`."""
    items.sort(reverse=reverse)


functions({
    "count.Tensor": lambda items, element: sum(bool(item == element) for item in items),
    "ne.Tensor_list": lambda some, others: not equal_tensors(some, others),
    "sorted.float sorted.Tensor sorted.any": sorted,
})  # fmt: skip


def _extreme(word: str, better: Any) -> Any:
    def function(items: list[Any]) -> Any:
        if not items:
            raise RuntimeError(f"{word}() arg is an empty sequence")
        found = items[0]
        for item in items[1:]:
            if better(item, found):
                found = item
        return found

    return function


for kind in ("int", "float", "bool"):
    implements(f"prim::max.self_{kind}")(_extreme("max", lambda a, b: a > b))
    implements(f"prim::min.self_{kind}")(_extreme("min", lambda a, b: a < b))


# ---- dictionaries. Tensors are keys by identity, as in Python.


def _missing(key: Any) -> KeyError:
    from flambeau.jit.operators.formatting import text_of

    return KeyError(text_of(key))


@implements(*(f"__getitem__.Dict_{key}" for key in KEYS))
def look_up(found: dict[Any, Any], key: Any) -> Any:
    """`found[key]`."""
    try:
        return found[key]
    except KeyError:
        raise _missing(key) from None


@implements(*(f"_set_item.{key}" for key in KEYS))
def set_key(target: dict[Any, Any], key: Any, value: Any) -> None:
    """`target[key] = value`."""
    target[key] = value


@implements(*(f"Delete.Dict_{key}" for key in KEYS))
def delete_key(target: dict[Any, Any], key: Any) -> None:
    """`del target[key]`."""
    if key not in target:
        raise _missing(key)
    del target[key]


@implements(*(f"pop.Dict_{key}" for key in KEYS))
def pop_key(target: dict[Any, Any], key: Any) -> Any:
    """Take a value out."""
    if key not in target:
        raise _missing(key)
    return target.pop(key)


@implements(*(f"pop.Dict_default_{key}" for key in KEYS))
def pop_key_or(target: dict[Any, Any], key: Any, otherwise: Any) -> Any:
    """Take a value out, or give another one."""
    return target.pop(key, otherwise)


@implements(*(f"popitem.{key}" for key in KEYS))
def pop_item(target: dict[Any, Any]) -> tuple[Any, Any]:
    """Take the first pair out: in torch's order, not the last one as in Python."""
    if not target:
        raise RuntimeError("popitem(): dictionary is empty")
    key = next(iter(target))
    return key, target.pop(key)


pieces({
    "__contains__.Tensor": "({1} in {0})", "get.Tensor": "{0}.get({1})",
    "get.default_Tensor": "{0}.get({1}, {2})", "setdefault.Tensor": "{0}.setdefault({1}, {2})",
    "update.Tensor": "{0}.update({1})", "copy.Dict_Tensor dict.Dict_Tensor": "dict({0})",
    "dict.Tensor": "dict({0})", "keys.Tensor": "list({0})", "values.Tensor": "list({0}.values())",
    "items.Tensor": "list({0}.items())",
})  # fmt: skip
