"""Code: what is written in place, which names variables get, how constants look."""

from __future__ import annotations

from flambeau.jit.ir import types as T
from flambeau.jit.ir.function import CompilationUnit, Function, FunctionSchema, Parameter
from flambeau.jit.ir.graph_parser import parse_graph
from flambeau.jit.printing.archive_text import ArchiveCode, code_files
from flambeau.jit.printing.code_text import code_of


def function_of(text: str, unit: CompilationUnit | None = None) -> Function:
    """A function `f` with a graph."""
    graph = parse_graph(text)
    arguments = tuple(Parameter(v.name.partition(".")[0], v.type) for v in graph.inputs)
    schema = FunctionSchema("f", "", arguments, (Parameter("", graph.outputs[0].type),))
    unit = unit or CompilationUnit()
    return unit.add_function(Function("__torch__.m.f", unit, graph=graph, schema=schema))


def test_written_in_place() -> None:
    """A result that is used once is written where it is used, and defaults are left out."""
    text = """graph(%x.1 : Tensor):
  %1 : int = prim::Constant[value=1]()
  %2 : Tensor = aten::relu(%x.1)
  %3 : Tensor = aten::add(%2, %x.1, %1)
  return (%3)"""
    assert code_of(function_of(text)) == (
        "def f(x: Tensor) -> Tensor:\n  return torch.add(torch.relu(x), x)\n"
    )


def test_order_is_kept() -> None:
    """What runs first is written first: `neg` cannot move behind `add_`."""
    text = """graph(%x.1 : Tensor):
  %1 : int = prim::Constant[value=1]()
  %2 : Tensor = aten::neg(%x.1)
  %3 : Tensor = aten::add_(%x.1, %1, %1)
  %4 : Tensor = aten::mul(%3, %2)
  return (%4)"""
    assert code_of(function_of(text)).splitlines()[1:] == [
        "  _0 = torch.neg(x)",
        "  return torch.mul(torch.add_(x, 1), _0)",
    ]


def test_names() -> None:
    """Names are those of the program, with numbers where they are taken or mean something."""
    text = """graph(%x.1 : Tensor):
  %x.2 : Tensor = aten::relu(%x.1)
  %x.3 : Tensor = aten::mul(%x.2, %x.1)
  %if.1 : Tensor = aten::mul(%x.3, %x.3)
  %9 : (Tensor, Tensor) = prim::TupleConstruct(%if.1, %x.3)
  return (%9)"""
    assert code_of(function_of(text)).splitlines()[1:] == [
        "  x0 = torch.relu(x)",
        "  x1 = torch.mul(x0, x)",
        "  if0 = torch.mul(x1, x1)",
        "  return (if0, x1)",
    ]


def test_loops_and_branches() -> None:
    """A counted loop is a `for`, one with a condition a `while`; empty blocks say `pass`."""
    text = """graph(%x.1 : Tensor, %n.1 : int, %b.1 : bool):
  %t : bool = prim::Constant[value=1]()
  %m : int = prim::Constant[value=9223372036854775807]()
  %y : Tensor = prim::Loop(%n.1, %t, %x.1)
    block0(%i : int, %y.1 : Tensor):
      %y.2 : Tensor = aten::mul(%y.1, %i)
      -> (%t, %y.2)
  %z : Tensor = prim::Loop(%m, %b.1, %y)
    block0(%k : int, %z.1 : Tensor):
      %z.2 : Tensor = aten::relu(%z.1)
      -> (%b.1, %z.2)
   = prim::If(%b.1)
    block0():
       = prim::Print(%z)
      -> ()
    block1():
      -> ()
  return (%z)"""
    assert code_of(function_of(text)).splitlines()[3:] == [
        "  y = x",
        "  for i in range(n):",
        "    y = torch.mul(y, i)",
        "  z = y",
        "  k = b",
        "  while k:",
        "    k, z = b, torch.relu(z)",
        "  if b:",
        "    print(z)",
        "  else:",
        "    pass",
        "  return z",
    ]


def test_constants() -> None:
    """Numbers are written as torch does, tensors in the table."""
    text = """graph():
  %0 : float = prim::Constant[value=1e-05]()
  %1 : float = prim::Constant[value=-0.]()
  %2 : Tensor = prim::Constant[value={3}]()
  %3 : Device = prim::Constant[value="cpu"]()
  %4 : str = prim::Constant[value="a\\"b"]()
  %5 : complex = prim::Constant[value=1.+-2.5j]()
  %6 : NoneType = prim::Constant()
  %7 : int[] = prim::ListConstruct()
  %8 : (float, float, Tensor, Device, str, complex, NoneType, int[]) = prim::TupleConstruct(%0, %1, %2, %3, %4, %5, %6, %7)
  return (%8)"""  # noqa: E501
    code = ArchiveCode([function_of(text)])
    assert len(code.constants) == 1
    (body,) = code.files.values()
    assert body.splitlines()[1:] == [
        '  _0 = (1.0000000000000001e-05, -0., CONSTANTS.c0, torch.device("cpu"), "a\\"b", '
        "1.-2.5j, None, annotate(List[int], []))",
        "  return _0",
    ]


def test_classes_in_files() -> None:
    """A class, what it refers to, and where they are written."""
    unit = CompilationUnit()
    inner = unit.add_class("__torch__.a.b.Inner", is_module=True)
    inner.add("weight", T.TENSOR, "parameter")
    inner.constants["size"] = 3
    outer = unit.add_class("__torch__.Outer", is_module=True)
    outer.add("0", inner, "module")
    assert code_files([outer]) == {
        "code/__torch__.py": (
            "class Outer(Module):\n  __parameters__ = []\n  __buffers__ = []\n"
            '  __annotations__ = []\n  __annotations__["0"] = __torch__.a.b.Inner\n'
        ),
        "code/__torch__/a/b.py": (
            'class Inner(Module):\n  __parameters__ = ["weight", ]\n  __buffers__ = []\n'
            "  weight : Tensor\n  size : Final[int] = 3\n"
        ),
    }
