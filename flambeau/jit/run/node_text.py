"""The text of nodes that are no calls of operators: control flow, containers, objects, calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from flambeau._core.tables import entering
from flambeau._tensor.tensor import Tensor
from flambeau.jit.ir import types as T
from flambeau.jit.ir.graph import Block, Node, Value
from flambeau.jit.ir.values import ScriptObject, named_tuple
from flambeau.jit.operators import sizes, work
from flambeau.jit.run import contexts, support
from flambeau.jit.run.futures import forked, forked_here

if TYPE_CHECKING:
    from flambeau.jit.run.python_text import Writer

Rule = Callable[["Writer", Node], None]

NODES: dict[str, Rule] = {}
"""What is written for kinds of nodes that are no calls of operators."""


writes = entering(NODES)
"""Note a function as the writer of kinds of nodes."""


# ---- control flow


@writes("prim::If")
def write_if(w: Writer, node: Node) -> None:
    """`if` and `else`; what the branches give goes to the node's variables."""
    if w.spill(node):
        return
    names = [w.name(value) for value in node.outputs]
    w.put(f"if {w.text(node.inputs[0])}:")
    then, otherwise = node.blocks
    _branch(w, then, names)
    if names or any(True for _ in otherwise):
        w.put("else:")
        _branch(w, otherwise, names)


def _branch(w: Writer, block: Block, names: list[str]) -> None:
    w.depth += 1
    before = len(w.lines)
    w.body(block)
    for name, value in zip(names, block.outputs, strict=True):
        w.put(f"{name} = {w.text(value)}")
    if len(w.lines) == before:
        w.put("pass")
    w.depth -= 1


@writes("prim::Loop")
def write_loop(w: Writer, node: Node) -> None:
    """`for` where only the number of rounds ends the loop, `while` where only a condition does."""
    if w.spill(node):
        return
    block = node.blocks[0]
    trips, condition, *start = node.inputs
    counter, *carried = block.inputs
    for inner, outer, first in zip(carried, node.outputs, start, strict=True):
        name = w.name(inner)
        w.names[outer] = name
        w.put(f"{name} = {w.text(first)}")
    always = condition.is_constant and condition.constant is True
    goes_on = block.outputs[0]
    if always and goes_on.is_constant and goes_on.constant is True:
        w.put(f"for {w.name(counter)} in range({w.text(trips)}):")
        _round(w, block, carried, None)
        return
    test = f"go_{len(w.lines)}"
    w.put(f"{test} = {w.text(condition)}")
    if not counter.users and trips.is_constant and trips.constant >= 2**31 - 1:
        w.put(f"while {test}:")
        _round(w, block, carried, test)
        return
    w.put(f"for {w.name(counter)} in range({w.text(trips)}):")
    w.depth += 1
    w.put(f"if not {test}: break")
    w.depth -= 1
    _round(w, block, carried, test)


def _round(w: Writer, block: Block, carried: list[Value], test: str | None) -> None:
    """The body of a loop; at its end the carried variables and the condition get new values."""
    w.depth += 1
    if w.meter is not None:
        w.put(f"{w.meter}.tick()")
    before = len(w.lines)
    w.body(block)
    targets, values = [], []
    pairs = [*zip(map(w.name, carried), block.outputs[1:], strict=True)]
    if test is not None:
        pairs.append((test, block.outputs[0]))
    for name, value in pairs:
        text = w.text(value)
        if text != name:
            targets.append(name)
            values.append(text)
    if targets:
        w.put(f"{', '.join(targets)} = {', '.join(values)}")
    if len(w.lines) == before:
        w.put("pass")
    w.depth -= 1


@writes("prim::RaiseException")
def write_raise(w: Writer, node: Node) -> None:
    """`raise`."""
    given = ", ".join(w.text(value) for value in node.inputs)
    w.put(f"{w.bind(support.raise_exception, 'raise_exception')}({given})")
    for value in node.outputs:
        w.put(f"{w.name(value)} = None")


@writes("prim::Uninitialized")
def write_uninitialized(w: Writer, node: Node) -> None:
    """A value that is never used; of a tuple the elements may be taken, which are not used."""
    w.assign(node, _nothing(node.output.type))


def _nothing(type: T.Type) -> str:
    if not isinstance(type, T.TupleType):
        return "None"
    return f"({''.join(f'{_nothing(element)}, ' for element in type.elements)})"


@writes("prim::Enter")
def write_enter(w: Writer, node: Node) -> None:
    """The beginning of `with`."""
    value = node.inputs[0]
    type = value.type
    assert isinstance(type, T.ClassType)
    region = contexts.REGIONS.get(type.qualified_name)
    if region is not None:
        enter, leave = (w.bind(function, function.__name__) for function in region)
    else:
        enter, leave = (callee(w, type.methods[name]) for name in ("__enter__", "__exit__"))
    w.assign(node, f"entered.enter({w.text(value)}, {enter}, {leave})")


@writes("prim::Exit")
def write_exit(w: Writer, node: Node) -> None:
    """The end of `with`."""
    w.put("entered.leave()")
    for value in node.outputs:
        w.put(f"{w.name(value)} = None")


# ---- constants, containers


@writes("prim::Constant")
def write_constant(w: Writer, node: Node) -> None:
    """Nothing: constants are written where they are used."""


@writes("prim::TupleConstruct")
def write_tuple(w: Writer, node: Node) -> None:
    """A tuple, or a NamedTuple."""
    items = [w.text(value) for value in node.inputs]
    type = node.output.type
    if isinstance(type, T.TupleType) and type.qualified_name:
        w.assign(node, f"{w.bind(named_tuple(type), 'named')}({', '.join(items)})")
    else:
        w.assign(node, f"({', '.join(items)}{',' if len(items) == 1 else ''})")


@writes("prim::ListConstruct")
def write_list(w: Writer, node: Node) -> None:
    """A list."""
    w.assign(node, f"[{', '.join(w.text(value) for value in node.inputs)}]")


@writes("prim::EmptyListLiteral")
def write_empty_list(w: Writer, node: Node) -> None:
    """An empty list of any type."""
    w.assign(node, "[]")


@writes("prim::DictConstruct")
def write_dict(w: Writer, node: Node) -> None:
    """A dictionary of keys and values in turn."""
    keys, values = node.inputs[::2], node.inputs[1::2]
    pairs = (f"{w.text(k)}: {w.text(v)}" for k, v in zip(keys, values, strict=True))
    w.assign(node, f"{{{', '.join(pairs)}}}")


@writes("prim::TupleUnpack")
def write_tuple_unpack(w: Writer, node: Node) -> None:
    """A tuple's elements."""
    if node.outputs:
        targets = "".join(f"{w.name(value)}, " for value in node.outputs)
        w.put(f"{targets}= {w.text(node.inputs[0])}")


@writes("prim::ListUnpack")
def write_list_unpack(w: Writer, node: Node) -> None:
    """A list's elements, of which there must be just so many."""
    items, count = w.text(node.inputs[0]), len(node.outputs)
    wrong = w.bind(support.wrong_length, "wrong_length")
    w.put(f"if len({items}) != {count}: {wrong}({items}, {count})")
    if node.outputs:
        targets = "".join(f"{w.name(value)}, " for value in node.outputs)
        w.put(f"{targets}= {items}")


@writes("prim::TupleIndex")
def write_tuple_index(w: Writer, node: Node) -> None:
    """One element of a tuple."""
    w.assign(node, f"{w.text(node.inputs[0])}[{w.text(node.inputs[1])}]")


@writes("prim::TupleSlice")
def write_tuple_slice(w: Writer, node: Node) -> None:
    """Some elements of a tuple."""
    begin, end = int(node.attributes["beg"]), int(node.attributes["end"])
    w.assign(node, f"{w.text(node.inputs[0])}[{begin}:{end}]")


@writes("prim::unchecked_cast", "prim::unchecked_unwrap_optional")
def write_cast(w: Writer, node: Node) -> None:
    """The same value under another type."""
    w.assign(node, w.text(node.inputs[0]))


@writes("prim::isinstance")
def write_isinstance(w: Writer, node: Node) -> None:
    """Whether a value is of one of several types."""
    value, types = w.text(node.inputs[0]), tuple(node.attributes["types"])
    if types == (T.TENSOR,):
        w.assign(node, f"isinstance({value}, {w.bind(Tensor, 'Tensor')})")
        return
    if w.meter is not None:
        w.put(f"{w.meter}.work({w.bind(work.reached, 'reached')}, {value})")
    w.assign(node, f"{w.bind(support.matches, 'matches')}({value}, {w.bind(types)})")


@writes("prim::tolist")
def write_tolist(w: Writer, node: Node) -> None:
    """A tensor as nested lists."""
    given = ", ".join(w.text(value) for value in node.inputs)
    if w.meter is not None:
        tensor = w.text(node.inputs[0])
        w.put(f"{w.meter}.work({w.bind(work.listed, 'work')}, {tensor})")
        w.put(f"{w.meter}.grow({w.bind(sizes.listed, 'size')}, {tensor})")
    w.assign(node, f"{w.bind(support.as_list, 'as_list')}({given})")


@writes("prim::ConstantChunk")
def write_chunk(w: Writer, node: Node) -> None:
    """A tensor in so many pieces."""
    from flambeau._ops.table.namespace import get

    chunks, dim = int(node.attributes["chunks"]), int(node.attributes["dim"])
    targets = "".join(f"{w.name(value)}, " for value in node.outputs)
    w.put(f"{targets}= {w.bind(get('chunk'), 'chunk')}({w.text(node.inputs[0])}, {chunks}, {dim})")


# ---- objects and calls


def _place(w: Writer, node: Node) -> str:
    """Where an attribute lies."""
    value, name = node.inputs[0], node.attributes["name"]
    key = w.bind(name, "name")
    type = value.type
    kind = "attribute"
    if isinstance(type, T.ClassType) and name in type.attributes:
        kind = type.attributes[name].kind
    holder = {"parameter": "_parameters", "buffer": "_buffers", "module": "_modules"}.get(kind)
    return f"{w.text(value)}.{holder or '__dict__'}[{key}]"


def check_class(w: Writer, value: Value) -> None:
    """Types in the code of an archive are claims: see that an object is of the class that it is
    taken for, before its fields are touched. Submodules are checked where they are stored.
    """
    type, maker = value.type, value.node
    if not isinstance(type, T.ClassType) or not getattr(type.unit, "is_foreign", False):
        return
    if value in w.checked or (maker is not None and _is_submodule(maker)):
        return
    text, kind = w.text(value), w.bind(type, "class")
    wrong = w.bind(support.wrong_class, "wrong_class")
    w.put(f"if {text}._type is not {kind}: {wrong}({text}, {kind})")


def _is_submodule(node: Node) -> bool:
    if node.kind != "prim::GetAttr":
        return False
    owner = node.inputs[0].type
    if not isinstance(owner, T.ClassType):
        return False
    attribute = owner.attributes.get(node.attributes["name"])
    return attribute is not None and attribute.kind == "module"


@writes("prim::GetAttr")
def write_get(w: Writer, node: Node) -> None:
    """An attribute."""
    check_class(w, node.inputs[0])
    w.assign(node, _place(w, node))


@writes("prim::SetAttr")
def write_set(w: Writer, node: Node) -> None:
    """A new value for an attribute."""
    check_class(w, node.inputs[0])
    w.put(f"{_place(w, node)} = {w.text(node.inputs[1])}")


@writes("prim::CreateObject")
def write_object(w: Writer, node: Node) -> None:
    """An object of a class; `__init__` is called apart."""
    w.assign(node, f"{w.bind(ScriptObject, 'ScriptObject')}({w.bind(node.output.type)})")


@writes("prim::CallFunction")
def write_call(w: Writer, node: Node) -> None:
    """A call of a function."""
    target, *rest = node.inputs
    assert isinstance(target.type, T.FunctionType)
    _call(w, node, target.type.function, rest)


@writes("prim::CallMethod")
def write_method(w: Writer, node: Node) -> None:
    """A call of a method; that of an interface is looked up each time."""
    type, name = node.inputs[0].type, node.attributes["name"]
    if isinstance(type, T.ClassType):
        _call(w, node, type.methods[name], node.inputs)
        return
    given = ", ".join(w.text(value) for value in node.inputs)
    find = w.bind(support.method_of, "method_of")
    w.assign(node, f"{find}({w.text(node.inputs[0])}, {w.bind(name)})({given})")


def _call(w: Writer, node: Node, function: Any, inputs: Sequence[Value]) -> None:
    w.assign(node, f"{callee(w, function)}({', '.join(w.text(value) for value in inputs)})")


def callee(w: Writer, function: Any) -> str:
    """The name of a function that is called."""
    name = w.known.get(id(function))
    if name is None:
        name = w.known[id(function)] = f"call_{len(w.known)}"
        w.scope[name] = w.resolve((function, w.scope, name))
    return name


@writes("flambeau::Call", "prim::PythonOp")
def write_python_call(w: Writer, node: Node) -> None:
    """A call of what the optimiser made, or of a function that stays Python."""
    function = node.attributes["function"]
    name = w.bind(function, getattr(function, "__name__", "call"))
    given = ", ".join(w.text(value) for value in node.inputs)
    w.assign(node, f"{name}({given})")


@writes("prim::fork")
def write_fork(w: Writer, node: Node) -> None:
    """A call whose result is a Future."""
    graph = node.attributes["Subgraph"]
    function = w.bind(w.resolve(graph), "forked_graph")
    given = ", ".join([function, *(w.text(value) for value in node.inputs)])
    make = forked if w.meter is None else forked_here
    w.assign(node, f"{w.bind(make, 'forked')}({given})")
