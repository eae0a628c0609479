"""`torch.fx` against PyTorch's: texts of graphs and code, results, changes, words of errors."""

from __future__ import annotations

import copy
import importlib
import math
import operator
import pickle
import random
from typing import Any

import pytest

from conformance.side_by_side import attempt, compare
from tests.random_seeds import generator


def fx(library: Any) -> Any:
    return importlib.import_module(f"{library.__name__}.fx")


def shown(library: Any, traced: Any) -> list[Any]:
    """All that is told of a traced module, with the words of a file for those of a builtin."""
    nodes = [
        (
            n.name,
            n.op,
            str(n.args),
            str(n.kwargs),
            str(n.users),
            str(n.all_input_nodes),
            str(n.type),
        )
        for n in traced.graph.nodes
    ]
    return [str(traced.graph), traced.code, nodes, str(traced), traced.print_readable(False)]


class Programs:
    """Modules to trace, made from either library."""

    def __init__(self, torch: Any) -> None:
        nn = torch.nn

        class Plain(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.lin = nn.Linear(3, 4)
                self.p = nn.Parameter(torch.ones(4))
                self.register_buffer("kept", torch.arange(4.0))
                self.seq = nn.Sequential(nn.ReLU(), nn.Linear(4, 2))
                self.parts = nn.ModuleList([nn.Linear(2, 2)] * 2)

            def forward(self, x, y=2, *args, **kwargs):
                z = self.lin(x) + self.p
                w = z[:, 1:3].relu().transpose(0, 1)
                a, b = torch.split(z, 2, dim=-1)
                q = torch.add(self.seq(z), self.parts[1](a), alpha=2)
                for part in self.parts:
                    q = part(q)
                t = x.shape[0]
                return {"o": q * y, "w": [-w, self.kept], "t": (t, b**2, 2 - a, ~(x > 0))}

        class Constants(nn.Module):
            def forward(self, x, *, k=3):
                y = x[..., None, ::2] + torch.ones(2, dtype=torch.float64)
                return torch.where(y > 0, y, y * k) @ torch.ones(2, 3) - math.sqrt(2.0)

        Constants.forward.__annotations__ = {"x": torch.Tensor, "k": int, "return": torch.Tensor}

        class Shapes(nn.Module):
            def forward(self, x):
                n, c = x.size(0), x.shape[1]
                y = x.view(n, -1, c).permute(0, 2, 1).contiguous()
                return y.reshape(n * c, -1).sum(dim=-1, keepdim=True).to(torch.float64), y.mean()

        class Nested(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.first, self.second = Plain(), Constants()

            def forward(self, x, flag: bool = True, size=None):
                y = self.first(x)["o"]
                if flag:
                    y = y + self.second(y[:, :1].double()).mean()
                return y if size is None else y[:size]

        self.plain, self.constants, self.shapes, self.nested = Plain, Constants, Shapes, Nested


KINDS = ("plain", "constants", "shapes", "nested")


def made(torch: Any, kind: str) -> Any:
    torch.manual_seed(5)
    return getattr(Programs(torch), kind)()


@pytest.mark.parametrize("kind", KINDS)
def test_text_and_results(kind: str):
    def scenario(torch: Any) -> Any:
        module = made(torch, kind)
        traced = fx(torch).symbolic_trace(module)
        x = torch.randn(2, 3)
        return [shown(torch, traced), traced(x), module(x), sorted(traced.state_dict())]

    compare(scenario)


@pytest.mark.parametrize("kind", KINDS)
def test_copies_and_pickles(kind: str):
    def scenario(torch: Any) -> Any:
        traced = fx(torch).symbolic_trace(made(torch, kind))
        x = torch.randn(2, 3)
        again = pickle.loads(pickle.dumps(traced))
        deep, flat = copy.deepcopy(traced), copy.copy(traced)
        return [
            again.code, str(again.graph), again(x), deep.code, deep(x), flat(x), str(deep),
            deep.graph is not traced.graph, type(deep).__name__, type(again).__name__,
        ]  # fmt: skip

    compare(scenario)


def test_concrete_arguments():
    def scenario(torch: Any) -> Any:
        results = []
        for given in ({"flag": False}, {"flag": True, "size": 1}, {"size": None}, {"y": 3}):
            module = made(torch, "plain" if "y" in given else "nested")
            traced = attempt(fx(torch).symbolic_trace, module, given)
            results.append(getattr(traced, "code", traced))
            if hasattr(traced, "code") and "flag" in given:
                results.append(attempt(traced, torch.ones(2, 3), given["flag"], given.get("size")))
                results.append(attempt(traced, torch.ones(2, 3), not given["flag"], None))
        return results

    compare(scenario)


def by_hand(torch: Any) -> Any:
    g = fx(torch).Graph()
    x = g.placeholder("x", type_expr=torch.Tensor)
    y = g.call_function(operator.iadd, (x, 1))
    z = g.call_function(operator.and_, (x, y))
    g.call_function(setattr, (x, "a", 1))
    b = g.call_method("MyThing", (z,))
    c = g.call_module("layerA.Lin", (b,))
    g.call_module("layerA.Lin", (b,))
    d = g.call_function(torch.add, (c, 1), {"alpha": torch.float32})
    e = g.call_function(torch.nn.functional.relu, (d,), type_expr=torch.Tensor)
    f = g.call_function(torch.zeros, ((2,),), {"device": torch.device("cpu")})
    h = g.get_attr("a.b.0.w")
    k = g.call_function(getattr, (h, "123"))
    m = g.call_function(operator.not_, (k,))
    n = g.call_function(math.sqrt, (float("inf"),))
    g.output([e, f, m, n, [x, (y,)], {"a": slice(z, None)}], type_expr=list[int])
    return g


def test_graphs_made_by_hand():
    def scenario(torch: Any) -> Any:
        g = by_hand(torch)
        code = g.python_code("self")
        nodes = list(g.nodes)
        names = (
            "x sum_1 add torch my.name 1a XY XYZNet a1 _x a_1_2 self inf len_ x_0 device".split()
        )
        return [
            str(g), code.src, [n.name for n in nodes], [n.format_node() for n in nodes],
            sorted(set(code.globals) - {"fx_pytree"}), [n.is_impure() for n in nodes if n.op not in
            ("call_module",)], [n.name for n in reversed(g.nodes)], len(g.nodes),
            nodes[1].prev.name, nodes[1].next.name, nodes[1] < nodes[3], nodes[1] > nodes[3],
            [g._graph_namespace.create_name(name, None) for name in names],
            [n.name for n in g.find_nodes(op="call_module", target="layerA.Lin")],
            [g.call_function(operator.add, (nodes[0], i)).name for i in range(3)],
        ]  # fmt: skip

    compare(scenario)


def test_layers_of_torch():
    def scenario(torch: Any) -> Any:
        net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Flatten())
        traced = fx(torch).symbolic_trace(net)
        return [traced.code, str(traced.graph), traced(torch.ones(1, 2))]

    compare(scenario)


def test_changes():
    def scenario(torch: Any) -> Any:
        traced = fx(torch).symbolic_trace(made(torch, "plain"))
        g, told = traced.graph, []
        for node in list(g.nodes):
            if node.op == "call_function" and node.target is operator.add:
                with g.inserting_after(node):
                    new = g.call_function(torch.mul, args=node.args, kwargs=node.kwargs)
                told.append([str(n) for n in node.replace_all_uses_with(new)])
                g.erase_node(node)
        first = next(iter(g.nodes))
        with g.inserting_before(g.output_node()):
            extra = g.call_method("neg", (first,))
        told.append(str(g))
        told += [g.eliminate_dead_code(), extra._erased, attempt(g.erase_node, first)]
        traced.recompile()
        lin = next(n for n in g.nodes if n.op == "call_module")
        lin.update_arg(0, first)
        lin.insert_arg(1, 5)
        lin.update_kwarg("k", [first, 1])
        told += [str(lin.args), str(lin.kwargs), lin.all_input_nodes.__repr__(), str(first.users)]
        lin.args, lin.kwargs = (first,), {}
        first.append(lin)
        told.append(attempt(g.lint))
        told.append(attempt(list.append, lin.args, 3) and None)
        traced.recompile()
        return [*told, traced.code, traced(torch.ones(2, 3)), attempt(operator.setitem,
                g.output_node().args[0], "o", 1), first.next.name]  # fmt: skip

    compare(scenario)


def test_submodules():
    def scenario(torch: Any) -> Any:
        traced = fx(torch).symbolic_trace(made(torch, "plain"))
        told = [traced.add_submodule("new.inner", torch.nn.ReLU()),
                traced.add_submodule("lin.weight.x", torch.nn.ReLU()),
                traced.delete_submodule("nothing.here"), traced.delete_submodule("lin.weight"),
                ]  # fmt: skip
        told.append(sorted(name for name, _ in traced.named_modules()))
        traced.delete_all_unused_submodules()
        told.append(sorted(name for name, _ in traced.named_modules()))
        held = {"a.b": torch.nn.Linear(2, 2), "w": torch.ones(2)}
        g = fx(torch).Graph()
        x = g.placeholder("x")
        g.output(g.call_function(operator.add, (g.call_module("a.b", (x,)), g.get_attr("w"))))
        told.append(fx(torch).GraphModule(held, g, "Made").code)
        told.append(attempt(fx(torch).GraphModule, {"w": 1}, g))
        return [*told, str(fx(torch).GraphModule(held, g, "Made"))]

    compare(scenario)


def test_refusals():
    def scenario(torch: Any) -> Any:
        trace = fx(torch).symbolic_trace
        programs = [
            lambda x: x if x.sum() > 0 else -x,
            lambda x: len(x),
            lambda x: [i for i in x],  # noqa: C416
            lambda x: int(x),
            lambda x: (*x,),
            lambda x: {**x},
            lambda x: x in [1, 2],
        ]
        told = [attempt(trace, program) for program in programs]
        told += [attempt(fx(torch).wrap, 3), attempt(fx(torch).wrap, "len")]
        told += [attempt(trace, 3), attempt(fx(torch).Graph().create_node, "bad", "x")]
        other = fx(torch).Graph()
        g = fx(torch).Graph()
        x, y = g.placeholder("x"), other.placeholder("y")
        told += [attempt(g.erase_node, y), attempt(x.prepend, y)]
        g.output(y)
        told.append(attempt(g.lint))
        return told

    compare(scenario)


def test_interpreter_and_transformer():
    def scenario(torch: Any) -> Any:
        F = fx(torch)
        traced = F.symbolic_trace(made(torch, "shapes"))
        seen: list[str] = []

        class Watching(F.Interpreter):
            def run_node(self, n: Any) -> Any:
                seen.append(f"{n.op} {n.name}")
                return super().run_node(n)

            def call_method(self, target: Any, args: Any, kwargs: Any) -> Any:
                result = super().call_method(target, args, kwargs)
                return result.neg() if target == "contiguous" else result

        class Changed(F.Transformer):
            def call_method(self, target: Any, args: Any, kwargs: Any) -> Any:
                result = super().call_method(target, args, kwargs)
                return result.neg() if target == "contiguous" else result

            def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
                target = operator.add if target is operator.mul else target
                return super().call_function(target, args, kwargs)

        x = torch.randn(2, 3)
        told = [Watching(traced).run(x), seen, Changed(traced).transform().code]
        told.append(attempt(F.Interpreter(traced).run).text.splitlines()[0])
        module = importlib.import_module(f"{F.__name__}.passes.shape_prop")
        module.ShapeProp(traced).propagate(x)
        for node in traced.graph.nodes:
            meta = node.meta.get("tensor_meta")
            if hasattr(meta, "_fields") and "shape" in meta._fields:
                told.append([tuple(meta.shape), str(meta.dtype), meta.requires_grad, meta.stride,
                             str(meta.memory_format), meta.is_quantized, meta.qparams])  # fmt: skip
            told.append(node.meta["type"].__name__)
        return told

    compare(scenario)


def patterns(torch: Any) -> list[tuple[Any, Any]]:
    return [
        (lambda a, b: torch.add(a, b), lambda a, b: torch.mul(a, b)),
        (lambda a: torch.relu(torch.neg(a)), lambda a: torch.sigmoid(a)),
        (lambda a, b: a.neg() + b, lambda a, b: torch.sub(b, a)),
        (lambda a: torch.neg(torch.neg(a)), lambda a: a),
        (lambda a: a.clamp(min=0), lambda a: torch.relu(a)),
        (lambda a: (torch.neg(a), torch.relu(a)), lambda a: (torch.relu(a), torch.neg(a))),
    ]


def subject(torch: Any, x: Any, y: Any) -> Any:
    z = torch.add(torch.relu(torch.neg(x)), y)
    w = torch.neg(torch.neg(torch.neg(z)))
    v = z.neg() + torch.add(w, torch.add(x, y))
    return v.clamp(min=0), v.clamp(min=1), torch.relu(z), z


@pytest.mark.parametrize("number", range(6))
def test_patterns(number: int):
    def scenario(torch: Any) -> Any:
        traced = fx(torch).symbolic_trace(lambda x, y: subject(torch, x, y))
        pattern, replacement = patterns(torch)[number]
        found = fx(torch).replace_pattern(traced, pattern, replacement)
        traced.graph.lint()
        x, y = torch.randn(3), torch.randn(3)
        return [len(found), sorted(match.anchor.name for match in found), list(traced(x, y))]

    compare(scenario)


def drawn_program(torch: Any, seed: int) -> Any:
    """A function of three inputs, drawn: operators, methods, items, containers."""
    draw = random.Random(seed)
    unary = ["neg", "relu", "sigmoid", "tanh", "abs", "t", "clone"]  # none that blows rounding up
    binary = [operator.add, operator.mul, operator.sub, torch.add, torch.mul, torch.maximum]

    def program(x: Any, y: Any, z: Any) -> Any:
        values = [x, y, z]
        for _ in range(draw.randrange(3, 15)):
            kind = draw.randrange(6)
            one, other = draw.choice(values), draw.choice(values)
            if kind == 0:
                made = getattr(one, draw.choice(unary))()
            elif kind == 1:
                made = getattr(torch, draw.choice(unary[:-2]))(one)
            elif kind == 2:
                made = draw.choice(binary)(one, other)
            elif kind == 3:
                made = one * draw.choice([2, 0.5, float("inf"), True])
            elif kind == 4:
                made = draw.choice([2, 3.5]) - one[..., draw.randrange(2) :]
                made = torch.sum(made) + other
            else:
                made = one.sum(dim=draw.randrange(2), keepdim=True) + other
            values.append(made)
        return draw.choice([values[-1], values[3:], {"a": values[-1], "b": (values[3],)}])

    return program


@pytest.mark.parametrize("number", range(30))
def test_drawn_programs(number: int):
    seed = generator("fx", number).randrange(2**32)

    def scenario(torch: Any) -> Any:
        traced = fx(torch).symbolic_trace(drawn_program(torch, seed))
        inputs = [torch.randn(3, 3) for _ in range(3)]
        return [shown(torch, traced)[:3], traced(*inputs), drawn_program(torch, seed)(*inputs)]

    compare(scenario)


def test_split_module():
    def scenario(torch: Any) -> Any:
        split = importlib.import_module(f"{fx(torch).__name__}.passes.split_module").split_module
        module = made(torch, "plain")
        traced = fx(torch).symbolic_trace(module)
        order = {node.name: i for i, node in enumerate(traced.graph.nodes)}
        paths: dict[str, str] = {}
        parts = split(traced, module, lambda node: order[node.name] // 9, paths)
        x = torch.randn(2, 3)
        return [paths, parts(x), sorted(name for name, _ in parts.named_children())]

    compare(scenario)
