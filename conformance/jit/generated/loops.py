"""Branches and loops; and bodies, which have them."""

from __future__ import annotations

from collections.abc import Callable

from flambeau.jit.ir import types as T

from .expressions import Expr, Refused
from .filling import Filling
from .statements import TENSORS

JOINS = ("torch.stack({}, 0)", "torch.stack({})", "torch.cat({}, 0)", "torch.stack({}, -1)",
         "torch.cat({}, -1)", "torch.stack({}, 1)")  # fmt: skip


ELEMENTS = ("{0}[{1}]", "{0}[{1}]", "{0}[{1}]", "{0}[:, {1}]", "{0}[{1}:{1} + 1]", "{0}[-{1}]",
            "{0}.select(0, {1})", "{0}[{1}, 0]", "{0}[..., {1}]")  # fmt: skip


class Bodies(Filling):
    """Statements with others in them."""

    nesting = 0

    def kinds(self) -> list[tuple[Callable[[], None], float]]:
        found = super().kinds()
        if self.nesting < 3:
            loops = self.taste.loops / (1 + 2 * self.nesting)
            found += [(self.for_loop, 4 * loops), (self.while_loop, 0.6 * loops),
                      (self.branch, 1.0), (self.maybe, 0.2)]  # fmt: skip
        return found

    def statements(self, count: int) -> None:
        for _ in range(count):
            self.statement()

    def _nested(self, lines: list[str]) -> None:
        """Put the lines of a block below the last line."""
        self.written += [f"    {line}" for line in lines or ["pass"]]

    def condition(self) -> Expr:
        """Something that is true or false, rarely always."""
        for _ in range(8):
            found = self.expression(T.BOOL, 2)
            if any(character.isdigit() or character == "x" for character in found.text):
                return found
        return found

    # ---- branches

    def branch(self) -> None:
        """An `if` with both its blocks; they may give a name to something of one type."""
        condition = self.condition()
        both = self.new_name() if self.chance(0.6) else ""
        type = self.random.choice((T.TENSOR, T.TENSOR, T.FLOAT, T.INT))
        self.nesting += 1
        try:
            blocks = [self._taken(both, type), self._other(both, type)]
        finally:
            self.nesting -= 1
        if not condition.value:
            blocks.reverse()
        self.line(f"if {condition.text}:")
        self._nested(blocks[0])
        self.line("else:")
        self._nested(blocks[1])
        if both:
            self.define(both, type, self.env[both])

    def _taken(self, both: str, type: T.Type) -> list[str]:
        with self.block() as lines:
            self.statements(self.random.randint(0 if both else 1, 2))
            if both:
                found = self.expression(type)
                self.line(f"{both} = {found.text}")
                self.env[both] = found.value
        return lines

    def _other(self, both: str, type: T.Type) -> list[str]:
        if not both and self.chance(0.4):
            return []
        with self.elsewhere():
            return self._taken(both, type)

    def maybe(self) -> None:
        """A value that may be None, and what follows from that."""
        name, read = self.new_name("o"), self.new_name()
        value, other = self.expression(T.TENSOR, 1), self.simple(T.TENSOR)
        condition = self.condition()
        self.line(f"{name}: Optional[Tensor] = None")
        self.line(f"if {condition.text}:")
        self._nested([f"{name} = {value.text}"])
        self.line(f"{read} = {name} if {name} is not None else {other.text}")
        self.define(read, T.TENSOR, value.value if condition.value else other.value)

    # ---- loops

    def for_loop(self) -> None:
        """A loop that may collect, carry values, be left, and have loops in it."""
        header, names, rounds = self._rounds()
        self._loop(header, names, rounds)

    def _rounds(self) -> tuple[str, list[tuple[str, T.Type]], list[object]]:
        """The head of a loop, what its names are, and what they hold in each round."""
        form = self.random.choice(("size", "size", "size", "count", "rows", "list", "number", "zip",
                                   "enumerate"))  # fmt: skip
        counter = self.new_name("i")
        if form in ("size", "number", "count"):
            text = self._count(form)
            rounds = list(self.evaluated(text, T.ANY).value)
            return f"for {counter} in {text}:", [(counter, T.INT)], rounds
        source = self._items(form)
        item = self.new_name("r")
        if form == "enumerate":
            names = [(counter, T.INT), (item, T.TENSOR)]
            head = f"for {counter}, {item} in enumerate({source.text}):"
            return head, names, list(enumerate(source.value))
        if form == "zip":
            other, more = self._items(form), self.new_name("r")
            names = [(item, T.TENSOR), (more, T.TENSOR)]
            head = f"for {item}, {more} in zip({source.text}, {other.text}):"
            return head, names, list(zip(source.value, other.value, strict=False))
        return f"for {item} in {source.text}:", [(item, T.TENSOR)], list(source.value)

    def _count(self, form: str) -> str:
        if form == "number":
            return f"range({self.random.choice((1, 2, 2, 3, 4, 5))})"
        if form == "count":
            found = self.expression(T.INT, 1)
            if not 1 <= found.value <= 8:
                raise Refused("no sensible count")
            return f"range(min({found.text}, 8))"
        source = self.variable(T.TENSOR, lambda value: value.dim() > 0)
        text = f"{source.text}.size(0)"
        if self.chance(0.1):
            return f"range(1, {text})"
        return f"range({text} - 1, -1, -1)" if self.chance(0.05) else f"range({text})"

    def _items(self, form: str) -> Expr:
        """What a loop goes over: rows of a tensor, or a list."""
        if form == "list" or self.chance(0.3):
            return self.variable(TENSORS)
        source = self.variable(T.TENSOR, lambda value: value.dim() > 0)
        texts = ["{}.unbind(0)", "{}.split(1)", "torch.chunk({}, 2, 0)", "{}.unbind(-1)"]
        if form == "rows":
            texts.append("{}")
        text = self.random.choice(texts)
        return self.evaluated(text, T.ANY, [source])

    def _loop(self, header: str, names: list[tuple[str, T.Type]], rounds: list[object]) -> None:
        if not rounds or len(rounds) > 40:
            raise Refused("no sensible number of rounds")
        out = self._collector()
        carried = self._carried()
        self.nesting += 1
        fixed = set(self.fixed)
        # A list that grows while a loop goes over it would never end.
        self.fixed |= {name for name in self.names_of(TENSORS) if name in header}
        try:
            with self.block() as lines:
                self._enter(names, rounds[0])
                self._body(out, carried)
        finally:
            self.nesting -= 1
            self.fixed = fixed
        if not lines:
            raise Refused("an empty loop")
        self._remaining(names, rounds[1:], lines)
        self.line(header)
        self._nested(lines)
        self._after(out)

    def _enter(self, names: list[tuple[str, T.Type]], value: object) -> None:
        values = [value] if len(names) == 1 else list(value)  # type: ignore[call-overload]
        for (name, type), held in zip(names, values, strict=True):
            self.define(name, type, held)
            if type == T.INT:
                self._elements(name)

    def _elements(self, counter: str) -> None:
        """Let what the counter finds in tensors and lists be named like a variable."""
        for _ in range(self.random.choice((0, 1, 1, 2, 2, 3))):
            kind = self.random.choice((T.TENSOR, T.TENSOR, T.TENSOR, TENSORS))
            names = [name for name in self.names_of(kind) if name.isidentifier()]
            form = self.random.choice(ELEMENTS if kind == T.TENSOR else ELEMENTS[:1])
            if names:
                self._element(form.format(self.random.choice(names), counter))

    def _element(self, text: str) -> None:
        try:
            self.value_of(text)
        except Refused:
            return
        self.types[text] = T.TENSOR
        self.unused.add(text)

    def _collector(self) -> str:
        """A list to collect in; empty if there is none."""
        if self.chance(0.25):
            return ""
        name = self.new_name("l")
        self.line(f"{name}: List[Tensor] = []")
        self.define(name, TENSORS, [])
        return name

    def _carried(self) -> list[Expr]:
        """What changes from round to round."""
        if self.chance(0.45):
            return []
        found = []
        for _ in range(self.random.choice((1, 1, 1, 2))):
            known = self.variable(T.TENSOR)
            if not known.text.isidentifier() or self.chance(0.3):
                name = self.new_name("h")
                first = self.expression(T.TENSOR, 1)
                self.line(f"{name} = {first.text}")
                known = self.define(name, T.TENSOR, first.value)
            found.append(known)
        return found

    def _body(self, out: str, carried: list[Expr]) -> None:
        self.statements(self.random.choice((0, 1, 1, 2, 3)))
        if self.chance(0.08):
            self._leave()
        for state in carried:
            self.assign_to(Expr(state.text, T.TENSOR, self.env[state.text]), tries=10)
        if out:
            self._collect(out, carried)
        if self.chance(0.15):
            self.statement()

    def _leave(self) -> None:
        """`break` or `continue`, not in the first round."""
        condition = self.condition()
        text = f"not ({condition.text})" if condition.value else condition.text
        self.line(f"if {text}:")
        self.line(f"    {self.random.choice(('break', 'continue'))}")

    def _collect(self, out: str, carried: list[Expr]) -> None:
        if carried and self.chance(0.6):
            item = Expr(carried[0].text, T.TENSOR, self.env[carried[0].text])
        else:
            item = self.expression(T.TENSOR)
        form = self.random.choice(("{}.append({})", "{}.append({})", "{} += [{}]"))
        text = form.format(out, item.text)
        if self.chance(0.08):
            self.line(f"if {self.condition().text}:")
            text = f"    {text}"
        self.env[out].append(item.value)
        self.line(text)

    def _remaining(self, names: list[tuple[str, T.Type]], rounds: list[object],
                   lines: list[str]) -> None:  # fmt: skip
        """Run the other rounds."""
        self.env["_rounds"] = rounds
        head = f"for {', '.join(name for name, _ in names)} in _rounds:"
        self.run("\n".join([head, *(f"    {line}" for line in lines or ["pass"])]))

    def _after(self, out: str) -> None:
        """Put together what was collected."""
        if not out or self.chance(0.15):
            return
        text = self.random.choice(JOINS).format(out)
        found = self.evaluated(text, T.TENSOR)
        self.unused.discard(out)
        name = self.new_name()
        self.line(f"{name} = {found.text}")
        self.define(name, T.TENSOR, found.value)

    def while_loop(self) -> None:
        """A loop with a condition, and a counter that ends it."""
        counter = self.new_name("n")
        bound = self.random.choice((1, 2, 3))
        out = self._collector()
        carried = self._carried()
        self.line(f"{counter} = 0")
        self.env[counter] = 0
        self.fixed.add(counter)
        condition = f"{counter} < {bound}"
        if self.chance(0.4):
            more = self.condition()
            condition += f" and {f'not ({more.text})' if not more.value else more.text}"
        self.nesting += 1
        try:
            with self.block() as lines:
                self.line(f"{counter} += 1")
                self.define(counter, T.INT, 1)
                self._body(out, carried)
        finally:
            self.nesting -= 1
        text = "\n".join([f"while {condition}:", *(f"    {line}" for line in lines)])
        self.run(text)
        self.written += text.split("\n")
        self._after(out)
