"""Functions: a schema and a graph; and the compilation units that hold them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flambeau.jit.ir.graph import Graph
from flambeau.jit.ir.source import SourceRange
from flambeau.jit.ir.types import ClassType, Type

REQUIRED: Any = type("Required", (), {"__repr__": lambda self: "REQUIRED"})()
"""The default of a parameter that has none."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter or result of a schema.

    length: of `int[2]`, where one number may stand for that many.
    alias: the mark of the schema, without brackets: "a", "a!", "a -> *"; "" for none.
    """

    name: str
    type: Type
    default: Any = REQUIRED
    keyword_only: bool = False
    length: int | None = None
    alias: str = ""

    @property
    def written(self) -> bool:
        """Whether the operator writes to it."""
        return "!" in self.alias

    # what schemas of operators are asked for by programs

    @property
    def kwarg_only(self) -> bool:
        """Whether it has to be named."""
        return self.keyword_only

    @property
    def default_value(self) -> Any:
        """Its default; None, too, where it has none."""
        return None if self.default is REQUIRED else self.default

    def has_default_value(self) -> bool:
        """Whether it may be left out."""
        return self.default is not REQUIRED

    @property
    def alias_info(self) -> AliasInfo | None:
        """Whose memory it shares, and whether that is written to."""
        return AliasInfo(self.alias) if self.alias else None

    @property
    def is_write(self) -> bool:
        """Whether the operator writes to it."""
        return self.written

    @property
    def is_out(self) -> bool:
        """Whether it is there for the result alone: `out=`."""
        return self.written and self.keyword_only

    @property
    def N(self) -> int | None:
        """The length of a list for which one number may stand."""
        return self.length

    @property
    def real_type(self) -> Type:
        """The type; of enumerations, that of their numbers."""
        return self.type


@dataclass(frozen=True, slots=True)
class AliasInfo:
    """The alias mark of a parameter or result: "a", "a!", "a -> *"."""

    mark: str

    @property
    def is_write(self) -> bool:
        """Whether there is a `!`."""
        return "!" in self.mark

    @property
    def before_set(self) -> set[str]:
        """The names of memory before the call."""
        return set(self.mark.partition("->")[0].replace("!", "").strip().split("|"))

    @property
    def after_set(self) -> set[str]:
        """The names of memory after it."""
        after = self.mark.partition("->")[2] or self.mark
        return set(after.replace("!", "").strip().split("|"))


@dataclass(frozen=True, slots=True, repr=False)
class FunctionSchema:
    """Name, parameters and results. For operators `name` has its namespace: `aten::add`."""

    name: str
    overload: str
    arguments: tuple[Parameter, ...]
    returns: tuple[Parameter, ...]
    vararg: bool = False  # `prim::min(…)`: any arguments
    varret: bool = False

    @property
    def full_name(self) -> str:
        """`aten::add.Tensor`."""
        return f"{self.name}.{self.overload}" if self.overload else self.name

    @property
    def overload_name(self) -> str:
        """The name of the overload; "" for the one without."""
        return self.overload

    @property
    def is_mutable(self) -> bool:
        """Whether an argument is written to."""
        return any(parameter.written for parameter in self.arguments)

    def __str__(self) -> str:
        from flambeau.jit.operators.matching import spelled

        return spelled(self)

    __repr__ = __str__

    def fits(self, wanted: FunctionSchema) -> bool:
        """Whether a method of this schema may implement one of an interface; `self` apart."""
        mine, theirs = self.arguments[1:], wanted.arguments[1:]
        if len(mine) < len(theirs) or any(a.default is REQUIRED for a in mine[len(theirs) :]):
            return False
        pairs = zip(mine, theirs, strict=False)
        if not all(b.type.is_subtype_of(a.type) and a.name == b.name for a, b in pairs):
            return False
        results = zip(self.returns, wanted.returns, strict=True)
        return all(a.type.is_subtype_of(b.type) for a, b in results)


class Function:
    """A function or method of a compilation unit.

    qualified_name: `__torch__.batch_gather`, or `__torch__.models.Net.forward` for a method, whose
        first parameter is `self`, of the class's type.
    define: fills in `graph` and `schema`; called when one of them is first asked for, so that
        functions may call each other in any order.
    """

    def __init__(self, qualified_name: str, unit: CompilationUnit, *,
                 graph: Graph | None = None, schema: FunctionSchema | None = None,
                 define: Callable[[Function], None] | None = None) -> None:  # fmt: skip
        self.qualified_name = qualified_name
        self.unit = unit
        self._graph = graph
        self._schema = schema
        self._define = define
        self.defining = False  # whether it is being compiled right now: a recursive call
        self.where: SourceRange | None = None  # its definition
        self.doc = ""
        self.compiled: dict[Any, Any] = {}  # what executors made of it: see `jit.run`

    @property
    def name(self) -> str:
        """The last part of the qualified name."""
        return self.qualified_name.rpartition(".")[2]

    @property
    def graph(self) -> Graph:
        """The body, after the clean-up passes, calls not inlined."""
        self.ensure_defined()
        assert self._graph is not None
        return self._graph

    @graph.setter
    def graph(self, graph: Graph) -> None:
        self._graph = graph
        self.compiled.clear()

    @property
    def schema(self) -> FunctionSchema:
        """The parameters, `self` included, with their defaults, and the result."""
        if self._schema is None:
            self.ensure_defined()
        assert self._schema is not None
        return self._schema

    @schema.setter
    def schema(self, schema: FunctionSchema) -> None:
        self._schema = schema

    def ensure_defined(self) -> None:
        """Compile it, if that has not been done."""
        if self._define is not None and not self.defining:
            self.defining = True
            try:
                self._define(self)
                self._define = None
            finally:
                self.defining = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run it: arguments are bound and checked by the schema."""
        entry = self.compiled.get("entry")
        if entry is None:
            from flambeau.jit.run import entry_of

            entry = entry_of(self)
        return entry(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<Function {self.qualified_name}>"


class CompilationUnit:
    """Functions and classes by qualified name. What scripting makes stands in one unit of the
    process; each archive that is loaded has its own.
    """

    def __init__(self) -> None:
        self.functions: dict[str, Function] = {}
        self.types: dict[str, Type] = {}  # classes, interfaces, NamedTuples, enumerations
        self._mangled = 0
        self.is_foreign = False  # an archive's: its types are claims, which are checked

    def mangle(self, qualified_name: str) -> str:
        """The name itself if it is free, else with a part `___torch_mangle_3` in it."""
        name = qualified_name
        while name in self.types or name in self.functions:
            prefix, _, last = qualified_name.rpartition(".")
            head, _, tail = prefix.rpartition(".")
            prefix = head if tail.startswith("___torch_mangle_") else prefix
            name = f"{prefix}.___torch_mangle_{self._mangled}.{last}"
            self._mangled += 1
        return name

    def add_class(self, qualified_name: str, *, is_module: bool = False) -> ClassType:
        """A new class; its name is mangled if it is taken."""
        name = self.mangle(qualified_name)
        made = ClassType(name, self, is_module=is_module)
        self.types[name] = made
        return made

    def add_function(self, function: Function) -> Function:
        """Hold a function under its qualified name."""
        self.functions[function.qualified_name] = function
        return function


PYTHON_UNIT = CompilationUnit()
"""What `torch.jit.script` and `torch.jit.trace` make."""
