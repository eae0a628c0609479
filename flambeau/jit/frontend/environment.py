"""The variables of a function while it is compiled.

Each block has a frame. A variable that is a value of the graph is written and read by nodes,
`prim::Store[name="x"](value)` and `prim::Load[name="x"]()`, which `ssa.py` replaces by the values
themselves when all blocks are known; frames hold the types of such variables, and what is no value.
"""

from __future__ import annotations

from collections.abc import Callable

from flambeau.jit.frontend.simple_value import SimpleValue, shown
from flambeau.jit.frontend.sugar import SugaredValue
from flambeau.jit.ir import types as T
from flambeau.jit.ir.graph import Block, Graph, Value
from flambeau.jit.ir.source import ScriptError, SourceRange
from flambeau.jit.operators.conversions import convert

EMPTY_LIST_HINT = (
    "\nEmpty lists default to List[Tensor]. Add a variable annotation to the assignment to create "
    "an empty list of another type (torch.jit.annotate(List[T, []]) where T is the type of "
    "elements in the list for Python 2)"
)

Lookup = Callable[[str, SourceRange], "SugaredValue | None"]


def convert_at(graph: Graph, where: SourceRange, wanted: T.Type, value: Value) -> Value:
    """The value as one of a wanted type, if there is a conversion."""
    with graph.at(where):
        return convert(graph, wanted, value, True)


class Frame:
    """What the variables of a block are."""

    def __init__(self, block: Block, parent: Frame | None) -> None:
        self.block = block
        self.parent = parent
        self.types: dict[str, T.Type] = {}
        self.sugared: dict[str, SugaredValue] = {}
        self.errors: dict[str, tuple[str, SourceRange]] = {}  # why a variable cannot be used

    def type_of(self, name: str) -> T.Type | None:
        """The type of a variable of this block or one around it."""
        frame: Frame | None = self
        while frame is not None:
            if name in frame.types:
                return frame.types[name]
            frame = frame.parent
        return None

    def has(self, name: str) -> bool:
        """Whether a variable can be used in this block."""
        frame: Frame | None = self
        while frame is not None:
            if name in frame.types or name in frame.sugared:
                return True
            frame = frame.parent
        return False


class Environment:
    """The frames of the blocks that are being compiled, the innermost first."""

    def __init__(self, graph: Graph, lookup: Lookup) -> None:
        self.graph = graph
        self.lookup = lookup  # what names mean that are no variables
        self.frame = Frame(graph.block, None)

    def push(self, block: Block) -> Frame:
        """Begin a block."""
        self.frame = Frame(block, self.frame)
        return self.frame

    def pop(self) -> Frame:
        """End a block; its frame."""
        frame = self.frame
        assert frame.parent is not None
        self.frame = frame.parent
        return frame

    # ---- reading

    def find(self, name: str, where: SourceRange, frame: Frame | None = None
             ) -> SugaredValue | None:  # fmt: skip
        """What a variable stands for; None if there is no such variable."""
        frame = frame or self.frame
        while frame is not None:
            if name in frame.sugared:
                return frame.sugared[name]
            if name in frame.types:
                return SimpleValue(self.load(name, frame.types[name], where))
            frame = frame.parent
        return None

    def load(self, name: str, type: T.Type, where: SourceRange | None) -> Value:
        """Read a variable."""
        with self.graph.at(where):
            return self.graph.insert("prim::Load", (), (type,), name=name).output

    def get(self, name: str, where: SourceRange) -> SugaredValue:
        """What a name means.

        Raises:
            ScriptError: nothing, or it is not defined on all paths.
        """
        found = self.find(name, where) or self.lookup(name, where)
        if found is not None:
            return found
        error = self._error(name)
        if error is not None:
            raise ScriptError(f"{error}and was used here", where)
        raise ScriptError(f"undefined value {name}", where)

    def value(self, name: str, where: SourceRange) -> Value:
        """The value of a variable."""
        return self.get(name, where).as_value(self.graph, where)

    def _error(self, name: str) -> ScriptError | None:
        frame: Frame | None = self.frame
        while frame is not None:
            if name in frame.errors:
                return ScriptError(*frame.errors[name])
            frame = frame.parent
        return None

    # ---- writing

    def set(self, name: str, where: SourceRange, value: SugaredValue | Value,
            annotated: T.Type | None = None) -> None:  # fmt: skip
        """Assign to a variable; its type stays what it was in the blocks around this one."""
        if isinstance(value, SimpleValue):
            value = value.value
        if isinstance(value, Value):
            self._name(name, value)
        known = self.frame.parent is not None and self._outer(name, where)
        if known:
            value = self._reassigned(name, where, value, known, annotated)
        if not isinstance(value, Value):
            self.frame.sugared[name] = value
            self.frame.types.pop(name, None)
            return
        if annotated is not None and not value.type.is_subtype_of(annotated):
            raise ScriptError(
                f"Variable '{name}' is annotated with type {shown(annotated)} but is being "
                f"assigned to a value of type {shown(value.type)}", where
            )  # fmt: skip
        self.store(name, where, value, annotated or value.type)

    def store(self, name: str, where: SourceRange | None, value: Value, type: T.Type) -> None:
        """Write a variable."""
        self.frame.types[name] = type
        self.frame.sugared.pop(name, None)
        with self.graph.at(where):
            self.graph.insert("prim::Store", (value,), (), name=name)

    def remove(self, name: str, where: SourceRange) -> None:
        """Forget a variable of this block: `del x`."""
        known = name in self.frame.types or name in self.frame.sugared
        if not known:
            raise ScriptError(f"undefined value {name}", where)
        self.frame.types.pop(name, None)
        self.frame.sugared.pop(name, None)

    def _outer(self, name: str, where: SourceRange) -> SugaredValue | T.Type | None:
        """What a variable is in the blocks around this one."""
        frame = self.frame.parent
        while frame is not None:
            if name in frame.sugared:
                return frame.sugared[name]
            if name in frame.types:
                return frame.types[name]
            frame = frame.parent
        return None

    def _name(self, name: str, value: Value) -> None:
        block = value.block if value.node is None else value.node.block
        if not value.name and is_meaningful(name) and block is self.frame.block:
            value.name = name

    def _reassigned(self, name: str, where: SourceRange, value: SugaredValue | Value,
                    known: SugaredValue | T.Type, annotated: T.Type | None) -> Value:  # fmt: skip
        """The value in the type that the variable has."""
        if annotated is not None:
            raise ScriptError(
                f"Attempting to declare and annotate the type of variable '{name}' that is already "
                "defined in an outer block", where
            )  # fmt: skip
        if not isinstance(value, Value):
            raise ScriptError(
                f"Cannot re-assign '{name}' to a value of type {value.kind} because {name} is not "
                "a first-class value.  Only reassignments to first-class values are allowed", where
            )  # fmt: skip
        if isinstance(known, SugaredValue):
            raise ScriptError(
                f"Cannot re-assign '{name}' because it has type {known.kind} and {name} is not a "
                "first-class value.  Only reassignments to first-class values are allowed", where
            )  # fmt: skip
        converted = convert_at(self.graph, where, known, value)
        if converted.type.is_subtype_of(known):
            return converted
        message = (
            f"Variable '{name}' previously had type {shown(known)} but is now being assigned to a "
            f"value of type {shown(converted.type)}"
        )
        if isinstance(known, T.ListType) and isinstance(converted.type, T.ListType):
            message += EMPTY_LIST_HINT
        raise ScriptError(message + "\n", where)


def is_meaningful(name: str) -> bool:
    """Whether a name is one of a program's variables, not of a temporary."""
    if not name or name[0] == "$":
        return False
    return name[0] != "_" or not name[1:].isdigit() and name != "_"
