"""The kinds of statements: computing, views and writes, modes, hooks, state, gradients."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from conformance.jit.generated import operators
from conformance.jit.generated.expressions import Refused
from flambeau.jit.ir import types as T

from . import memory
from .drawing import LIST, TRIES, Drawing, is_left_out
from .observing import BACKWARD
from .words import PACKS

SHAPES = ("(3,)", "(2, 3)", "(3,)", "(2, 3)", "(3, 3)", "()", "(1, 3)", "(3, 1)", "(4,)",
          "(2, 2, 3)", "(0,)", "(2, 1, 3)", "(1,)", "(4, 3)")  # fmt: skip
DTYPES = ("float64",) * 10 + ("complex128",) * 4 + (
    "float32", "int64", "bool", "float16", "bfloat16",
)  # fmt: skip
LAYOUTS = ("rows",) * 5 + ("transposed", "sliced", "expanded", "offset")
CONTEXTS = (
    "torch.no_grad()", "torch.no_grad()", "torch.enable_grad()", "torch.inference_mode()",
    "torch.set_grad_enabled(False)", "torch.autograd.detect_anomaly()",
    "torch.inference_mode(False)",
    "torch.autograd.graph.disable_saved_tensors_hooks('no hooks')",
    *(f"packed('{name}')" for name in PACKS), *(f"packed('{name}')" for name in PACKS),
)  # fmt: skip
UNARY = ("Cube", "Exp", "Once", "Silent", "Wrong", "Wide", "Same", "Flat", "Doubled", "Squared",
         "Cube", "Exp")  # fmt: skip
PAIRS = ("Pair", "Sparing", "Halves")
UNUSED = ("allow_unused=True",) * 3 + ("materialize_grads=True", "allow_unused=False")
OUT = ("mul", "add", "sub", "div", "maximum", "atan2", "pow")
OUT_UNARY = ("sin", "exp", "neg", "sigmoid", "cumsum_0", "relu_", "abs", "square")


class Statements:
    """Draws statements onto a program."""

    def __init__(self, program: Drawing) -> None:
        self.p = program
        self.kinds: list[tuple[Callable[[], str], float]] = [
            (self.make, 0.6), (self.compute, 8), (self.several, 1.5), (self.view, 4),
            (self.write, 5), (self.assign, 3), (self.out, 0.7), (self.custom, 1.6),
            (self.block, 3), (self.hook, 2.5), (self.state, 2.5), (self.backward, 1.5),
            (self.grads, 2.5), (self.forget, 0.7), (self.look, 0.8), (self.checkpoint, 0.6),
            (self.functional, 0.4), (self.thread, 0.3), (self.copied, 0.5), (self.edges, 0.4),
            (lambda: memory.storage(program), 1.0), (lambda: memory.group(program), 0.6),
        ]  # fmt: skip

    def statement(self) -> None:
        """Draw one that passes."""
        for _ in range(TRIES):
            make = self.p.random.choices(*zip(*self.kinds, strict=True))[0]
            try:
                if self.p.add(make()):
                    return
            except Refused:
                continue

    def inner(self) -> str:
        """A statement within another."""
        kinds = (self.compute, self.compute, self.view, self.write, self.assign, self.custom,
                 self.grads, self.backward, self.state, self.several)  # fmt: skip
        return self.p.random.choice(kinds)()

    # ---- computing

    def make(self) -> str:
        p = self.p
        shape = p.random.choice(SHAPES)
        dtype, layout = p.random.choice(DTYPES), p.random.choice(LAYOUTS)
        words = [str(p.random.randrange(100)), shape, repr(dtype), repr(layout)]
        text = f"{p.new_name('x')} = make({', '.join(words)})"
        floats = "float" in dtype or "complex" in dtype
        if floats and p.chance(0.75):
            return text + ".requires_grad_()"
        if floats and p.chance(0.2):
            name = text.partition(" ")[0]
            return f"{name} = torch.nn.Parameter({text.partition(' = ')[2]})"
        return text

    def compute(self) -> str:
        p = self.p
        found = p.expression(T.TENSOR, p.random.choice((1, 1, 2)))
        if found.text.isidentifier():
            raise Refused("nothing is computed")
        return f"{p.new_name()} = {found.text}"

    def several(self) -> str:
        """A call with several results."""
        p = self.p
        pool = _with_several_results()
        found = p.called(p.random.choice(pool), 1)
        if not 1 <= len(found.value) <= 4:
            raise Refused("too many")
        names = ", ".join(p.new_name() for _ in found.value)
        return f"{names}, = {found.text}"

    def view(self) -> str:
        p = self.p
        pool = [o for o in operators.views() if o.result == T.TENSOR and o.name != "unfold"]
        if p.chance(0.3):
            x = p.tensor(lambda value: value.numel() > 1)
            text = p.random.choice((
                "{}[1:]", "{}[:1]", "{}[0]", "{}[..., -1]", "{}[None]", "{}[::2]", "{}[...]",
                "{}.as_strided((2,), (1,))", "{}.as_strided((1, 2), (2, 1))", "{}.diagonal()",
                "torch.view_as_real({})", "{}.real", "{}.imag", "{}.T", "{}.mT", "{}.data",
                "{}.detach()", "{}.view_as({})", "torch.view_as_complex({})",
                "{}.unbind(0)[0]", "{}.split(1)[-1]", "{}.unfold(0, 1, 1)", "{}.expand(2, 3)",
                "{}.view(-1)", "{}.flatten()", "{}.reshape(-1)", "{}.positive()",
                "{}.conj()", "{}.conj()", "{}.conj().imag", "{}.conj().real", "{}.conj()[1:]",
                "{}.mH", "{}.resolve_conj()",
            ))  # fmt: skip
            if p.chance(0.1):
                x, text = (
                    p.floats(),
                    p.random.choice(("{}", "{}[:1]")).format("torch._neg_view({})"),
                )
            return f"{p.new_name()} = {text.format(x, x)}"
        found = p.called(p.random.choice(pool), 1)
        return f"{p.new_name()} = {found.text}"

    # ---- writes

    def write(self) -> str:
        p = self.p
        pool = [o for o in operators.writing() if o.name not in _READING]
        if p.chance(0.7):
            pool = [o for o in pool if o.name in _EVERYDAY]
        return p.drawn(p.random.choice(pool))

    def assign(self) -> str:
        p = self.p
        target, value = p.floats(), p.simple(T.TENSOR).text
        if p.chance(0.3):
            value = p.random.choice(("2.0", "0.5", "-1.0", f"{target} * 2", f"{target}.clone()"))
        form = p.random.choice((
            "{0} += {1}", "{0} *= {1}", "{0} -= {1}", "{0} /= {1}", "{0}[0] = {1}",
            "{0}[1:] = {1}", "{0}[{0} > 0] = {1}", "{0}[[0, 0]] = {1}", "{0}[...] = {1}",
            "{0}[:1] *= {1}", "{0}[1:] += {1}", "{0}[{0} > 0] *= 2.0", "{0}[0] = {0}[-1] * {1}",
            "{0}[:, 0] = {1}", "{0}[..., -1] = {1}", "{0}[torch.tensor([0, 1])] += {1}",
            "{0} **= 2", "{0}.copy_({1})", "{0}.T.mul_({1})", "{0}[None].add_({1})",
            "{0}.conj().mul_({1})", "{0}.conj()[0] = {1}", "{0}.conj().imag.add_(1)",
            "torch._neg_view({0}).copy_({1})", "{0}.view(-1)[:2].mul_({1})",
            "{0}.data.mul_(2)", "{0}.detach().mul_(2)",
        ))  # fmt: skip
        return form.format(target, value)

    def out(self) -> str:
        """Into a tensor of the right size: what came before memory is resized is nobody's."""
        p = self.p
        x, y = p.floats(), p.floats()
        name = p.random.choice(OUT_UNARY)
        word = {"cumsum_0": "cumsum({}, 0", "relu_": "clamp({}, 0"}.get(name, name + "({}")
        call = (
            f"torch.{p.random.choice(OUT)}({x}, {y}" if p.chance(0.5) else f"torch.{word.format(x)}"
        )
        shape = p.evaluated(f"{call})", T.TENSOR).value.shape
        apart = {p.env[x].untyped_storage().data_ptr(), p.env[y].untyped_storage().data_ptr()}
        target = p.tensor(lambda v: v.shape == shape and not _lies_in(v, apart))
        text = f"{call}, out={target})"
        return f"with torch.no_grad():\n    {text}" if p.chance(0.6) else text

    # ---- functions of a user's

    def custom(self) -> str:
        p = self.p
        form = p.random.randrange(6)
        if form == 0:
            return f"{p.new_name()} = Product.apply({p.floats()}, {p.floats()})"
        if form == 1:
            names = f"{p.new_name()}, {p.new_name()}"
            return f"{names} = {p.random.choice(PAIRS)}.apply({p.floats()})"
        if form == 2:
            names = f"{p.new_name()}, {p.new_name()}, {p.new_name()}"
            return f"{names} = Sorted.apply({p.floats()})"
        if form == 3:
            factor = p.random.choice(("2.0", "3", p.floats()))
            return f"{p.new_name()} = Later.apply({p.floats()}, {factor})"
        return f"{p.new_name()} = {p.random.choice(UNARY)}.apply({p.floats()})"

    def checkpoint(self) -> str:
        p = self.p
        x = p.learning()
        body = p.random.choice((
            "y.sin() * y", "y.exp().mul_(2)", "(y * y).tanh()", "Cube.apply(y)", "y * {}",
            "F.dropout(y * y, 0.5)", "y.clone().mul_(y)",
        )).format(p.floats())  # fmt: skip
        kind = p.random.choice(("False", "False", "True"))
        return (f"{p.new_name()} = torch.utils.checkpoint.checkpoint(lambda y: {body}, {x}, "
                f"use_reentrant={kind})")  # fmt: skip

    def functional(self) -> str:
        p = self.p
        x = p.tensor(lambda value: value.is_floating_point() and value.numel() > 0)
        body = p.random.choice((
            "y.sin()", "y ** 3", "y * {}", "(y * y).sum()", "y[:1] * y", "y.exp().sum()",
            "y.clone().mul_(y)",
        )).format(p.floats())  # fmt: skip
        create = p.random.choice(("", ", create_graph=True"))
        name = p.random.choice(("jacobian", "hessian", "vjp", "vhp", "hvp", "jvp"))
        given = "" if name in ("jacobian", "hessian") else f", torch.ones_like({x})"
        if name == "vhp":
            given = f", torch.ones_like({x})"
        several = name not in ("jacobian", "hessian")
        result = ", ".join(p.new_name("g") for _ in range(1 + several))
        return f"{result} = torch.autograd.functional.{name}(lambda y: {body}, {x}{given}{create})"

    # ---- modes

    def block(self) -> str:
        p = self.p
        context = p.random.choice(CONTEXTS)
        inner = "\n".join(self.inner() for _ in range(p.random.choice((1, 1, 2))))
        if "inference" in context and any(word in inner for word in (*BACKWARD, "dtype)")):
            raise Refused("gradients that are inference tensors")
        if inner.count("backward(") > 1:
            raise Refused("a gradient that is lent may be added to before anybody sees it")
        indented = "\n".join("    " + line for line in inner.splitlines())
        return f"with {context}:\n{indented}"

    # ---- hooks

    def hook(self) -> str:
        p = self.p
        name = p.new_name("h")
        tell = f"told('{name}')" if p.chance(0.6) else f"scaled('{name}', 2.0)"
        x = p.learning()
        y, z = p.result(), p.result()
        form = p.random.choice((
            f"{name} = {x}.register_hook({tell})", f"{name} = {x}.register_hook({tell})",
            f"{x}.retain_grad()", f"{x}.retain_grad()",
            f"{name} = {x}.grad_fn.register_hook(told('{name}'))",
            f"{name} = {x}.grad_fn.register_prehook({tell})",
            f"{name} = {x}.register_post_accumulate_grad_hook(told('{name}'))",
            f"{name} = torch.autograd.graph.register_multi_grad_hook(({y}, {z}), "
            f"lambda gs: note('{name}', [g is None for g in gs]))",
            f"{name} = torch.autograd.graph.register_multi_grad_hook(({y}, {z}), "
            f"told('{name}'), mode='any')",
        ))  # fmt: skip
        handles = [n for n in p.env if n.startswith("h") and n[1:].isdigit()]
        if handles and p.chance(0.12):
            return f"{p.random.choice(handles)}.remove()"
        return form

    # ---- state

    def state(self) -> str:
        p = self.p
        x = p.tensor()
        form = p.random.choice((
            "{0}.requires_grad_()", "{0}.requires_grad_(False)", "{0}.detach_()",
            "{1} = {0}.detach()", "{1} = {0}.detach().requires_grad_()", "{0}.grad = None",
            "{2}.grad.zero_()", "{2}.grad.mul_(2)", "{1} = {2}.grad", "{2}.grad = {0}",
            "{0}.data = {4}.data", "{0}.data = {4}.clone()", "{1} = {0}.clone()",
            "{0}.requires_grad = True", "{1} = {0}.data", "{0}.zero_()", "{5}.set_({3})",
            "{1} = torch.nn.Parameter({0})", "{2}.grad = torch.ones_like({2})",
            "{2}.grad.detach_()", "{1} = {2}.grad[:1]", "{1} = {2}.grad * {0}",
            "{0}.detach().resize_(0)",
        ))  # fmt: skip
        leaf = p.leaf() if "{2}" in form else ""
        shape = p.env[x].shape
        alike = p.tensor(lambda value: value.shape == shape) if "{4}" in form else ""
        whole = p.tensor(lambda value: not value._is_view()) if "{5}" in form else ""
        return form.format(x, p.new_name(), leaf, p.floats(), alike, whole)

    def copied(self) -> str:
        p = self.p
        form = p.random.choice((
            "copy.deepcopy({})", "copy.copy({})", "pickled({})", "{}.to(torch.float32)",
            "{}.contiguous()", "{}.clone()",
        ))  # fmt: skip
        return f"{p.new_name()} = {form.format(p.tensor())}"

    def forget(self) -> str:
        names = self.p.names_of(T.TENSOR)
        if len(names) < 4:
            raise Refused("few names")
        return f"del {self.p.random.choice(names)}"

    def look(self) -> str:
        p = self.p
        x = p.tensor()
        form = p.random.choice((
            "note({0}.is_leaf, {0}.requires_grad)", "note({0}.retains_grad)",
            "note({0}.grad_fn is None)", "note(sorted({0}.grad_fn.metadata))",
            "note({0}.is_inference())",
        ))  # fmt: skip
        return form.format(x)

    # ---- gradients

    def grads(self, most: int = 3) -> str:
        """Gradients as new variables."""
        p = self.p
        end, ends = p.learning(), ""
        value = p.env[end]
        inputs = [p.learning() for _ in range(p.random.choice((1, 1, 2, 3)))]
        inputs = list(dict.fromkeys(inputs)) if p.chance(0.95) else inputs
        words = []
        if value.numel() != 1 or p.chance(0.2):
            if p.chance(0.5) and not value.is_complex():
                end += p.random.choice((".sum()", ".pow(2).sum()", ".sin().sum()", ".mean()"))
            else:
                ends = p.random.choice((f"torch.ones_like({end})", f"{end}.detach()", end,
                                        f"torch.ones_like({end}, requires_grad=True)"))  # fmt: skip
                words.append(ends)
        create = p.random.choice(("True", "True", "False"))
        words.append(f"create_graph={create}")
        if p.chance(0.2):
            words.append("retain_graph=" + p.random.choice(("True", "False")))
        words.append(p.random.choice(UNUSED))
        names = ", ".join(p.new_name("g") for _ in inputs)
        return f"{names}, = torch.autograd.grad({end}, [{', '.join(inputs)}], {', '.join(words)})"

    def backward(self) -> str:
        p = self.p
        end = p.learning()
        value = p.env[end]
        words = []
        if value.numel() != 1 or value.is_complex():
            if p.chance(0.6) and not value.is_complex():
                end += p.random.choice((".sum()", ".pow(2).sum()", ".sin().sum()"))
            else:
                words.append(p.random.choice((f"torch.ones_like({end})", f"{end}.detach()", end)))
        if p.chance(0.6):
            words.append("retain_graph=True")
        if p.chance(0.25):
            words.append("create_graph=True")
        if p.chance(0.15):
            words.append(f"inputs=[{p.learning()}]")
        return f"{end}.backward({', '.join(words)})"

    def thread(self) -> str:
        p = self.p
        if p.chance(0.5):
            x, y = p.learning(), p.learning()
            return (f"threads(lambda: {x}.sum().backward(retain_graph=True), "
                    f"lambda: {y}.sum().backward(retain_graph=True))")  # fmt: skip
        x = p.floats()
        return f"threads(lambda: {x}.mul_(2), lambda: note({x}.requires_grad))"

    def edges(self) -> str:
        p = self.p
        x, y = p.learning(), p.learning()
        form = p.random.choice((
            "{n}, = torch.autograd.grad({x}.sum(), torch.autograd.graph.get_gradient_edge({y}), "
            "allow_unused=True)",
            "{n}, = torch.autograd.grad(torch.autograd.graph.get_gradient_edge({x}), {y}, "
            "torch.ones_like({x}), allow_unused=True)",
            "note(torch.autograd.graph.get_gradient_edge({x}).output_nr)",
            "{x}.sum().backward(inputs=[torch.autograd.graph.get_gradient_edge({y})], "
            "retain_graph=True)",
        ))  # fmt: skip
        return form.format(n=p.new_name("g"), x=x, y=y)


_READING = frozenset("addmm_ addmv_ addbmm_ baddbmm_ addr_ conj_physical_ tril_ triu_".split())
"""What PyTorch computes while it writes, so that targets among the operands come out somehow; and
what it writes to memory that repeats."""
_EVERYDAY = frozenset(
    """add_ mul_ sub_ div_ copy_ clamp_ masked_fill_ tanh_ relu_ sigmoid_ exp_ sin_ cos_ pow_ sqrt_
    zero_ fill_ addcmul_ addcdiv_ neg_ abs_ lerp_ index_fill_ index_add_ index_copy_ scatter_
    scatter_add_ masked_scatter_ cumsum_ cumprod_ tril_ triu_ square_ reciprocal_ log1p_ expm1_
    t_ transpose_ squeeze_ unsqueeze_ swapaxes_ detach_ index_put_ put_ threshold_ leaky_relu_ elu_
    clamp_min_ clamp_max_ floor_ round_ atan2_ hypot_ xlogy_ addmm_ baddbmm_ addmv_ addr_
    fill_diagonal_ renorm_ normal_ uniform_ bernoulli_ nan_to_num_ remainder_ fmod_""".split()
)


def _lies_in(value: Any, memories: set[int]) -> bool:
    return value.untyped_storage().data_ptr() in memories


@cache
def _with_several_results() -> list[operators.Operator]:
    found = [o for o in operators.catalogue() if _several(o) and not o.writes]
    return [operator for operator in found if not is_left_out(operator)]


def _several(operator: operators.Operator) -> bool:
    kind = operator.result
    if isinstance(kind, T.TupleType):
        return all(inner == T.TENSOR for inner in kind.elements)
    return bool(kind == LIST)
