"""Statements: assignments, writes, containers, prints. Loops and branches are in `loops.py`."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import flambeau
from flambeau.jit.ir import types as T

from . import arguments, operators
from .expressions import Expr, Expressions, Refused

TENSORS = T.ListType(T.TENSOR)
KEPT = (T.TENSOR, T.INT, T.FLOAT, T.BOOL, TENSORS, T.STRING, T.ListType(T.INT))
KEPT_WEIGHTS = (20, 1.5, 1.5, 1, 1.5, 0.2, 0.5)
PARTS = ("{}.chunk(2, -1)", "{}.chunk(2, 0)", "{}.chunk(3, 1)", "{}.split(1, -1)",
         "{}.unbind(0)", "torch.chunk({}, 4, 1)", "{}.split(2, 1)", "torch.unbind({}, 1)",
         "{}.chunk(2, 1)")  # fmt: skip
PLACES = ("{}[{}]", "{}[:, {}]", "{}[{}:]", "{}[..., {}]", "{}[:{}]")


class Statements(Expressions):
    """A body on its way."""

    def line(self, text: str) -> None:
        self.written.append(text)

    @contextmanager
    def block(self) -> Iterator[list[str]]:
        """Lines of their own; names that are new in them are gone after it."""
        outer, types = self.written, dict(self.types)
        self.written = []
        try:
            yield self.written
        finally:
            self.written = outer
            self.types = types

    @contextmanager
    def elsewhere(self) -> Iterator[None]:
        """Values of their own: what happens here has not happened after it."""
        env = self.env
        self.env = _copies(env)
        try:
            yield
        finally:
            self.env = env

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """If it is refused, nothing of it has been written."""
        lines, types, env = list(self.written), dict(self.types), dict(self.env)
        unused = set(self.unused)
        try:
            yield
        except Refused:
            self.written[:], self.types, self.env, self.unused = lines, types, env, unused
            raise

    def run(self, text: str) -> None:
        """Run statements on what is there."""
        try:
            exec(text, self.env)  # noqa: S102
        except Exception as error:  # noqa: BLE001
            raise Refused(str(error)) from None

    # ---- kinds of statements

    def statement(self) -> None:
        """One statement of any kind; none if nothing fits."""
        kinds, weights = zip(*self.kinds(), strict=True)
        for _ in range(3):
            kind: Callable[[], None] = self.random.choices(kinds, weights)[0]
            try:
                with self.all_or_nothing():
                    kind()
                return
            except Refused:
                continue

    def kinds(self) -> list[tuple[Callable[[], None], float]]:
        """What there is, and how often."""
        writes = self.taste.writes
        return [
            (self.assign, 10), (self.assign_again, 1.5), (self.write, 2 * writes),
            (self.write_part, 1.5 * writes), (self.add_to, 1.0 * writes), (self.several, 1.0),
            (self.show, 0.3), (self.new_list, 0.7), (self.change_list, 0.7), (self.new_dict, 0.5),
            (self.comprehension, 0.4), (self.unpack, 1.0), (self.tuple_of, 0.5), (self.alias, 1.0),
            (self.check, 0.1),
        ]  # fmt: skip

    def assign(self, type: T.Type | None = None) -> Expr:
        """A new variable."""
        if type is None:
            type = self.random.choices(KEPT, KEPT_WEIGHTS)[0]
        found = self.expression(type)
        plain = found.text in self.types or (type != T.TENSOR and _is_constant(found.text))
        if plain and self.chance(0.9):
            raise Refused("only another name")
        name = self.new_name()
        self.line(f"{name} = {found.text}")
        return self.define(name, type, found.value)

    def alias(self) -> None:
        """A view of something, or another name for it."""
        operator = self.random.choice(operators.views())
        found = self.called(operator, 0)
        name = self.new_name()
        self.line(f"{name} = {found.text}")
        self.define(name, operator.result, found.value)

    def assign_again(self, tries: int = 6) -> None:
        """Another value for a variable, of the same type and rather of the same shape."""
        name = self.variable(self.random.choice((T.TENSOR, T.TENSOR, T.TENSOR, T.FLOAT, T.INT)))
        if not name.text.isidentifier() or name.text in self.fixed:
            raise Refused("not to be changed")
        self.assign_to(name, tries)

    def assign_to(self, old: Expr, tries: int = 6) -> None:
        """Another value for a variable."""
        self.like = old.value if old.type == T.TENSOR else None
        try:
            found = self._another(old, tries)
        finally:
            self.like = None
        self.line(f"{old.text} = {found.text}")
        self.env[old.text] = found.value

    def _another(self, old: Expr, tries: int) -> Expr:
        for _ in range(tries):
            found = self.expression(old.type)
            if _alike(found.value, old.value) and found.text != old.text:
                return found
        if self.chance(0.8):
            raise Refused("of another shape")
        return found

    def unpack(self) -> None:
        """Parts of a tensor by names."""
        source = self.variable(T.TENSOR, lambda value: value.dim() > 0)
        text = self.random.choice(PARTS)
        found = self.evaluated(text, T.ANY, [source])
        if not 1 <= len(found.value) <= 4:
            raise Refused("too many parts")
        names = [self.new_name() for _ in found.value]
        self.line(f"{', '.join(names)}{',' * (len(names) == 1)} = {found.text}")
        for name, value in zip(names, found.value, strict=True):
            self.define(name, T.TENSOR, value)

    def write(self) -> None:
        """An operator that writes to its first argument, which may be a view of a variable."""
        writing = operators.writing()
        everyday = [op for op in writing if op.name in operators.EVERYDAY]
        operator = self.random.choice(everyday if self.chance(0.6) else writing)
        method = [text for text in operator.texts if text.startswith("{}.")]
        if not method:
            raise Refused("a function")
        found = self.called(operator, 0)
        if found.text.startswith("torch."):
            raise Refused("a write to what nobody knows")
        if self.chance(0.15):
            name = self.new_name()
            self.line(f"{name} = {found.text}")
            self.define(name, T.TENSOR, found.value)
        else:
            self.line(found.text)

    def place(self) -> str:
        """Part of a tensor, to be written to."""
        target = self.variable(T.TENSOR)
        form = self.random.choice(PLACES)
        index = arguments.a_place(self, _PYTHON, _INDEX, [target])
        return self.evaluated(form, T.TENSOR, [target, index]).text

    def write_part(self) -> None:
        """`x[0] = y`, `x[:, 1] += 2`."""
        place = self.place()
        sign = self.random.choice(("=", "=", "+=", "*=", "-="))
        value = self.expression(self.random.choice((T.TENSOR, T.TENSOR, T.FLOAT)), 1)
        text = f"{place} {sign} {value.text}"
        self.run(text)
        self.line(text)

    def add_to(self) -> None:
        """`x += y`, which writes to x."""
        target = self.variable(self.random.choice((T.TENSOR, T.TENSOR, T.INT, T.FLOAT)))
        value = self.expression(target.type, 1)
        text = f"{target.text} {self.random.choice(('+=', '*=', '-=', '/='))} {value.text}"
        if target.text in self.fixed or (target.type == T.INT and "/=" in text):
            raise Refused("not to be changed")
        self.run(text)
        self.line(text)

    def several(self) -> None:
        """Several results at once."""
        some = [op for op in self.pool() if isinstance(op.result, T.TupleType) and not op.writes]
        if not some:
            raise Refused("no such operator")
        operator = self.random.choice(some)
        found = self.called(operator, 1)
        assert isinstance(operator.result, T.TupleType)
        if len(found.value) != len(operator.result.elements):
            raise Refused("another number of results")
        names = [self.new_name() for _ in operator.result.elements]
        self.line(f"{', '.join(names)} = {found.text}")
        for name, type, value in zip(names, operator.result.elements, found.value, strict=True):
            self.define(name, type, value)

    def pool(self) -> tuple[operators.Operator, ...]:
        return self.taste.vocabulary if self.chance(0.6) else operators.catalogue()

    def show(self) -> None:
        """A print."""
        found = self.expression(self.random.choice((T.INT, T.TENSOR, T.STRING, T.BOOL)), 1)
        self.line(f'print("{self.new_name("p")}", {found.text})')

    def check(self) -> None:
        """An assertion that holds with the first arguments."""
        found = self.expression(T.BOOL, 1)
        if not found.value:
            raise Refused("does not hold")
        self.line(f'assert {found.text}, "checked"')

    # ---- containers

    def new_list(self) -> None:
        """A list of tensors, empty or not."""
        name = self.new_name("l")
        if self.chance(0.5):
            self.line(f"{name}: List[Tensor] = []")
            self.define(name, TENSORS, [])
            return
        items = [self.simple(T.TENSOR) for _ in range(self.random.randint(1, 3))]
        self.line(f"{name} = [{', '.join(item.text for item in items)}]")
        self.define(name, TENSORS, [item.value for item in items])

    def change_list(self) -> None:
        """Append to a list, or change it otherwise."""
        target = self.variable(TENSORS)
        if target.text in self.fixed:
            raise Refused("a loop goes over it")
        form = self.random.choice(
            ("{}.append({})", "{}.append({})", "{} += [{}]", "{}[0] = {}", "{}.insert(0, {})",
             "{}.extend([{}])", "{}.reverse()", "{}.pop()")
        )  # fmt: skip
        item = self.expression(T.TENSOR, 1)
        text = form.format(target.text, item.text)
        self.run(text)
        self.line(text)

    def new_dict(self) -> None:
        """A dictionary, and something read from it."""
        name, read = self.new_name("d"), self.new_name()
        first, second = self.expression(T.TENSOR, 1), self.simple(T.TENSOR)
        self.line(f'{name} = {{"a": {first.text}, "b": {second.text}}}')
        self.env[name] = {"a": first.value, "b": second.value}
        form = self.random.choice(('{}["a"]', '{}["b"]', '{}.pop("a")', "list({}.values())[0]"))
        found = self.evaluated(form.format(name), T.TENSOR)
        self.line(f"{read} = {found.text}")
        self.define(read, T.TENSOR, found.value)
        self.define(name, T.DictType(T.STRING, T.TENSOR), self.env[name])

    def comprehension(self) -> None:
        """A list made of another."""
        source = self.variable(TENSORS)
        if not source.value:
            raise Refused("empty")
        item, name = self.new_name("c"), self.new_name("l")
        with self.block():
            self.define(item, T.TENSOR, source.value[0])
            found = self.expression(T.TENSOR, 2)
        text = f"[{found.text} for {item} in {source.text}]"
        made = self.evaluated(text.replace("{", "{{").replace("}", "}}"), TENSORS)
        self.line(f"{name} = {text}")
        self.define(name, TENSORS, made.value)

    def tuple_of(self) -> None:
        """A pair, taken apart again."""
        kinds = [self.random.choice((T.TENSOR, T.TENSOR, T.INT)) for _ in range(2)]
        parts = [self.expression(kind, 1) for kind in kinds]
        pair = self.new_name("t")
        self.line(f"{pair} = ({parts[0].text}, {parts[1].text})")
        names = [self.new_name() for _ in parts]
        self.line(f"{', '.join(names)} = {pair}")
        self.env[pair] = tuple(part.value for part in parts)
        for name, part in zip(names, parts, strict=True):
            self.define(name, part.type, part.value)


_PYTHON = operators.python()[0]
_INDEX = arguments.Parameter("index", T.INT)


def _is_constant(text: str) -> bool:
    return not any(character.isalpha() for character in text) or text in ("True", "False")


def _alike(one: Any, other: Any) -> bool:
    """Whether one value can stand for another from round to round."""
    if not isinstance(one, flambeau.Tensor):
        return True
    return one.shape == other.shape and one.dtype == other.dtype


def _copied_module(module: Any) -> Any:
    """A module with attributes of its own."""
    other = copy.copy(module)
    for name in ("_parameters", "_buffers"):
        other.__dict__[name] = dict(getattr(module, name))
    for name, buffer in module._buffers.items():
        other._buffers[name] = _copied(buffer)
    return other


def _copies(env: dict[str, Any]) -> dict[str, Any]:
    return {name: _copied(value) for name, value in env.items()}


def _copied(value: Any) -> Any:
    if isinstance(value, flambeau.Tensor):
        try:
            return value.clone()
        except RuntimeError:  # a view that may not be used any more
            return value.detach().clone()
    if isinstance(value, list):
        return [_copied(item) for item in value]
    if isinstance(value, flambeau.nn.Module):
        return _copied_module(value)
    return value
