"""Plans of row formulas as kernels for GPUs: G threads share a row.

`LoopWriter`: every pass reads the row from memory again. Rows may lie anywhere, in segments, side
by side, or be split into parts that blocks share.

`RegisterWriter`: a row is read once, and lies in its threads' registers through all passes.

Constants: A, the type to compute in; T_x, the type of x in memory; OUT0, that of result 0; LOW and
HIGH, what is below and above all numbers of A; G, threads of a row; ROWS, rows of a block.
"""

from __future__ import annotations

from flambeau._compiler.fuse import Node, Plan
from flambeau._compiler.row_text import Body, Writer

FIRST = {"total": "A(0)", "product": "A(1)", "amax": "A(LOW)", "amin": "A(HIGH)",
         "first": "A(HIGH)"}  # fmt: skip
JOIN = {"total": "{0} + {1}", "product": "{0} * {1}", "amax": "extreme_of({0}, {1}, True)",
        "amin": "extreme_of({0}, {1}, False)", "first": "smaller({0}, {1})"}  # fmt: skip


class GroupWriter(Writer):
    """What both forms share: values of a row, and threads that join what they found."""

    extra: tuple[str, ...] = ()
    """Constants of the form."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self.slots = 0

    def signature(self) -> str:
        """As of the CPU's kernels, without tasks."""
        found, statics = self.given_and_results()
        found += ["period: i64"] if self.named("segment") else []
        found += [f"{name}: i64" for name in self.sizes]
        statics += ["A", "LOW", "HIGH", "G", "ROWS", *self.extra]
        return ", ".join(found + [f"{name}: static" for name in statics])

    def last_stage(self) -> int:
        """The number of the last pass, or of what is computed behind it."""
        return max(node.stage for node in self.plan.nodes.values())

    def constants(self, stage: int, place: str) -> None:
        """What is the same for the whole row and known now; results of rows are written."""
        body = Body(self, self.constant_leaf)
        body.known.update(self.values)
        for node in self.plan.constants(stage):
            self.values[node] = body.term(node)
        self.write_rows(stage, place)

    def write_rows(self, stage: int, place: str) -> None:
        """The results of rows that are known now."""
        for k, node in self.plan.of_rows(stage):
            with self.block("if (t == 0) & there:"):
                self.line(f"out{k}[{place}] = OUT{k}({self.values[node]})")

    def constant_leaf(self, node: Node) -> str | None:
        """A parameter of the row, a number, or the result of a reduction."""
        kind = self.kind(node)
        if kind in ("row", "index"):
            return f"A({node.name}[row])"
        if kind in ("number", "length"):
            return node.name
        return f"found{node.number}" if node.op in FIRST else None

    def join(self, reductions: list[Node], across: bool) -> None:
        """Over the threads of a row: r... hold what each has found, found... what all have."""
        for r in reductions:
            slot = self.slots
            self.slots += 1
            form = "joined_across" if across else "joined_along"
            self.line(f"found{r.number} = {form}(r{r.number}[0], {FIRST[r.op]}, join_{r.op}, "
                      f"cells + {slot} * CELLS, t, local, G, ROWS)")  # fmt: skip

    def text(self, name: str) -> str:
        """The whole kernel."""
        count = sum(len(self.plan.reductions(stage)) for stage in range(self.last_stage() + 1))
        head = [f"def {name}({self.signature()}):",
                f"    cells = shared(A, {max(count, 1)} * CELLS)"]  # fmt: skip
        return "\n".join(head + self.lines) + "\n"


# ---- rows in memory


class LoopWriter(GroupWriter):
    """Every pass goes through memory, U vectors of V elements of a thread at a time. The lanes of a
    vector are neighbours in the row, or neighbouring rows (`beside`): then a unit is V rows."""

    sizes = ("rows", "inner", "outer_step", "inner_step", "segments", "n", "n_magic", "n_shift",
             "segment_step", "step", "parts", "share")  # fmt: skip
    extra = ("U", "V", "CELLS", "SEGMENTS", "INNER", "PARTS", "BIG")

    def __init__(self, plan: Plan, beside: bool) -> None:
        super().__init__(plan)
        self.beside = beside

    def write(self, name: str) -> str:
        """The text of the kernel. Units that follow each other are parts of one row, or the same
        part of rows beside each other: neighbours in memory."""
        which, part = ("item % rows", "item // rows") if self.beside else (
            "item // parts", "item % parts")  # fmt: skip
        for text in (
            "length = A(segments * n)",
            "local = thread() % ROWS" if self.beside else "local = thread() // G",
            "t = thread() // ROWS" if self.beside else "t = thread() % G",
            "unit = block() * ROWS + local",
            "there = unit < rows * parts",
            "item = unit if there else 0",
            f"which = {which} if PARTS else item",
            "row = which * V" if self.beside else "row = which",
            f"part = {part}",
            "begin = part * share if PARTS else i64(0)",
            "start = smaller(begin, segments * n) if PARTS else begin",
            "last = smaller(start + share, segments * n) if PARTS else segments * n",
            "stop = select(there, last, start)",  # no test inside of loops: it would part the loads
            "base = row // inner * outer_step + row % inner * inner_step if INNER "
            "else row * outer_step",
            "LANES = 1" if self.beside else "LANES = V",
            "whole = start + (stop - start) // (G * U * LANES) * (G * U * LANES)",
        ):
            self.line(text)
        for stage in range(self.last_stage() + 1):
            self.constants(stage, "item")
            if stage in self.plan.passes:
                self.one_pass(stage)
        return self.text(name)

    def one_pass(self, stage: int) -> None:
        """The loops of a pass, and what its reductions come to."""
        reductions = self.plan.reductions(stage)
        for r in reductions:
            self.line(f"lanes{r.number} = registers(vector(A, V), U, {FIRST[r.op]})")
        with (
            self.block("for chunk in range(start, whole, G * U * LANES):"),
            self.block("for u in unroll(U):"),
        ):
            self.element(stage, "chunk + (u * G + t) * LANES", "u")
        with self.block("for i in range(whole + t * LANES, stop, G * LANES):"):
            self.element(stage, "i", "0")
        for r in reductions:
            with self.block("for u in unroll(1, U):"):
                joined = JOIN[r.op].format(f"lanes{r.number}[0]", f"lanes{r.number}[u]")
                self.line(f"lanes{r.number}[0] = {joined}")
            size = "vector(A, V)" if self.beside else "A"
            of_lanes = f"lanes{r.number}[0]" if self.beside else (
                f"joined_lanes(lanes{r.number}[0], join_{r.op}, V)")  # fmt: skip
            self.line(f"r{r.number} = registers({size}, 1)")
            self.line(f"r{r.number}[0] = {of_lanes}")
        self.join(reductions, self.beside)

    def constant_leaf(self, node: Node) -> str | None:
        """As of all; of rows beside each other, the numbers of all of them."""
        if self.beside and self.kind(node) in ("row", "index"):
            return f"A({self.vector_of(node.name, 'row')})"
        return super().constant_leaf(node)

    def write_rows(self, stage: int, place: str) -> None:
        """Results of rows beside each other lie so too, or those of their parts."""
        if not self.beside:
            super().write_rows(stage, place)
            return
        for k, node in self.plan.of_rows(stage):
            value = f"spread(OUT{k}({self.values[node]}), V)"
            with self.block("if (t == 0) & there:"):
                self.line("if PARTS:")
                self.line(f"    scattered(out{k} + (row * parts + part), parts, {value}, V)")
                self.line("else:")
                self.line(f"    store(out{k} + row, {value}, align=min(V * OUT{k}.size, 16))")

    def vector_of(self, name: str, place: str) -> str:
        """V elements of an array that follow each other."""
        return f"load({name} + {place}, V, align=min(V * T_{name}.size, 16))"

    def element(self, stage: int, place: str, u: str) -> None:
        """All that a pass does for the V elements from one place on."""
        name = self.name()
        i, at = f"i{name}", f"at{name}"
        segment = f"seg{name}"
        self.line(f"{i} = {place}")
        self.line(f"{segment} = divided({i}, n, n_magic, n_shift, BIG) if SEGMENTS else i64(0)")
        self.line(f"{at} = base + ({segment} * segment_step + ({i} - {segment} * n) * step "
                  f"if SEGMENTS else {i} * step)")  # fmt: skip
        position = f"numbered(A({i} if BIG else i32({i})), A, LANES)"

        def leaf(node: Node) -> str | None:
            of_segment = f"A({node.name}[row % period * segments + {segment}])"
            along = f"{node.name}[{i}]" if self.beside else self.vector_of(node.name, i)
            return self.at_place(node, {"full": f"A({self.vector_of(node.name, at)})",
                                        "position": position, "along": f"A({along})",
                                        "segment": of_segment})  # fmt: skip

        body = Body(self, leaf)
        for r in self.plan.reductions(stage):
            value = body.term(r.args[0])
            if r.op == "first":
                value = f"select({value}, spread({position}, V), splat(A(HIGH), V))"
            here = f"lanes{r.number}[{u}]"
            self.line(f"{here} = {JOIN[r.op].format(here, f'A({value})')}")
        for k, node in self.plan.written(stage):
            value = f"spread(OUT{k}({body.term(node)}), V)"
            self.line(f"store(out{k} + {at}, {value}, align=min(V * OUT{k}.size, 16))")


# ---- rows in registers


class RegisterWriter(GroupWriter):
    """A row is read once: K vectors of V elements a thread, of which the last may lie behind the
    row's end. Rows follow each other."""

    sizes = ("rows", "n")
    extra = ("V", "CELLS")

    def __init__(self, plan: Plan, vectors: int) -> None:
        super().__init__(plan)
        self.vectors = vectors

    def write(self, name: str) -> str:
        """The text of the kernel."""
        for text in (
            "length = A(n)", "local = thread() // G", "t = thread() % G",
            "row = block() * ROWS + local", "there = row < rows",
        ):  # fmt: skip
            self.line(text)
        for k in range(self.vectors):
            self.line(f"p{k} = ({k} * G + t) * V")
        for node in self.plan.nodes.values():
            if self.kind(node) == "full":
                for k in range(self.vectors):
                    self.fetch(node, k)
        known: list[dict[Node, str]] = [{} for _ in range(self.vectors)]
        for stage in range(self.last_stage() + 1):
            self.constants(stage, "row")
            if stage in self.plan.passes:
                self.one_pass(stage, known)
        return self.text(name)

    def fetch(self, node: Node, k: int) -> None:
        """Load vector k of what a thread has of an array."""
        name = node.name
        place = f"{name} + (row * n + p{k})" if self.kind(node) == "full" else f"{name} + p{k}"
        self.line(f"got_{name}_{k} = registers(vector(T_{name}, V), 1)")
        with self.block(f"if {self.inside(k)}:"):
            self.line(f"got_{name}_{k}[0] = load({place}, V, align=min(V * T_{name}.size, 16))")
        self.line(f"{name}_{k} = got_{name}_{k}[0]")

    def inside(self, k: int) -> str:
        """Whether a vector lies in a row that is there."""
        return f"there & (p{k} < n)" if k == self.vectors - 1 else "there"

    def one_pass(self, stage: int, known: list[dict[Node, str]]) -> None:
        """A pass over registers."""
        reductions = self.plan.reductions(stage)
        for r in reductions:
            self.line(f"lanes{r.number} = registers(vector(A, V), 1, {FIRST[r.op]})")
        for k in range(self.vectors):
            self.one_vector(stage, k, known[k])
        for r in reductions:
            self.line(f"r{r.number} = registers(A, 1)")
            self.line(f"r{r.number}[0] = joined_lanes(lanes{r.number}[0], join_{r.op}, V)")
        self.join(reductions, False)

    def one_vector(self, stage: int, k: int, known: dict[Node, str]) -> None:
        """All that a pass does for one vector. Weights, which come from the cache, are loaded when
        they are needed: loaded first, they would take registers."""
        body = Body(self, lambda node: self.leaf(node, k))
        body.known = known
        for node in self.plan.needed(stage):
            if self.kind(node) == "along" and node not in known:
                self.fetch(node, k)
        for r in self.plan.reductions(stage):
            value = body.term(r.args[0])
            if r.op == "first":
                value = f"select({value}, numbered(A(i32(p{k})), A, V), splat(A(HIGH), V))"
            elif not value.isidentifier():
                value = f"A({value})"
            if k == self.vectors - 1:
                value = f"select(p{k} < n, {value}, splat({FIRST[r.op]}, V))"
            here = f"lanes{r.number}[0]"
            self.line(f"{here} = {JOIN[r.op].format(here, value)}")
        for number, node in self.plan.written(stage):
            value = body.term(node)
            with self.block(f"if {self.inside(k)}:"):
                self.line(f"store(out{number} + (row * n + p{k}), spread(OUT{number}({value}), V), "
                          f"align=min(V * OUT{number}.size, 16))")  # fmt: skip

    def leaf(self, node: Node, k: int) -> str | None:
        """What is loaded for a vector, or known for the row."""
        loaded, position = f"A({node.name}_{k})", f"numbered(A(i32(p{k})), A, V)"
        return self.at_place(node, {"full": loaded, "along": loaded, "position": position})
