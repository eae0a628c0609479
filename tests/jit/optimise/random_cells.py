"""Programs with a loop over time at random, and how two forms of one are compared.

The grammar knows nothing of what the optimiser can do: states change their shape, are handed on,
alias each other and the arguments; what is collected, joined, returned, written to and given
gradients is drawn for each program and each call.
"""

from __future__ import annotations

import linecache
from random import Random

import numpy as np

import flambeau
from flambeau.jit.optimise import optimise
from flambeau.jit.optimise.recurrences import RecurrentLoop
from flambeau.jit.run.program import graph_callable

# ruff: noqa: ANN001, ANN201, ANN202, ANN204, S102

MATRIX_TERMS = (
    "x[t]", "{0}", "{0}", "{0} @ a", "({0} * {1}) @ b + p", "torch.tanh({0})", "{0} - p * {1}",
    "torch.sigmoid({0}) * {1}", "torch.relu({0}) + s",
    "torch.where({0} > {1} - 0.137, {0}, {1} * 0.5)", "torch.cat([{0}, {1}], 1)[:, 2:2 + n]",
    "torch.maximum({0}, s * {1} + 0.137)", "torch.tanh(x[t])", "(x[t] @ w + {0} @ u)[:, n:2 * n]",
    "torch.addmm(p, {0}, a)", "{0} / (1 + {1} * {1})",
    "torch.cat([{0}.chunk(2, 1)[0] ** 2, {1}[:, 2:]], 1)", "torch.mm({0}, b.t())", "{0}.detach()",
    "torch.tanh(x[t] + {0} @ a)", "torch.nn.functional.linear({0}, a, p)",
    "torch.nn.functional.linear({0}, b)", "{0} * q", "h0 * 1", "torch.where(m[t], {0}, {1})",
    "{0}.masked_fill(m[t], 0.5)", "torch.tanh(c0)", "{0} + q.t()", "x[t] * {0}",
    "(x[t] @ w)[:, :n]", "torch.lerp({0}, {1}, 0.25)", "{0} * k", "torch.exp(-{0})",
    "torch.sqrt({0} * {0})", "({0} @ u)[:, n - 2:n - 1] * {1}", "{0} @ u[:, 3:3 + n]", "q + {0}",
    "x[t] + ({0} @ u)[:, n:2 * n] * ({0} @ u)[:, n:n + 1]", "{0} * 1", "torch.matmul({0}, a.t())",
    "torch.split({0}, 1, 1)[1] + {1}", "{0}.clone()", "x[0] + {0}", "{0}.view(-1, n)",
    "{0}.t().t()", "torch.clamp({0}, -0.5, 0.5)", "{0}.sum(0, keepdim=True) + {1}",
    "{0}.contiguous()", "torch.softmax({0}, 1)", "{0}.mean() + {1}",
    "torch.stack([{0}, {1}], 0)[1]", "{0}[:, :n]", "torch.where({0} > 0, {0}, {1}) * m[t]",
    "({0} > {1} - 0.137) * {0}", "x[t].expand(rows, n) + {0}",
)  # fmt: skip
VECTOR_TERMS = (
    "x[t]", "{0}", "{0} @ a", "b @ {0} + p", "torch.tanh({0})", "{0} - p * {1}", "torch.mv(a, {0})",
    "torch.sigmoid({0}) * {1}", "torch.where({0} > {1} - 0.137, {0}, s * {1})",
    "torch.matmul(a, {0})", "torch.cat([{0}, {1}])[2:2 + n]", "(x[t] @ w + {0} @ u)[n:2 * n]",
    "torch.nn.functional.linear({0}, a, p)", "torch.tanh(x[t])", "x[t] * {0}", "{0}.detach()",
    "{0} * q", "torch.tanh(c0)", "{0} * 1", "torch.tanh(x[t] + {0} @ a)", "{0} / (1 + {1} * {1})",
    "torch.where(m[t], {0}, {1})", "torch.cat([{0} @ a + x[t], {1}]).chunk(2, 0)[1]",
    "{0} + 0 * torch.dot({0}, {1})", "torch.addmv(p, a, {0})",
)  # fmt: skip
ODD_TERMS = (
    "torch.tanh(({0} @ u)[:, :2 * n][:, n - 1:2 * n - 1])", "{0}[:1] + {1}", "{0}[:1]", "{0}.sum()",
    "({0} @ u).split([1, n, 3 * n - 1], 1)[1] * ({0} @ u)[:, 1:2]", "{0}.double() * {1}", "-{0}",
    "{0}.float() + {1}", "h0[:, :1] * {0}", "torch.cat([{0}, {1}], 1)", "({0} > 0.137) * 1.0",
    "torch.where({0} > 0, 1.0, {1})", "torch.log({0})", "torch.relu({0}).sqrt()", "{0} / {1}",
    "{0}.pow(2)", "torch.where(m[t], {0}, torch.zeros_like({0}))", "x[t, :, :1] * {0}", "{0} ** k",
    "x[t][:1] + {0}", "x[x.size(0) - 1 - t].contiguous() + {0}", "x[t].sum(0) + {0}", "{0} * t",
    "{0}.abs()", "{0} * (t + 1.5)", "torch.add({0}, {1}, alpha=2)", "{0}.unsqueeze(0).squeeze(0)",
    "x[t - 1].contiguous()", "torch.bmm({0}.unsqueeze(0), a.unsqueeze(0))[0]",
    "{0} @ {1}.t() @ {1}", "{0}.abs().sqrt()", "torch.tanh({0} @ a) @ b",
    "torch.addmm(c0, {0}, a, beta=0.5)", "{0} @ (a + p)", "{0} * r", "torch.mm(a.t(), {0}.t()).t()",
    "{0}.expand(rows, n)", "({0} @ a) * s + {0}", "x[t].sqrt()", "torch.zeros_like({0})",
    "{0}.new_zeros([rows, n])", "{0} * 0.0", "torch.relu(x[t]).sqrt()",
    "torch.ones([rows, n], dtype={0}.dtype) * {0}", "{0}.detach() * {1}", "(s * k) * {0}",
    "m[t] * p", "x.mean(0) + {0}", "torch.minimum({0}, {1} + 0.137)", "torch.abs({0}) ** 0.5",
    "x[t].exp() * w[0, 0]",
)  # fmt: skip
NAMES = ("h", "c", "d", "v")
STARTS = ("{0}", "{0} * {1}", "{0} - {1}", "torch.zeros_like({0})", "{0}", "{0} * 0.5",
          "torch.ones_like({0})", "{0}.detach()", "torch.tanh({0})")  # fmt: skip
JOINS = ("torch.stack({0})", "torch.stack({0}, 1)", "torch.cat({0})", "torch.stack({0}, -1)",
         "torch.stack({0})")  # fmt: skip
LOOPS = ("for t in range(x.size(0)):", "for t in range(r):", "for t in range(len(x)):")
ORDER = ("x", "h", "c", "w", "u", "p", "q", "s", "m")


def loaded(text: str, library=flambeau):
    """The function `cell` of a text, in which `torch` is a library."""
    name = f"<cell {id(text)} {library.__name__}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    scope = {"__name__": "cell", "torch": library}
    exec(compile(text, name, "exec"), scope)
    return scope["cell"]


def forms_of(function):
    """A function as it stands, and optimised; None in the place of that where no loop in it has
    states from round to round that are used.
    """
    graph = flambeau.jit.script(function)._function.graph.copy()
    plain = graph_callable(graph.copy())
    optimise(graph)
    calls = [node.attributes.get("function") for node in graph.walk()]
    recurs = any(isinstance(call, RecurrentLoop) for call in calls)
    return plain, graph_callable(graph) if recurs else None


class Program:
    """A random program. `text` is the whole of it."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.rank = random.choice((2, 2, 2, 1))
        self.oddness = random.choice((0.0, 0.1, 0.3)) if self.rank == 2 else 0.0
        self.text = self._text()
        self.function = loaded(self.text)

    def _line(self, indent: str) -> str:
        pick = self.random.choice
        terms = MATRIX_TERMS if self.rank == 2 else VECTOR_TERMS
        terms = ODD_TERMS if self.random.random() < self.oddness else terms
        term = pick(terms).format(pick(NAMES), pick(NAMES))
        if self.random.random() < 0.2:
            term = f"torch.tanh({term})"
        return f"{indent}{pick(NAMES)} = {term}"

    def _text(self) -> str:
        random, pick = self.random, self.random.choice
        head = ["def cell(x, h, c, w, u, p, q, s, m, r: int, k: float):",
                "    n = h.size(-1)", "    rows = h.size(0)", "    h0, c0 = h, c",
                "    a, b = u[:, :n], u[:, n:2 * n]",
                f"    d = {pick(STARTS).format('h', 'c')}",
                f"    v = {pick(STARTS).format('c', 'h')}",
                "    out, outs = [], []", f"    {pick(LOOPS)}"]  # fmt: skip
        lines = [self._line("        ") for _ in range(random.randint(1, 6))]
        lines += [f"        {name} = torch.tanh({name})" for name in NAMES
                  if random.random() < 0.3]  # fmt: skip
        if random.random() < 0.05:
            condition = f"if bool({pick(NAMES)}.sum() > {pick((0.5, 1e9))}):"
            lines.insert(random.randint(0, len(lines)), f"        {condition}\n            break")
        results = [name for name in NAMES if random.random() < 0.6]
        lists = random.choice(((), ("out",), ("out",), ("out", "outs")))
        for name in lists:
            term = pick((*NAMES, *NAMES, "h * 2", "x[t]", "torch.tanh(c)", "x[t] @ w"))
            lines.insert(random.randint(0, len(lines)), f"        {name}.append({term})")
            results += [pick(JOINS).format(name) for _ in range(pick((1, 1, 2)))]
        if not results or random.random() < 0.1:
            results.append(pick(NAMES))
        random.shuffle(results)
        return "\n".join([*head, *lines, f"    return [{', '.join(results)}]", ""])


class Arguments:
    """The arguments of a call, made anew for each form of a program, of any library."""

    def __init__(self, random: Random, rank: int, rounds: int, rows: int, width: int, dtype: str,
                 learning: set[str]) -> None:  # fmt: skip
        self.seed = random.randint(0, 10**6)
        self.dtype = dtype
        self.learning = learning
        batch = (rows,) if rank == 2 else ()
        narrow = width if self.seed % 2 else 1
        self.shapes = [(rounds, *batch, width), (*batch, width), (*batch, width),
                       (width, 4 * width), (width, 4 * width), (width,), (*batch[:1], 1), (),
                       (rounds, *batch, narrow)]  # fmt: skip
        self.numbers = (max(0, rounds - random.choice((0, 0, 1))),
                        random.choice((0.5, -0.0, 0.0, 1.0, float("nan"), 2.0)))  # fmt: skip

    def __call__(self, library=flambeau, scale: float = 1.0):
        """The tensors, in the order of `ORDER`."""
        drawn = np.random.default_rng(self.seed)
        arrays = [drawn.standard_normal(shape) * scale for shape in self.shapes]
        arrays[3] *= 0.4
        arrays[4] *= 0.4
        tensors = [library.tensor(array.tolist(), dtype=getattr(library, self.dtype)).reshape(shape)
                   for array, shape in zip(arrays[:-1], self.shapes, strict=False)]  # fmt: skip
        tensors.append(library.tensor((arrays[-1] > 0).tolist(), dtype=library.bool)
                       .reshape(self.shapes[-1]))  # fmt: skip
        if self.seed % 5 == 0:
            tensors[1] = (tensors[5] * 0).expand(self.shapes[1])
        if self.seed % 7 == 0:
            tensors[0] = tensors[0].transpose(0, -1).contiguous().transpose(0, -1)
        if self.seed % 13 == 0:
            tensors[2] = tensors[1]
        if self.seed % 11 == 0:
            tensors[4] = tensors[4].t().contiguous().t()
        return [t.requires_grad_() if name in self.learning and t.is_leaf else t
                for name, t in zip(ORDER, tensors, strict=True)]  # fmt: skip


class Outcome:
    """What a call gives: an error, or tensors and what is seen of them."""

    def __init__(self, function, arguments, plan, library=flambeau, scale: float = 1.0) -> None:
        self.library = library
        self.seen: list = []
        self.tensors: list = []
        self.error: Exception | None = None
        inputs = arguments(library, scale)
        try:
            self._run(function, inputs, arguments.numbers, plan)
        except (RuntimeError, ValueError, IndexError, TypeError) as error:
            self.seen.append(("raises", type(error).__name__, "modified by an" in str(error)))
            self.error = error

    def _run(self, function, inputs, numbers, plan) -> None:
        results = list(function(*inputs, *numbers))
        self.tensors += results
        self.seen.append([describe(result) for result in results])
        self.seen.append(sharing([*results, *inputs]))
        if plan["write"] is not None:
            self._write([*results, *inputs], plan["write"])
            self.tensors += [t.detach().clone() for t in [*results, *inputs]]
        self._differentiate(results, inputs, plan)
        if plan["late"]:
            self._write(results, (plan["late"], False))
            self.tensors += [t.detach().clone() for t in [*results, *inputs]]

    def _write(self, tensors, place) -> None:
        number, recorded = place
        target = tensors[number % len(tensors)]
        if target.dtype == self.library.bool:
            return
        with self.library.set_grad_enabled(recorded):
            target.mul_(2)
        self.seen.append(("written", target._version))

    def _differentiate(self, results, inputs, plan) -> None:
        learning = [r for r in results if r.requires_grad]
        given = [r for k, r in enumerate(learning) if plan["given"] >> k & 1] or learning
        wanted = [t for t in inputs if t.requires_grad]
        if not given or not wanted:
            return
        drawn = np.random.default_rng(plan["seed"])
        slopes = [self._like(r, drawn) for r in given]
        again = plan["again"]
        grad = self.library.autograd.grad
        found = grad(given, wanted, slopes, allow_unused=True, create_graph=again,
                     retain_graph=True)  # fmt: skip
        self._gradients(found)
        if again:
            learning = [g for g in found if g is not None and g.requires_grad]
            if learning:
                total = sum((g * self._like(g, drawn)).sum() for g in learning)
                self._gradients(grad(total, wanted, allow_unused=True))

    def _like(self, tensor, drawn):
        array = drawn.standard_normal(tuple(tensor.shape))
        return self.library.tensor(array.tolist(), dtype=tensor.dtype).reshape(tensor.shape)

    def _gradients(self, found) -> None:
        self.seen.append([None if g is None else (kind_of(g), tuple(g.shape), g.requires_grad)
                          for g in found])  # fmt: skip
        self.tensors += [g for g in found if g is not None]


def describe(tensor):
    """What a program can ask of a tensor, its values apart. Strides of dims of size 1 are left
    out: they mean nothing.
    """
    strides = [s if n > 1 else 0 for s, n in zip(tensor.stride(), tensor.shape, strict=True)]
    return (kind_of(tensor), tuple(tensor.shape), tuple(strides), tensor.requires_grad,
            tensor.is_leaf, tensor._base is None, tensor._version)  # fmt: skip


def kind_of(tensor) -> str:
    """`float32`, whatever library it is of."""
    return str(tensor.dtype).rpartition(".")[2]


def sharing(tensors):
    """Which of some tensors are one object, and which share memory."""
    pairs = []
    for k, one in enumerate(tensors):
        for j in range(k):
            other = tensors[j]
            if one is other:
                pairs.append((k, j, "same"))
            elif one.numel() and one.untyped_storage().data_ptr() == (
                other.untyped_storage().data_ptr()
            ):
                pairs.append((k, j, "memory"))
    return pairs


def assert_outcomes_agree(got: Outcome, expected: Outcome, dtype: str) -> None:
    """All that was seen is the same; numbers but for rounding."""
    assert got.seen == expected.seen
    assert_numbers_agree(got, expected, dtype)


def assert_numbers_agree(got: Outcome, expected: Outcome, dtype: str) -> None:
    """All numbers are the same but for rounding."""
    assert len(got.tensors) == len(expected.tensors)
    rtol, atol = (2e-3, 1e-3) if dtype == "float32" else (1e-6, 1e-7)
    for ours, theirs in zip(got.tensors, expected.tensors, strict=True):
        np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol, atol)


def is_settled(function, arguments, plan, expected: Outcome) -> bool:
    """Whether other rounding leaves the numbers as they are: what compares two values that are the
    same but for rounding, or grows beyond bounds, tells nothing.
    """
    step = 1e-6 if arguments.dtype == "float32" else 1e-14
    moved = Outcome(function, arguments, plan, expected.library, 1 + step)
    try:
        assert_numbers_agree(moved, expected, arguments.dtype)
    except AssertionError:
        return False
    return True


def draw_plan(random: Random):
    """Which results are given gradients, what is written before that, and whether twice."""
    write = (random.randint(0, 20), random.random() < 0.3) if random.random() < 0.4 else None
    return {"write": write, "given": random.randint(1, 31), "seed": random.randint(0, 10**6),
            "again": random.random() < 0.25, "late": random.choice((0, 0, 1, 2))}  # fmt: skip


def draw_calls(random: Random, rank: int, count: int):
    """Arguments and plans of some calls; often, they are alike."""
    width = random.choice((4, 5, 8, 16))
    rounds, rows = random.choice((0, 1, 2, 2, 3, 4, 5, 7)), random.choice((1, 2, 3, 5))
    dtype = random.choice(("float32", "float64", "float64"))
    learning = {name for name in ORDER[:-1] if random.random() < 0.5}
    for _ in range(count):
        if random.random() < 0.3:
            rounds = random.choice((0, 1, 2, 3, 4, 6))
        if random.random() < 0.2:
            rows = random.choice((1, 2, 3, 6))
        if random.random() < 0.3:
            learning = {name for name in ORDER[:-1] if random.random() < 0.5}
        yield Arguments(random, rank, rounds, rows, width, dtype, learning)
