"""The evaluation of a loop's nodes on values with a batch dim.

What the rounds of a loop compute is computed once, on tensors that have a round in each place of
dim 0. The rules say how an operator does that; where there is none, or where a number of a round
would decide what is computed, `NotBatchable` is raised and the loop runs as it stands. So it does
where the batch would not give what the first round gives: see `likeness.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau.autograd.graph import next_sequence_number
from flambeau.jit.ir import types as T
from flambeau.jit.ir.function import FunctionSchema
from flambeau.jit.ir.graph import Node, Value
from flambeau.jit.optimise.batching import likeness
from flambeau.jit.optimise.batching.saved import Kept, owner_of, owners_of, saved_since
from flambeau.jit.optimise.batching.values import (
    Batched,
    Counted,
    NotBatchable,
    Rounds,
    depends_on_round,
)

__all__ = ["STRUCTURE", "Batched", "Call", "Counted", "NotBatchable", "Program", "Rounds",
           "depends_on_round"]  # fmt: skip

Rule = Callable[..., Any]
Look = Callable[[list[Any]], None]
MANY_KINDS = 64
"""Kinds of arguments whose first rounds are kept; beyond that they are forgotten."""


class OtherForms(NotBatchable):
    """A value of the batch is not what the first round has given."""


@dataclass(frozen=True, slots=True)
class FirstRound:
    """The forms of what each step gives, and what is saved of what was there before.

    owners: for each output the place whose memory it is a view of; None where it is new. layouts:
    how each output lies in memory, if it is a tensor.
    """

    forms: list[Any]
    kept: list[Kept]
    owners: list[int | None]
    layouts: list[Any]


class Program:
    """Nodes in order, as calls on numbered places.

    look: is shown what the first round of each kind of arguments gives, and may refuse it.
    """

    def __init__(self, nodes: Sequence[Node], inputs: Sequence[Value], outputs: Sequence[Value],
                 look: Look | None = None) -> None:  # fmt: skip
        self.places: dict[Value, int] = {}
        self.start: list[Any] = []
        for value in inputs:
            self._place(value, None)
        self.steps = [self._step(node) for node in nodes]
        self.fixed = self._fixed()
        self.outputs = [self._known(value) for value in outputs]
        self.look = look
        self.known: dict[Any, FirstRound | NotBatchable] = {}

    def _place(self, value: Value, start: Any) -> int:
        self.places[value] = len(self.start)
        self.start.append(start)
        return self.places[value]

    def _known(self, value: Value) -> int:
        if value not in self.places and value.is_constant:
            self._place(value, value.constant)
        return self.places[value]

    def _step(self, node: Node) -> Step:
        sources = [self._known(value) for value in node.inputs]
        targets = [self._place(value, None) for value in node.outputs]
        return Step(node, sources, targets)

    def _fixed(self) -> list[int]:
        """The places of what does not depend on the round, whose number is the first input."""
        changing = {0}
        for step in self.steps:
            if any(source in changing for source in step.sources):
                changing.update(step.targets)
        return [place for place in range(len(self.start)) if place not in changing]

    def run(self, rounds: int, inputs: Sequence[Any]) -> list[Any]:
        """The outputs: `Batched`, `Rounds`, or what is the same in all rounds. The first of the
        inputs is the loop's index, `Counted`.
        """
        values, _ = self.evaluate(rounds, inputs)
        return [values[place] for place in self.outputs]

    def evaluate(self, rounds: int, inputs: Sequence[Any]) -> tuple[list[Any], FirstRound]:
        """The values of all places, each of the form that it has in the first round; and that."""
        kind = likeness.kind_of(inputs[1:])
        known = self.known.get(kind)
        if isinstance(known, FirstRound):
            try:
                return self._batched(rounds, inputs, known.forms), known
            except OtherForms:
                pass  # what tensors held when the first round was run has changed
        elif known is not None:
            raise known
        known = self._first_round(inputs)
        try:
            values = self._first_batch(rounds, inputs, known)
        except NotBatchable as error:
            self._keep(kind, NotBatchable(*error.args))
            raise
        self._keep(kind, known)
        return values, known

    def _keep(self, kind: Any, found: FirstRound | NotBatchable) -> None:
        if len(self.known) >= MANY_KINDS:
            self.known.clear()
        self.known[kind] = found

    def _first_batch(self, rounds: int, inputs: Sequence[Any], known: FirstRound) -> list[Any]:
        """A batch that saves nothing but what the first round has saved."""
        start = next_sequence_number()
        values = self._batched(rounds, inputs, known.forms)
        kept = self._saved(start, values, inputs)
        if not {one.place for one in kept} <= {one.place for one in known.kept}:
            raise NotBatchable("a batch that saves what rounds do not")
        return values

    def _saved(self, start: int, values: list[Any], inputs: Sequence[Any]) -> list[Kept]:
        """What a round or a batch has saved of its inputs, and of constants and attributes."""
        results = [values[place] for place in self.outputs]
        tensors = [v.tensor if isinstance(v, Batched) else v for v in results]
        tensors = [tensor for tensor in tensors if isinstance(tensor, Tensor)]
        return saved_since(start, tensors, self._given(values, inputs))

    def _given(self, values: list[Any], inputs: Sequence[Any]) -> dict[int, Any]:
        """What was there before the loop, by place: inputs, constants, attributes."""
        given = {place: values[place] for place in self.fixed}
        given.update(enumerate(inputs))
        return given

    def _first_round(self, inputs: Sequence[Any]) -> FirstRound:
        """What the plain operators give and save."""
        start = next_sequence_number()
        values = self.start[:]
        values[: len(inputs)] = [0, *inputs[1:]]
        for step in self.steps:
            step.put(step.plain(*[values[place] for place in step.sources]), values)
        if self.look is not None:
            self.look([values[place] for place in self.outputs])
        forms = [likeness.form_of(step.result(values)) for step in self.steps]
        kept = self._saved(start, values, inputs)
        owners = owners_of(self._given(values, inputs))
        results = [values[place] for place in self.outputs]
        places = [owners.get(id(owner_of(result))) if isinstance(result, Tensor) else None
                  for result in results]  # fmt: skip
        layouts = [likeness.layout_of(result._data.shape, result._data.strides)
                   if isinstance(result, Tensor) else None for result in results]  # fmt: skip
        return FirstRound(forms, kept, places, layouts)

    def _batched(self, rounds: int, inputs: Sequence[Any], forms: list[Any]) -> list[Any]:
        values = self.start[:]
        values[: len(inputs)] = inputs
        for step, form in zip(self.steps, forms, strict=True):
            step.run(rounds, values)
            if not likeness.agrees(step.result(values), form):
                raise OtherForms(f"{step.kind}: rounds have other forms than their batch")
        return values


class Step:
    """One node."""

    __slots__ = ("kind", "names", "plain", "rule", "schema", "sources", "structure", "target",
                 "targets", "tensors")  # fmt: skip

    def __init__(self, node: Node, sources: list[int], targets: list[int]) -> None:
        self.kind = node.kind
        self.plain = plain_call(node)
        self.structure = node.kind in STRUCTURE
        self.schema = node.schema
        arguments = () if node.schema is None else node.schema.arguments
        self.names = [argument.name for argument in arguments]
        self.rule = None if node.schema is None else rule_for(node.schema)
        self.tensors = [argument.name for argument in arguments if argument.type in TENSORS]
        self.sources = sources
        self.targets = targets
        self.target = targets[0] if len(targets) == 1 else None

    def run(self, rounds: int, values: list[Any]) -> None:
        """Compute once what all rounds compute."""
        given = [values[place] for place in self.sources]
        if self.structure or not any(map(depends_on_round, given)):
            result = self.plain(*given)
        elif self.rule is None or len(self.names) != len(given):
            raise NotBatchable(self.kind)
        else:
            call = Call(self, rounds, dict(zip(self.names, given, strict=True)))
            result = self.rule(call, **call.given)
        self.put(result, values)

    def put(self, result: Any, values: list[Any]) -> None:
        """Put what the node has computed into its places."""
        if self.target is not None:
            values[self.target] = result
            return
        for place, value in zip(self.targets, result, strict=True):
            values[place] = value

    def result(self, values: list[Any]) -> Any:
        """What the node has computed."""
        if self.target is not None:
            return values[self.target]
        return [values[place] for place in self.targets]


def rule_for(schema: FunctionSchema) -> Rule | None:
    """The rule of an overload: that of its name, if it knows the parameters, or what follows from
    its row.
    """
    from flambeau.jit.optimise.batching import RULES, derived

    rule = RULES.get(schema.name)
    if rule is not None and _takes(rule, schema):
        return rule
    return derived.rule_for(schema)


def _takes(rule: Rule, schema: FunctionSchema) -> bool:
    """Whether a rule knows the parameters: other overloads of the name take lists or texts."""
    try:
        signature(rule).bind(None, **dict.fromkeys(p.name for p in schema.arguments))
    except TypeError:
        return False
    return True


TENSORS = (T.TENSOR, T.optional(T.TENSOR))


class Call:
    """One call of an operator, for rules: its arguments by the names that the schema has for them.

    tensors: the names of the parameters that are tensors.
    """

    __slots__ = ("given", "kind", "plain", "rounds", "schema", "tensors")

    def __init__(self, step: Step, rounds: int, given: dict[str, Any]) -> None:
        assert step.schema is not None
        self.kind = step.kind
        self.plain = step.plain
        self.schema: FunctionSchema = step.schema
        self.tensors = step.tensors
        self.rounds = rounds
        self.given = given

    @property
    def name(self) -> str:
        """`add` for `aten::add`."""
        return self.kind.partition("::")[2]

    def again(self, /, **changes: Any) -> Any:
        """The operator itself, with other values for some arguments, of which one is `self`."""
        return self.plain(*(self.given | changes).values())


def plain_call(node: Node) -> Callable[..., Any]:
    """What a node computes, as a function of values."""
    made = STRUCTURE.get(node.kind)
    if made is not None:
        return made(node)
    from flambeau.jit.operators.calls import implementation

    if node.schema is None:
        return _not_batchable(node)
    found: Callable[..., Any] = implementation(node.schema)
    return found


def _not_batchable(node: Node) -> Callable[..., Any]:
    def refuse(*values: Any) -> Any:
        raise NotBatchable(node.kind)

    return refuse


def _list(node: Node) -> Callable[..., Any]:
    return lambda *values: list(values)


def _tuple(node: Node) -> Callable[..., Any]:
    return lambda *values: values


def _unpack(node: Node) -> Callable[..., Any]:
    count = len(node.outputs)

    def unpack(values: Any) -> Any:
        if len(values) != count:
            raise NotBatchable("a list of another length")
        return values[0] if count == 1 else values

    return unpack


def _constant(node: Node) -> Callable[..., Any]:
    value = node.attributes.get("value")
    return lambda: value


def _attribute(node: Node) -> Callable[..., Any]:
    name = node.attributes["name"]
    return lambda owner: getattr(owner, name)


STRUCTURE: dict[str, Callable[[Node], Callable[..., Any]]] = {
    "prim::ListConstruct": _list,
    "prim::TupleConstruct": _tuple,
    "prim::ListUnpack": _unpack,
    "prim::TupleUnpack": _unpack,
    "prim::TupleIndex": lambda node: lambda values, place: values[place],
    "prim::Constant": _constant,
    "prim::unchecked_cast": lambda node: lambda value: value,
    "prim::GetAttr": _attribute,
}
"""Kinds without a schema, which put values together and take them apart: the same for all rounds
at once as for one."""
