"""The table of schemas, and the choice of an overload by the types of arguments."""

from __future__ import annotations

import pytest

from flambeau.jit.ir import types as T
from flambeau.jit.ir.function import FunctionSchema, Parameter
from flambeau.jit.ir.graph import Graph
from flambeau.jit.ir.source import ScriptError
from flambeau.jit.operators import calls, table
from flambeau.jit.operators.matching import Argument, emit_builtin, match_one


def test_schemas_are_read() -> None:
    schema = table.schema(
        'aten::conv2d(Tensor input, Tensor? bias=None, SymInt[2] stride=[1, 1], *, str s="a b", '
        "Tensor(a!) out, float x=1.0e-05) -> (Tensor(a!) values, int[] sizes)"
    )
    types = ["Tensor", "Tensor?", "int[]", "str", "Tensor", "float"]
    assert [str(p.type) for p in schema.arguments] == types
    assert [p.default for p in schema.arguments[1:4]] == [None, (1, 1), "a b"]
    assert [p.keyword_only for p in schema.arguments] == [False] * 3 + [True] * 3
    assert schema.arguments[2].length == 2
    assert schema.arguments[4].written
    assert schema.arguments[5].default == 1e-05
    assert [r.name for r in schema.returns] == ["values", "sizes"]


def test_schemas_of_containers() -> None:
    schema = table.schema("aten::items.str(Dict(str, t) self, Future(t) f, ...) -> ((str, t)[])")
    assert str(schema.arguments[0].type) == "Dict(str, t)"
    assert str(schema.arguments[1].type) == "Future(t)"
    assert schema.vararg
    assert str(schema.returns[0].type) == "(str, t)[]"


@pytest.mark.parametrize("text", ["aten::f(Tensor x", "f(strange x) -> Tensor", "f() -> int x y"])
def test_malformed_schemas_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="malformed schema"):
        table.schema(text)


def test_no_operator_reaches_files_or_python() -> None:
    names = set(table.names())
    assert names.isdisjoint({"aten::from_file", "aten::save", "prim::PythonOp", "prim::rpc_sync"})
    assert not any(name.startswith("quantized::") for name in names)


def test_a_name_has_its_overloads_in_order() -> None:
    names = [schema.overload for schema in table.overloads("aten::add")]
    assert names[:4] == ["Tensor", "Scalar", "out", "Scalar_out"]
    assert names[-1] == ""
    assert calls.implementation(table.overloads("aten::add")[6])(2, 3) == 5


@pytest.fixture
def graph() -> Graph:
    graph = Graph()
    graph.add_input(T.INFERRED_TENSOR, "x")
    graph.add_input(T.INT, "n")
    return graph


def inserted(graph: Graph) -> list[str]:
    return [n.schema.full_name if n.schema else n.kind for n in graph if n.kind != "prim::Constant"]


def test_loose_sizes_become_a_list(graph: Graph) -> None:
    emit_builtin(graph, None, "aten::view", [graph.inputs[0], Argument(2), graph.inputs[1]])
    assert inserted(graph) == ["prim::ListConstruct", "aten::view"]


def test_one_number_becomes_a_list_of_a_length(graph: Graph) -> None:
    x = graph.inputs[0]
    emit_builtin(
        graph, None, "aten::avg_pool2d", [x, Argument(2)], [Argument((1, 1), None, "stride")]
    )
    assert inserted(graph) == [
        "prim::ListConstruct", "prim::TupleUnpack", "prim::ListConstruct", "aten::avg_pool2d",
    ]  # fmt: skip


def test_several_results_are_a_tuple_with_names(graph: Graph) -> None:
    value = emit_builtin(graph, None, "aten::max", [graph.inputs[0], Argument(0)])
    assert isinstance(value.type, T.TupleType)
    assert value.type.fields == ("values", "indices")


def test_a_number_before_a_tensor(graph: Graph) -> None:
    emit_builtin(graph, None, "aten::sub", [Argument(1), graph.inputs[0]])
    assert inserted(graph) == ["aten::neg", "aten::add.Scalar"]


def test_a_tensor_becomes_a_number_if_nothing_else_fits(graph: Graph) -> None:
    emit_builtin(graph, None, "aten::floordiv", [Argument(1), graph.inputs[0]])
    assert inserted(graph) == ["aten::IntImplicit", "aten::floordiv.int"]


def test_errors_list_the_variants(graph: Graph) -> None:
    with pytest.raises(ScriptError) as caught:
        emit_builtin(graph, None, "aten::add", [graph.inputs[0], Argument("a")])
    text = str(caught.value)
    assert text.startswith(
        "Arguments for call are not valid.\nThe following variants are available:\n  \n"
        "  aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor:\n"
        "  Expected a value of type 'Tensor' for argument 'other' but instead found type 'str'.\n"
    )
    assert inserted(graph) == []


def test_type_variables_are_bound_once(graph: Graph) -> None:
    numbers = graph.constant([1, 2], T.ListType(T.INT))
    with pytest.raises(ScriptError, match="Type variable 't' previously matched to type int"):
        emit_builtin(graph, None, "aten::append", [numbers, graph.inputs[0]])


def test_script_functions_match_by_the_same_rules(graph: Graph) -> None:
    parameters = (Parameter("x", T.FLOAT), Parameter("o", T.optional(T.INT), None))
    schema = FunctionSchema("g", "", parameters, (Parameter("", T.FLOAT),))
    match = match_one(schema, graph, None, [graph.inputs[0]])
    assert inserted(graph) == ["aten::FloatImplicit"]
    assert match.inputs[1].type == T.NONE
    with pytest.raises(ScriptError, match="Keyword argument z unknown."):
        match_one(schema, graph, None, [graph.inputs[0]], [Argument(1, None, "z")])
