"""Plans of row formulas as kernels, in two forms.

`along_text`: the lanes of a vector are neighbours in the row. Rows lie anywhere, and may consist of
segments that are a fixed way apart (a channel of a batch of images).

`across_text`: the lanes are neighbouring rows, `inner` of which lie side by side, and the places of
a row are a fixed way apart (a sum over columns of a matrix).

Constants of the kernels: A, the type to compute in; WIDE, the type that sums end in; W, lanes;
T_x, the type of x in memory; OUT0, that of result 0; LOW and HIGH, what is below and above all
numbers of A; STREAM, whether results go past the caches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from flambeau._compiler.fuse import EXPENSIVE, Node, Plan
from flambeau._compiler.kernel_source import ASKS, SAME, constant

ROUNDS = 64
"""Additions to a lane in A before all lanes are added to a sum in WIDE: what is lost to rounding
depends neither on the length of a row nor on the width of vectors."""
AHEAD = 8192
"""Bytes that a first pass asks for in advance; by itself a core looks no further than a page, and
reads memory at two thirds of the speed (benchmarks/RESULTS.md)."""
FAR = 1 << 25
"""Bytes of an array from which on it does so: what lies in a cache comes faster unasked."""
FIRST = {"total": "A(0)", "product": "A(1)", "amax": "A(LOW)", "amin": "A(HIGH)",
         "first": "i32(NOWHERE)"}  # fmt: skip
QUICK = {"amax": "larger({1}, {0})", "amin": "smaller({1}, {0})"}
"""One instruction each; they pass over nan, which is looked for beside them."""
JOIN = {"total": "{0} + {1}", "product": "{0} * {1}", "amax": "maximum({1}, {0})",
        "amin": "minimum({1}, {0})", "first": "smaller({0}, {1})"}  # fmt: skip
WORD = {"product": "multiply", "amax": "larger", "amin": "smaller", "first": "smaller"}


def form_of(op: str) -> str:
    """The text of a primitive; {0}, {1}, {2} are its operands."""
    if op == "where":
        return "select({0}, {1}, {2})"
    for table in (SAME, ASKS):
        if op in table:
            return next(iter(table[op].values())).replace("{T}", "A")
    return f"math_{op}({{0}})"


def functions_of(plan: Plan) -> set[str]:
    """The functions of `vector_math` that the kernels of a plan call."""
    called = {n.op for n in plan.nodes.values() if form_of(n.op).startswith("math_")}
    return called - {"parameter", "length", "position", "down", *JOIN}


class Writer:
    """Lines that grow, indented. `sizes` are those of the work, `steps` the strides of all arrays
    with an element for every place."""

    steps: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.lines: list[str] = []
        self.depth = 1
        self.count = 0
        self.values: dict[Node, str] = {}

    def line(self, text: str) -> None:
        """One line."""
        self.lines.append("    " * self.depth + text)

    def block(self, head: str) -> Writer:
        """A line that opens a block: `with self.block("for ...:")`."""
        self.line(head)
        return self

    def __enter__(self) -> None:
        self.depth += 1

    def __exit__(self, *exc: object) -> None:
        self.depth -= 1

    def name(self) -> str:
        """A new name."""
        self.count += 1
        return f"v{self.count}"

    def kind(self, node: Node) -> str:
        """What a leaf is: the kind of a parameter, "length" or "position"; else ""."""
        if node.op == "parameter":
            return self.plan.kinds[node.name]
        return node.op if node.op in ("length", "position") else ""

    def at_place(self, node: Node, texts: Mapping[str, str]) -> str | None:
        """The text of a leaf at one place of a row: `texts` has those of its kinds. None for what
        is computed there."""
        kind = self.kind(node)
        if kind in texts:
            return texts[kind]
        if kind in ("number", "length"):
            return node.name
        return None if node.varies else self.of_row(node)

    def of_row(self, node: Node) -> str:
        """The text of what is the same for a whole row, and known."""
        return self.values[node]

    def named(self, kind: str) -> list[str]:
        """The parameters of a kind."""
        return [name for name, found in self.plan.kinds.items() if found == kind]

    def full_names(self) -> list[str]:
        """Parameters and results with an element for every place."""
        results = enumerate(self.plan.results)
        return self.named("full") + [f"out{k}" for k, n in results if n.varies and n.op != "down"]

    def given_and_results(self) -> tuple[list[str], list[str]]:
        """The parameters of the formula and of its results; the constants that say their types."""
        found, statics = [], []
        for name, kind in self.plan.kinds.items():
            found.append(f"{name}: A" if kind == "number" else f"{name}: pointer(T_{name})")
            statics += [] if kind == "number" else [f"T_{name}"]
        for k in range(len(self.plan.results)):
            found.append(f"out{k}: pointer(OUT{k})")
            statics.append(f"OUT{k}")
        return found, statics

    def signature(self) -> str:
        """Parameters in the order of the formula's; results; sizes; constants."""
        found, statics = self.given_and_results()
        found += ["keep: pointer(A)"] if self.plan.kept else []
        found += ["period: i64"] if self.named("segment") else []
        found += [f"{name}: i64" for name in (*self.sizes, *self.steps, "task", "tasks")]
        statics += ["A", "WIDE", "W", "LOW", "HIGH", "STREAM"]
        return ", ".join(found + [f"{name}: static" for name in statics])


class Body:
    """The lines that compute nodes at one place; `leaf` gives the text of what is not computed."""

    def __init__(self, writer: Writer, leaf: Callable[[Node], str | None]) -> None:
        self.writer = writer
        self.leaf = leaf
        self.known: dict[Node, str] = {}

    def term(self, node: Any) -> str:
        """The name or number that holds a node's value."""
        if not isinstance(node, Node):
            return constant(node).text
        if node in self.known:
            return self.known[node]
        text = self.leaf(node)
        if text is None:
            operands = [self.operand(node, k) for k in range(len(node.args))]
            text = form_of(node.op).format(*operands)
        if not text.isidentifier():
            name = self.writer.name()
            self.writer.line(f"{name} = {text}")
            text = name
        self.known[node] = text
        return text

    def operand(self, node: Node, position: int) -> str:
        """The text of an operand; numbers that are chosen from need a type."""
        text = self.term(node.args[position])
        if node.op == "where" and not isinstance(node.args[position], Node):
            return f"A({text})"
        return text


def is_expensive(plan: Plan, stage: int) -> bool:
    """Whether a pass computes what takes far more time than its memory."""
    return any(n.op in EXPENSIVE and not plan.is_loaded(n, stage) for n in plan.needed(stage))


def unrolled(plan: Plan, stage: int) -> int:
    """How many vectors a round of a pass takes; expensive ones overlap without it."""
    if is_expensive(plan, stage):
        return 1
    return 4 if len(plan.needed(stage)) <= 3 else 2


# ---- lanes along the row


class AlongWriter(Writer):
    """The kernel of a plan with lanes along the row."""

    steps = ("row_step", "segment_step")
    sizes = ("rows", "segments", "n")

    def write(self) -> str:
        """The text of the kernel `along`."""
        plan = self.plan
        self.line("length = A(segments * n)")
        if plan.kept:
            self.line(f"keep_at = keep + task * (segments * n) * {len(plan.kept)}")
        for k, node in enumerate(plan.results):
            if node.op == "down":
                self.line(f"out{k}_sum = out{k} + task * (segments * n)")
                self.line(f"zero_memory(out{k}_sum, segments * n)")
        for name in self.read_ahead(0):
            far = f"{AHEAD} // T_{name}.size"
            far_off = f"(rows * n >= {FAR} // T_{name}.size)"
            whole = f"(segments == 1) & (row_step == n) & {far_off}"
            self.line(f"{name}_ahead = select({whole}, i64({far}), 0)")
        with self.block("for row in range(rows * task // tasks, rows * (task + 1) // tasks):"):
            for name in self.full_names():
                self.line(f"{name}_at = {name} + row * row_step")
            self.values = {}
            last = max(node.stage for node in plan.nodes.values())
            for stage in range(last + 1):
                self.constants(stage)
                if stage in plan.passes:
                    self.one_pass(stage)
        return f"def along({self.signature()}):\n" + "\n".join(self.lines) + "\n"

    def constants(self, stage: int) -> None:
        """What is the same for the whole row and known now."""
        body = Body(self, self.constant_leaf)
        body.known.update(self.values)
        for node in self.plan.constants(stage):
            self.values[node] = body.term(node)
        for k, node in self.plan.of_rows(stage):
            value = f"sum{node.number}" if node.op == "total" else self.values[node]
            self.line(f"out{k}[row] = OUT{k}({value})")

    def constant_leaf(self, node: Node) -> str | None:
        """A parameter of the row, a number, or the result of a reduction."""
        kind = self.kind(node)
        if kind == "row":
            return f"A({node.name}[row])"
        if kind == "index":
            return f"i32({node.name}[row])"
        if kind in ("number", "length"):
            return node.name
        if node.op == "total":
            return f"A(sum{node.number})"
        return f"found{node.number}" if node.op in JOIN else None

    def one_pass(self, stage: int) -> None:
        """The loops of a pass: over segments, chunks, vectors; then what is left of a segment."""
        several = unrolled(self.plan, stage)
        reductions = self.plan.reductions(stage)
        totals = [r for r in reductions if r.op == "total"]
        self.start(reductions, several)
        if totals:
            self.line(f"pending{stage} = 0")
        whole = f"whole{stage}"
        self.line(f"{whole} = n // ({several} * W) * ({several} * W)")
        chunk = f"{ROUNDS * several} * W"
        with self.block("for s in range(segments):"):
            self.segment_start(stage)
            if totals:
                with self.block(f"for begin in range(0, {whole}, {chunk}):"):
                    self.line(f"end = smaller(begin + {chunk}, {whole})")
                    self.vectors(stage, several, "begin", "end")
                    self.added(stage, f"(end - begin) // ({several} * W)", totals, several)
            else:
                self.vectors(stage, several, "0", whole)
            self.rest(stage, whole)
            if totals:
                self.added(stage, f"(n - {whole} + W - 1) // W", totals, several)
        if totals:
            self.flush(totals, several)
        self.finish(reductions, several)

    def start(self, reductions: list[Node], several: int) -> None:
        """Accumulators of a pass."""
        for r in reductions:
            type = "i32" if r.op == "first" else "A"
            self.line(f"r{r.number} = registers(vector({type}, W), {several}, {FIRST[r.op]})")
            if r.op in QUICK:
                self.line(f"seen{r.number} = splat(A(0), W)")
            if r.op == "total":
                self.line(f"sum{r.number} = WIDE(0)")

    def finish(self, reductions: list[Node], several: int) -> None:
        """The results of reductions other than sums, from all lanes of all accumulators."""
        for r in reductions:
            if r.op != "total":
                parts = [f"r{r.number}[{u}]" for u in range(several)]
                found = f"joined({joined_text(r.op, parts)}, {WORD[r.op]})"
                found = f"or_nan({found}, seen{r.number})" if r.op in QUICK else found
                self.line(f"found{r.number} = {found}")

    def added(self, stage: int, rounds: str, totals: list[Node], several: int) -> None:
        """Count additions to a lane; what has many is flushed. Short segments count as well: there
        may be any number of them."""
        self.line(f"pending{stage} += {rounds}")
        with self.block(f"if pending{stage} >= {ROUNDS}:"):
            self.flush(totals, several)
            self.line(f"pending{stage} = 0")

    def rest(self, stage: int, whole: str) -> None:
        """What is left of a segment after its whole rounds, all added to the first lanes."""
        with self.block(f"for i in range({whole}, n, W):"):
            self.line("some = lanes(i32, W) < i32(n - i)")
            self.place(stage, "i", "n - i", "0")

    def segment_start(self, stage: int) -> None:
        """Where the segment lies in every array of the pass."""
        needed = self.plan.needed(stage)
        written = [f"out{k}" for k, _ in self.plan.written(stage)]
        for name in self.named("full") + written:
            if name in written or any(n.name == name for n in needed):
                self.line(f"{name}_s = {name}_at + s * segment_step")
        for name in self.named("along"):
            self.line(f"{name}_s = {name} + s * n")
        for name in self.named("segment"):
            self.line(f"{name}_s = A({name}[row % period * segments + s])")
        for k, _ in self.plan.added_down(stage):
            self.line(f"out{k}_s = out{k}_sum + s * n")
        for kept, place in self.plan.kept.values():
            if kept <= stage:
                self.line(f"keep{place}_s = keep_at + ({place} * segments + s) * n")

    def read_ahead(self, stage: int) -> list[str]:
        """The arrays that a pass is the first to read, if that is most of its work."""
        if stage > 0 or is_expensive(self.plan, stage) or self.plan.written(stage):
            return []
        return [n.name for n in self.plan.needed(stage) if self.kind(n) == "full"]

    def vectors(self, stage: int, several: int, begin: str, end: str) -> None:
        """The loop over whole rounds; nan is looked for by pairs of vectors."""
        with self.block(f"for i in range({begin}, {end}, {several} * W):"):
            for name in self.read_ahead(stage):
                every = f"unroll(0, {several} * W, 64 // T_{name}.size)"
                with self.block(f"if {name}_ahead > 0:"), self.block(f"for AT in {every}:"):
                    self.line(f"prefetch({name}_s + (i + AT + {name}_ahead))")
            if not any(r.op in QUICK for r in self.plan.reductions(stage)):
                with self.block(f"for u in unroll({several}):"):
                    self.place(stage, "(i + u * W)", "", "u")
                return
            with self.block(f"for u in unroll(0, {several}, 2):"):
                left = self.place(stage, "(i + u * W)", "", "u")
                right = left
                if several > 1:
                    right = self.place(stage, "(i + u * W + W)", "", "u + 1")
                for r, value in left.items():
                    self.line(f"seen{r.number} = seen_nan(seen{r.number}, {value}, {right[r]})")

    def place(self, stage: int, i: str, count: str, u: str) -> dict[Node, str]:
        """All that a pass does for one vector; `count` of its lanes are there. The vectors of
        extremes, which are still to be searched for nan.
        """

        def leaf(node: Node) -> str | None:
            return self.leaf(node, stage, i, count)

        body = Body(self, leaf)
        for node, (kept, place) in self.plan.kept.items():
            if kept == stage:
                self.put(f"keep{place}_s + {i}", body.term(node), count)
        waiting = {}
        for r in self.plan.reductions(stage):
            value = body.term(r.args[0])
            if r.op == "first":
                value = f"select({value}, lanes(i32, W) + i32(s * n + {i}), i32(NOWHERE))"
            if count:
                value = f"select(some, {value}, {FIRST[r.op]})"
            here = f"r{r.number}[{u}]"
            if r.op in QUICK:
                waiting[r] = self.extreme(r, here, value, count)
            else:
                self.line(f"{here} = {JOIN[r.op].format(here, value)}")
        for k, node in self.plan.added_down(stage):
            above = self.get(f"out{k}_s + {i}", count)
            self.put(f"out{k}_s + {i}", f"{above} + {body.term(node)}", count)
        for k, node in self.plan.written(stage):
            stream = "" if count else "stream=STREAM"
            self.put(f"out{k}_s + {i}", f"OUT{k}({body.term(node)})", count, stream)
        return waiting

    def extreme(self, r: Node, here: str, value: str, count: str) -> str:
        """Join a vector with an extreme so far; its name. Partial ones have no pair."""
        name = self.name()
        self.line(f"{name} = {value}")
        self.line(f"{here} = {QUICK[r.op].format(here, name)}")
        if count:
            self.line(f"seen{r.number} = seen_nan(seen{r.number}, {name}, {name})")
        return name

    def leaf(self, node: Node, stage: int, i: str, count: str) -> str | None:
        """What is loaded for a vector, or known for the row."""
        if self.plan.is_loaded(node, stage):
            return self.get(f"keep{self.plan.kept[node][1]}_s + {i}", count)
        loaded = f"A({self.get(f'{node.name}_s + {i}', count)})"
        position = f"lanes(i32, W) + i32(s * n + {i})"
        return self.at_place(node, {"full": loaded, "along": loaded, "position": position,
                                    "segment": f"{node.name}_s"})  # fmt: skip

    def get(self, address: str, count: str) -> str:
        """A vector in memory."""
        return f"load_part({address}, {count}, W)" if count else f"load({address}, W)"

    def put(self, address: str, value: str, count: str, more: str = "") -> None:
        """Store a vector."""
        if count:
            self.line(f"store_part({address}, {value}, {count}, W)")
        else:
            self.line(f"store({', '.join(filter(None, [address, value, more]))})")

    def flush(self, totals: list[Node], several: int) -> None:
        """Add what the lanes hold to the sums."""
        for r in totals:
            parts = joined_text("total", [f"r{r.number}[{u}]" for u in range(several)])
            self.line(f"sum{r.number} = sum{r.number} + reduce_add(WIDE({parts}))")
            with self.block(f"for u in unroll({several}):"):
                self.line(f"r{r.number}[u] = 0")


def joined_text(op: str, parts: list[str]) -> str:
    """Several accumulators as one, by pairs."""
    while len(parts) > 1:
        pairs = zip(parts[::2], parts[1::2], strict=True)
        join = QUICK.get(op, JOIN[op])
        parts = [f"({join.format(left, right)})" for left, right in pairs]
    return parts[0]


def along_text(plan: Plan) -> str:
    """The kernel of a plan with lanes along the row."""
    return AlongWriter(plan).write()
