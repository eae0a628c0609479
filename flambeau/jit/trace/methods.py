"""Methods out of a trace: every module that ran gets what it did as its own `forward`.

While a module ran, its operators went to the block of a node `prim::TracedModuleForward`. Here
each such block becomes the graph of a method, and its node a call: values of outer blocks become
parameters, in the order in which they are used, and what outer blocks use of it results.
"""

from __future__ import annotations

from typing import Any

from flambeau.jit.ir import types as T
from flambeau.jit.ir.function import Function, FunctionSchema, Parameter
from flambeau.jit.ir.graph import Block, Graph, Node, Value, copy_nodes
from flambeau.jit.passes import clean_up

FORWARD = "prim::TracedModuleForward"


def make_methods(graph: Graph, classes: dict[int, T.ClassType]) -> None:
    """Replace all blocks of modules by calls of methods, which are added to the modules' classes.

    classes: the class type of each module, by the module's identity. The graph's first input is
        the root module.
    """
    _lift_results(graph.block)
    _convert(graph.block, classes)


def _convert(block: Block, classes: dict[int, T.ClassType]) -> None:
    for node in block:
        if node.kind == FORWARD:
            _convert(node.blocks[0], classes)
            _call_method(node, classes[id(node.attributes["module"])])


# ---- results: what is used outside of the block that it is computed in


def _lift_results(block: Block) -> None:
    """Let uses see definitions: a value that is used outside of its block becomes a result of the
    block's node, in the order of uses.
    """
    for node in block:
        for index, value in enumerate(node.inputs):
            node.set_input(index, _visible(value, block))
        for inner in node.blocks:
            _lift_results(inner)
    for index, value in enumerate(block.outputs):
        block.set_output(index, _visible(value, block))


def _visible(value: Value, block: Block) -> Value:
    """The value as it can be used in a block: itself, or a result of a node that holds it."""
    home = value.block if value.node is None else value.node.block
    assert home is not None
    while not block.is_inside(home):
        owner = home.owner
        assert owner is not None
        assert owner.block is not None
        if value in home.outputs:
            value = owner.outputs[home.outputs.index(value)]
        else:
            home.add_output(value)
            value = owner.add_output(value.type)
        home = owner.block
    return value


# ---- parameters


def _free_values(block: Block) -> list[Value]:
    """What a block uses of outer blocks, in the order of the uses."""
    found: dict[Value, None] = {}

    def visit(inner: Block) -> None:
        for node in inner:
            for value in node.inputs:
                note(value)
            for deeper in node.blocks:
                visit(deeper)
        for value in inner.outputs:
            note(value)

    def note(value: Value) -> None:
        home = value.block if value.node is None else value.node.block
        if home is not None and not home.is_inside(block):
            found.setdefault(value)

    visit(block)
    return list(found)


def _call_method(node: Node, class_type: T.ClassType) -> None:
    """Make a method of a block, and a call of its node."""
    block, outer = node.blocks[0], node.graph
    free = _free_values(block)
    graph = Graph()
    mapping = {block.inputs[0]: graph.add_input(class_type, "self")}
    for value in free:
        mapping[value] = graph.add_input(value.type, value.name)
    copy_nodes(block, graph.block, mapping)
    results = [value.type for value in node.outputs]
    if len(results) > 1:
        values = graph.outputs[:]
        graph.block.remove_all_outputs()
        made = graph.insert("prim::TupleConstruct", values, [T.TupleType(tuple(results))])
        graph.add_output(made.output)
    elif not results:
        graph.add_output(graph.constant(None, T.NONE))
    name = add_method(class_type, graph)
    result = T.without_facts(graph.outputs[0].type)
    call = outer.create("prim::CallMethod", [node.inputs[0], *free], [result], name=name)
    call.source = node.source
    call.insert_before(node)
    _hand_over(node, call)
    node.destroy()


def _hand_over(node: Node, call: Node) -> None:
    """Let the users of a node's results use those of the call."""
    if len(node.outputs) > 1:
        types = [T.without_facts(value.type) for value in node.outputs]
        unpack = node.graph.create("prim::TupleUnpack", [call.output], types)
        unpack.insert_after(call)
        results = unpack.outputs
    else:
        results = [call.output]
    for old, new in zip(node.outputs, results, strict=False):
        new.name = old.name
        old.replace_by(new)


def add_method(class_type: T.ClassType, graph: Graph, name: str = "forward") -> str:
    """Add a method to a class; a further one is `forward1`. The name that it got."""
    stem, count = name, 0
    while name in class_type.methods:
        count += 1
        name = f"{stem}{count}"
    set_types(graph)
    clean_up(graph)
    function = Function(f"{class_type.qualified_name}.{name}", class_type.unit,  # type: ignore[arg-type]
                        graph=graph, schema=schema_of(name, graph))  # fmt: skip
    class_type.methods[name] = function
    return name


def set_types(graph: Graph) -> None:
    """Give the values of attributes their types, now that the classes are known."""
    for node in graph.walk():
        if node.kind == "prim::GetAttr":
            owner: Any = node.inputs[0].type
            node.output.type = owner.attributes[node.attributes["name"]].type


def schema_of(name: str, graph: Graph) -> FunctionSchema:
    """The schema of a graph: its inputs as they are called, unnamed ones by number."""
    taken: set[str] = set()
    parameters = []
    for index, value in enumerate(graph.inputs):
        word = value.name.partition(".")[0] or f"argument_{index}"
        while word in taken:
            word += "_"
        taken.add(word)
        value.name = word
        parameters.append(Parameter(word, T.without_facts(value.type)))
    result = Parameter("", T.without_facts(graph.outputs[0].type))
    return FunctionSchema(name, "", tuple(parameters), (result,))
