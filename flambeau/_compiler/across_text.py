"""Plans of row formulas as kernels across rows: the lanes of a vector are neighbouring rows.

`inner` rows lie side by side, the places of a row are `step` apart, and there are `outer` such
groups. A task takes blocks of rows; what reductions have found so far lies in arrays of one element
for each row of the block, so that memory is read in its own order. The constants are those of
`row_text`, and LIMIT: how many rows a block has at most.
"""

from __future__ import annotations

from flambeau._compiler.fuse import Node, Plan
from flambeau._compiler.row_text import FIRST, JOIN, Body, Writer, unrolled

CHUNK = 256
"""Places that are added up in A before they are added to a sum in WIDE."""


class AcrossWriter(Writer):
    """The kernel of a plan with lanes across rows."""

    steps = ("group_step", "step")
    sizes = ("outer", "n", "inner", "block")

    def write(self) -> str:
        """The text of the kernel `across`."""
        plan = self.plan
        self.stored: dict[Node, str] = {}
        last = max(node.stage for node in plan.nodes.values())
        self.line("length = A(n)")
        if plan.kept:
            self.line(f"keep_at = keep + task * (n * block) * {len(plan.kept)}")
        for stage in range(last + 1):
            self.arrays(stage)
        self.line("blocks = (inner + block - 1) // block")
        with self.block("for item in range(outer * blocks * task // tasks, "
                        "outer * blocks * (task + 1) // tasks):"):  # fmt: skip
            self.line("group = item // blocks")
            self.line("start = item % blocks * block")
            self.line("width = smaller(block, inner - start)")
            self.line("even = width // W * W")
            self.line("base = group * inner + start")
            for name in self.full_names():
                self.line(f"{name}_at = {name} + (group * group_step + start)")
            for stage in range(last + 1):
                self.constants(stage)
                if stage in plan.passes:
                    self.one_pass(stage)
        return f"def across({self.signature()}):\n" + "\n".join(self.lines) + "\n"

    def signature(self) -> str:
        """As along rows, and LIMIT."""
        return f"{super().signature()}, LIMIT: static"

    def arrays(self, stage: int) -> None:
        """Memory for what is known of the rows of a block."""
        for r in self.plan.reductions(stage):
            self.line(f"r{r.number} = stack({self.type_of(r)}, LIMIT)")
            if r.op == "total":
                self.line(f"sum{r.number} = stack(WIDE, LIMIT)")
        for node in self.plan.constants(stage):
            self.stored[node] = f"u{node.number}"
            self.line(f"u{node.number} = stack({self.type_of(node)}, LIMIT)")

    def type_of(self, node: Node) -> str:
        """The type of what is known of a row."""
        return "i32" if node.op == "first" or self.kind(node) == "index" else "A"

    # ---- between passes

    def constants(self, stage: int) -> None:
        """What is the same for a whole row and known now: computed for all rows of the block."""
        wanted = self.plan.constants(stage)
        if not wanted:
            return
        with self.block("for c in range(0, width, W):"):
            body = Body(self, lambda node: self.constant_leaf(node, stage))
            for node in wanted:
                self.line(f"store({self.stored[node]} + c, {body.term(node)})")
            for k, node in self.plan.of_rows(stage):
                value = body.term(node)
                if node.op == "total":
                    value = f"load(sum{node.number} + c, W)"
                self.line(f"store_part(out{k} + (base + c), OUT{k}({value}), width - c, W)")

    def constant_leaf(self, node: Node, stage: int) -> str | None:
        """Parameters of rows, numbers, results of reductions, what earlier passes have left."""
        kind = self.kind(node)
        if node in self.stored and node.stage < stage:
            return f"load({self.stored[node]} + c, W)"
        if kind in ("row", "index"):
            type = "A" if kind == "row" else "i32"
            return f"{type}(load_part({node.name} + (base + c), width - c, W))"
        if kind in ("number", "length"):
            return f"splat({node.name}, W)"
        if node.op == "total":
            return f"A(load(sum{node.number} + c, W))"
        return f"load(r{node.number} + c, W)" if node.op in JOIN else None

    # ---- passes

    def one_pass(self, stage: int) -> None:
        """The loops of a pass: over chunks of places, places, vectors of rows."""
        reductions = self.plan.reductions(stage)
        totals = [r for r in reductions if r.op == "total"]
        if reductions:
            with self.block("for c in range(0, width, W):"):
                for r in reductions:
                    self.line(f"store(r{r.number} + c, splat({FIRST[r.op]}, W))")
                for r in totals:
                    self.line(f"store(sum{r.number} + c, splat(WIDE(0), W))")
        if not totals:
            self.places(stage, "0", "n")
            return
        with self.block(f"for begin in range(0, n, {CHUNK}):"):
            self.line(f"end = smaller(begin + {CHUNK}, n)")
            self.places(stage, "begin", "end")
            with self.block("for c in range(0, width, W):"):
                for r in totals:
                    found = f"WIDE(load(r{r.number} + c, W))"
                    self.line(f"store(sum{r.number} + c, load(sum{r.number} + c, W) + {found})")
                    self.line(f"store(r{r.number} + c, splat(A(0), W))")

    def places(self, stage: int, begin: str, end: str) -> None:
        """Cheap passes without results of their own take several places in a round."""
        several = 4 if unrolled(self.plan, stage) == 4 and not self.plan.written(stage) else 1
        if several == 1:
            with self.block(f"for i in range({begin}, {end}):"):
                self.vectors(stage, 1)
            return
        self.line(f"middle{stage} = {begin} + ({end} - {begin}) // {several} * {several}")
        with self.block(f"for i in range({begin}, middle{stage}, {several}):"):
            self.vectors(stage, several)
        with self.block(f"for i in range(middle{stage}, {end}):"):
            self.vectors(stage, 1)

    def vectors(self, stage: int, several: int) -> None:
        """The rows of the block, and those that fill no vector."""
        with self.block("for c in range(0, even, W):"):
            self.vector(stage, several, "")
        with self.block("for c in range(even, width, W):"):
            self.vector(stage, several, "width - c")

    def vector(self, stage: int, several: int, count: str) -> None:
        """All that a pass does for one vector of rows at some places."""
        reductions = self.plan.reductions(stage)
        held = {r: self.name() for r in reductions}
        for r in reductions:
            self.line(f"{held[r]} = load(r{r.number} + c, W)")
        if several == 1:
            self.place(stage, held, "i", count)
        else:
            with self.block(f"for u in unroll({several}):"):
                self.place(stage, held, "(i + u)", count)
        for r in reductions:
            self.line(f"store(r{r.number} + c, {held[r]})")

    def place(self, stage: int, held: dict[Node, str], i: str, count: str) -> None:
        """One vector at one place; `count` of its lanes are there."""

        def leaf(node: Node) -> str | None:
            return self.leaf(node, stage, i, count)

        body = Body(self, leaf)
        for node, (kept, place) in self.plan.kept.items():
            if kept == stage:
                self.line(f"store({self.keep_address(place, i)}, {body.term(node)})")
        for r, name in held.items():
            value = body.term(r.args[0])
            if r.op == "first":
                value = f"select({value}, splat(i32({i}), W), i32(NOWHERE))"
            self.line(f"{name} = {JOIN[r.op].format(name, value)}")
        for k, node in self.plan.written(stage):
            value = f"OUT{k}({body.term(node)})"
            address = f"out{k}_at + ({i} * step + c)"
            if count:
                self.line(f"store_part({address}, {value}, {count}, W)")
            else:
                self.line(f"store({address}, {value}, stream=STREAM)")

    def keep_address(self, place: int, i: str) -> str:
        """Where a kept value of the block lies."""
        return f"keep_at + (({place} * n + {i}) * block + c)"

    def leaf(self, node: Node, stage: int, i: str, count: str) -> str | None:
        """What is loaded for a vector, or known for its rows."""
        if self.plan.is_loaded(node, stage):
            return f"load({self.keep_address(self.plan.kept[node][1], i)}, W)"
        address = f"{node.name}_at + ({i} * step + c)"
        found = f"load_part({address}, {count}, W)" if count else f"load({address}, W)"
        texts = {
            "full": f"A({found})",
            "along": f"splat(A({node.name}[{i}]), W)",
            "position": f"splat(i32({i}), W)",
        }
        return self.at_place(node, texts)

    def of_row(self, node: Node) -> str:
        """What the vector's rows have."""
        return f"load({self.stored[node]} + c, W)"


def across_text(plan: Plan) -> str:
    """The kernel of a plan with lanes across rows."""
    return AcrossWriter(plan).write()
