"""What eager autograd would know of a loop's results after some number of rounds.

Whether a result requires grad, which arguments its gradient reaches, what backward reads again,
and whose memory a last state is: all that may be another in the first rounds than in those behind
them, and another after 4 rounds than after 5. So rounds are run as they stand, with the states as
they come, until one is like one before it; from then on everything repeats.

Owners of memory: ("given", position) is an argument; ("made", age, number) a tensor that was made
`age` rounds ago. Tokens are what a gradient meets on its way back from a result: ("leaf", position)
and ("saved", owner).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from flambeau._core import modes
from flambeau._tensor.tensor import Tensor, wrap
from flambeau.autograd.graph import Node, SavedResult
from flambeau.autograd.history import edge_of
from flambeau.jit.optimise.fusion.symbols import NotFusible
from flambeau.jit.optimise.scans.rounds import Round

Token = tuple[Any, ...]
LONGEST = 64
"""Rounds until they repeat, at most. Shapes have to sooner: what grows would fill the memory."""


@dataclass(frozen=True, slots=True)
class Held:
    """What is known of a value: a state between two rounds, or an element."""

    owner: Token
    whole: bool
    """Whether it is the owner itself, and no view of it."""
    learns: bool
    tokens: frozenset[Token]

    def older(self) -> Held:
        """The same, a round later."""
        tokens = frozenset([_older_token(token) for token in self.tokens])
        return Held(_older(self.owner), self.whole, self.learns, tokens)


def _older(owner: Token) -> Token:
    return ("made", owner[1] + 1, owner[2]) if owner[0] == "made" else owner


def _older_token(token: Token) -> Token:
    return ("saved", _older(token[1])) if token[0] == "saved" else token


@dataclass(frozen=True, slots=True)
class Moment:
    """Where a loop stands after a round: its states, and all elements so far together."""

    states: tuple[Held, ...]
    learns: tuple[bool, ...]
    tokens: tuple[frozenset[Token], ...]
    kinds: tuple[Any, ...]
    """Shapes, types, strides of the states."""


@dataclass(slots=True)
class Ends:
    """What is known of the results of a loop after all its rounds."""

    learns: list[bool]
    leaves: list[frozenset[int]]
    """For each result: positions of the arguments that its gradient reaches."""
    saved: list[frozenset[Token]]
    """For each result: owners of what eager operators would have saved for that."""
    owners: list[Token | None]
    """For each result that is a last state: its memory."""
    own: bool
    """Whether last states are tensors of their own, that nobody else knows."""


class Course:
    """The rounds of a loop for given arguments. `learning`: the states that require grad before
    any round.
    """

    def __init__(self, round_: Round, values: Sequence[Any]) -> None:
        self.round = round_
        self.values = values
        self.steps: dict[Any, Passed] = {}
        self.moments: list[Moment] = []
        self.period = 1
        self._known: dict[int, Ends] = {}
        self._follow()
        states = range(len(round_.states))
        self.learning = {k for k in states if any(m.states[k].learns for m in self.moments)}
        self.values = ()  # nothing of the call is kept

    # ---- the rounds

    def _follow(self) -> None:
        made, values = self.round, self.values
        given = [values[position] for position in made.states]
        first = tuple([self._first(position) for position in made.states])
        count = len(made.elements)
        nothing: frozenset[Token] = frozenset()
        kinds = tuple([_kind(g._data) for g in given])
        moment = Moment(first, (False,) * count, (nothing,) * count, kinds)
        arrays = [state._data for state in given]
        places: dict[Moment, int] = {}
        shapes: set[Any] = set()
        while moment not in places:
            if len(places) > LONGEST:
                raise NotFusible("rounds that do not repeat")
            shape = tuple([array.shape for array in arrays])
            if shape not in shapes and len(places) > len(given) + 1:
                raise NotFusible("states that go on growing")
            shapes.add(shape)
            places[moment] = len(self.moments)
            self.moments.append(moment)
            moment, arrays = self._next(moment, arrays)
        self.period = len(self.moments) - places[moment]
        for passed in self.steps.values():
            passed.arrays = []

    def _first(self, position: int) -> Held:
        learns = learning(self.values[position])
        tokens: frozenset[Token] = frozenset([("leaf", position)] if learns else [])
        return Held(("given", position), True, learns, tokens)

    def _next(self, moment: Moment, arrays: list[Any]) -> tuple[Moment, list[Any]]:
        key = (moment.kinds, tuple([state.learns for state in moment.states]))
        passed = self.steps.get(key)
        if passed is None:
            passed = self.steps[key] = Passed(self, moment, arrays)
        count = len(self.round.states)
        found = [self._composed(result, moment.states) for result in passed.results]
        states = found[:count]
        alive = {state.owner for state in states}
        elements = zip(found[count:], moment.learns, moment.tokens, strict=True)
        learns, tokens = [], []
        for held, learned, before in elements:
            learns.append(held.learns or learned)
            older = frozenset([_older_token(token) for token in before])
            tokens.append(_living(held.tokens | older, alive))
        states = [Held(s.owner, s.whole, s.learns, _living(s.tokens, alive)) for s in states]
        kinds = tuple(passed.kinds[:count])
        return Moment(tuple(states), tuple(learns), tuple(tokens), kinds), passed.arrays[:count]

    @staticmethod
    def _composed(result: Held, before: Sequence[Held]) -> Held:
        """What a result of a round is, from what is known of the states before the round."""
        older = [state.older() for state in before]
        tokens: set[Token] = set()
        for token in result.tokens:
            if token[0] == "state":
                tokens |= older[token[1]].tokens
            elif token[0] == "saved" and token[1][0] == "state":
                tokens.add(("saved", older[token[1][1]].owner))
            else:
                tokens.add(token)
        if result.owner[0] != "state":
            return Held(result.owner, result.whole, result.learns, frozenset(tokens))
        state = older[result.owner[1]]
        whole = result.whole and state.whole
        return Held(state.owner, whole, result.learns, frozenset(tokens))

    # ---- the ends

    def at(self, rounds: int) -> Ends:
        """What holds after so many rounds."""
        start = len(self.moments) - self.period
        k = rounds if rounds < start else start + (rounds - start) % self.period
        found = self._known.get(k)
        if found is None:
            found = self._known[k] = self._ends(self.moments[k])
        return found

    def _ends(self, moment: Moment) -> Ends:
        learns, tokens, owners, whole = [], [], [], True
        for kind, k in self.round.results:
            state = moment.states[k] if kind == "state" else None
            learns.append(moment.learns[k] if state is None else state.learns)
            tokens.append(moment.tokens[k] if state is None else state.tokens)
            owners.append(None if state is None else state.owner)
            whole = whole and (state is None or state.whole)
        last = [owner for owner in owners if owner is not None]
        own = whole and len(set(last)) == len(last) and all(o[0] == "made" for o in last)
        leaves = [frozenset([t[1] for t in found if t[0] == "leaf"]) for found in tokens]
        saved = [frozenset([t[1] for t in found if t[0] == "saved"]) for found in tokens]
        return Ends(learns, leaves, saved, owners, own)


def _living(tokens: frozenset[Token], alive: set[Token]) -> frozenset[Token]:
    """Without what was saved in memory that nobody can write to any more."""
    return frozenset([token for token in tokens if token[0] != "saved"
                      or token[1][0] == "given" or token[1] in alive])  # fmt: skip


def learning(tensor: Tensor) -> bool:
    """Whether gradients are recorded for a tensor."""
    return bool(modes.grad.enabled and tensor.requires_grad)


def _kind(array: Any) -> tuple[Any, ...]:
    return array.shape, array.dtype, array.strides


@dataclass
class Passed:
    """One round as its operators compute it. In what is known of its results, ("state", k) stands
    for what is known of a state before it.
    """

    course: Course
    moment: Moment
    before: list[Any]
    results: list[Held] = field(default_factory=list)
    arrays: list[Any] = field(default_factory=list)
    kinds: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.owners: dict[int, Token] = {}  # id of a tensor -> ("state", k), ("given", position)
        self.held: list[Any] = []  # so that ids stay their own
        given = self._given()
        try:
            results = self.course.round.run_plain(given)
        except Exception as error:  # the loop says so, if it is the program's
            raise NotFusible(f"a round that raises: {error}") from error
        if not all(isinstance(result, Tensor) for result in results):
            raise NotFusible("results of a round that are no tensors")
        for result in results:
            self._owner(result)
        self.results = [self._known_of(result) for result in results]
        self.arrays = [result._data for result in results]
        self.kinds = [_kind(array) for array in self.arrays]
        del self.owners, self.held, self.before

    def _given(self) -> list[Any]:
        made, values = self.course.round, self.course.values
        given: list[Any] = []
        for k, array in enumerate(self.before):
            given.append(self._alias(array, self.moment.states[k].learns, ("state", k)))
        for position in made.rows:
            row = values[position]
            number = min(len(self.course.moments), len(row._data)) - 1
            given.append(self._alias(row._data[number], learning(row), ("given", position)))
        for position in made.constants:
            value = values[position]
            if isinstance(value, Tensor):
                value = self._alias(value._data, learning(value), ("given", position))
            given.append(value)
        return given

    def _alias(self, array: Any, learns: bool, owner: Token) -> Tensor:
        alias: Tensor = wrap(array)
        if learns:
            alias.requires_grad_()  # type: ignore[attr-defined]
        self.owners[id(alias)] = owner
        self.held.append(alias)
        return alias

    def _owner(self, tensor: Tensor) -> Token:
        root = tensor if tensor._root is None else tensor._root
        if id(root) not in self.owners:
            self.owners[id(root)] = ("made", 0, len(self.owners))
            self.held.append(root)
        return self.owners[id(root)]

    def _known_of(self, result: Tensor) -> Held:
        owner = self._owner(result)
        whole = result._root is None and result._base is None
        return Held(owner, whole, bool(result.requires_grad), self._tokens(result))

    def _tokens(self, result: Tensor) -> frozenset[Token]:
        """What a gradient meets in this round."""
        tokens: set[Token] = set()
        seen: set[int] = set()
        waiting = [edge_of(result)]
        while waiting:
            edge = waiting.pop()
            if edge is None or id(edge) in seen:
                continue
            seen.add(id(edge))
            self.held.append(edge)
            if isinstance(edge, Tensor):
                owner = self._owner(edge)
                tokens.add(owner if owner[0] == "state" else ("leaf", owner[1]))
                continue
            waiting += edge.edges
            tokens |= {("saved", owner) for owner in self._saved(edge)}
        return frozenset(tokens)

    def _saved(self, node: Node) -> list[Token]:
        """Whose memory a node would read again, but for what nobody holds any more."""
        counters = {id(root._counter): root for root in self.held if isinstance(root, Tensor)}
        found: list[Token] = []
        waiting = list(node.saved or ())
        while waiting:
            kept = waiting.pop()
            if isinstance(kept, (list, tuple)):
                waiting += kept
                continue
            if isinstance(kept, SavedResult):
                kept = counters.get(id(kept.counter))
            if isinstance(kept, Tensor):
                found.append(self._owner(kept))
        return found
