"""Who may be whom, and who writes to whom."""

from __future__ import annotations

from flambeau.jit.ir.graph import Graph, Node, Value
from flambeau.jit.ir.graph_parser import parse_graph
from flambeau.jit.passes.alias import AliasInfo
from flambeau.jit.passes.dead_code import remove_dead_code

TEXT = """graph(%x : Tensor, %y : Tensor, %n : int):
  %one : int = prim::Constant[value=1]()
  %view : Tensor = aten::select(%x, %one, %one)
  %fresh : Tensor = aten::add(%x, %y, %one)
  %part : Tensor = aten::select(%fresh, %one, %one)
  %list : Tensor[] = prim::ListConstruct(%fresh)
  %other : Tensor = aten::relu(%y)
  %more : Tensor[] = aten::append(%list, %other)
  %element : Tensor = aten::__getitem__(%list, %n)
  %lonely : Tensor = aten::relu(%x)
  %written : Tensor = aten::add_(%part, %one, %one)
  return (%element)"""


def read(text: str) -> tuple[Graph, dict[str, Value]]:
    """A graph and its values by name."""
    graph = parse_graph(text)
    values = {value.name: value for value in graph.inputs}
    values |= {value.name: value for node in graph.walk() for value in node.outputs}
    return graph, values


def node(value: Value) -> Node:
    """What computes a value."""
    assert value.node is not None
    return value.node


def test_may_alias() -> None:
    """Inputs may be one tensor, views are their base, elements are what was put in."""
    graph, v = read(TEXT)
    alias = AliasInfo(graph)
    assert alias.may_alias(v["x"], v["y"])
    assert alias.may_alias(v["view"], v["x"])
    assert alias.may_alias(v["part"], v["fresh"])
    assert alias.may_alias(v["element"], v["fresh"])
    assert alias.may_alias(v["element"], v["other"])
    assert not alias.may_alias(v["element"], v["lonely"])
    assert not alias.may_alias(v["fresh"], v["x"])
    assert not alias.may_alias(v["list"], v["fresh"])
    assert alias.may_contain_alias(v["list"], v["part"])


def test_writers() -> None:
    """A write to a view is one to its base, and to the list that holds it only deep down."""
    graph, v = read(TEXT)
    alias = AliasInfo(graph)
    assert alias.writers(v["fresh"]) == [node(v["written"])]
    assert alias.writers(v["list"]) == [node(v["more"])]
    assert not alias.has_writers(v["x"])
    assert not alias.has_writers(v["lonely"])
    assert alias.has_writers(v["list"], deep=True)
    assert not alias.writes_outside(node(v["written"]))


def test_dead_code() -> None:
    """Writes to what is returned stay, other unused nodes go."""
    graph, v = read(TEXT)
    remove_dead_code(graph)
    kinds = [one.kind for one in graph.block]
    assert kinds.count("aten::add_") == 1
    assert kinds.count("aten::append") == 1
    assert kinds.count("aten::relu") == 1


def test_dead_results() -> None:
    """What a loop carries for nobody is dropped; what it writes to from outside is kept."""
    graph, v = read("""graph(%x : Tensor, %n : int):
  %t : bool = prim::Constant[value=1]()
  %zero : int = prim::Constant[value=0]()
  %a : int, %b : Tensor = prim::Loop(%n, %t, %zero, %x)
    block0(%i : int, %a.1 : int, %b.1 : Tensor):
      %a.2 : int = aten::add(%a.1, %i)
      %b.2 : Tensor = aten::relu(%b.1)
      %w : Tensor = aten::mul_(%x, %i)
      -> (%t, %a.2, %b.2)
  return (%b)""")
    remove_dead_code(graph)
    loop = node(v["b"])
    assert [value.name for value in loop.outputs] == ["b"]
    assert [one.kind for one in loop.blocks[0]] == ["aten::relu", "aten::mul_"]
