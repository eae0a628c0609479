"""The types of TorchScript, and which of them can stand where another is wanted.

Each type prints in two ways: `annotation` as Python code writes it (`Optional[List[int]]`), and
`str()` as graphs and schemas write it (`int[]?`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flambeau.jit.ir.function import CompilationUnit, Function


class Type:
    """A type. Types are equal by what they are made of, classes by identity."""

    @property
    def annotation(self) -> str:
        """The type as Python code writes it."""
        return str(self)

    @property
    def parts(self) -> tuple[Type, ...]:
        """The types that this one is made of."""
        return ()

    def with_parts(self, parts: Sequence[Type]) -> Type:
        """The same kind of type made of other types."""
        return self

    def is_subtype_of(self, other: Type) -> bool:
        """Whether a value of this type may stand where one of `other` is wanted."""
        return is_subtype(self, other)


@dataclass(frozen=True, slots=True)
class SimpleType(Type):
    """A type without parts: Tensor, int, float, bool, str, NoneType, Any, Device, …"""

    name: str
    spelled: str = ""  # in annotations, where that differs
    inferred: bool = field(default=False, compare=False)  # assumed where nothing was annotated
    facts: str = field(default="", compare=False)  # of a tensor, what graphs of traces tell

    def __str__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, SimpleType) and self.name == other.name)

    def __hash__(self) -> int:
        return hash(self.name)  # asked for very often

    @property
    def annotation(self) -> str:
        return self.spelled or self.name

    def __repr__(self) -> str:
        return f"<type {self.name}>"


TENSOR = SimpleType("Tensor")
INFERRED_TENSOR = SimpleType("Tensor", inferred=True)  # equal to TENSOR; errors name it otherwise
INT = SimpleType("int")
FLOAT = SimpleType("float")
COMPLEX = SimpleType("complex")
BOOL = SimpleType("bool")
STRING = SimpleType("str")
NONE = SimpleType("NoneType")
ANY = SimpleType("Any")
NUMBER = SimpleType("Scalar", "number")  # int, float, complex
DEVICE = SimpleType("Device")
GENERATOR = SimpleType("Generator")
STREAM = SimpleType("Stream")
STORAGE = SimpleType("Storage")
CAPSULE = SimpleType("Capsule")
QSCHEME = SimpleType("QScheme")
ANY_LIST = SimpleType("list")
ANY_TUPLE = SimpleType("tuple")
ANY_CLASS = SimpleType("ClassType")
ANY_ENUM = SimpleType("AnyEnumType")
NO_RETURN = SimpleType("NoReturn")  # what a block that raises gives: fits everywhere

SIMPLE = {
    t.name: t
    for t in (TENSOR, INT, FLOAT, COMPLEX, BOOL, STRING, NONE, ANY, NUMBER, DEVICE, GENERATOR,
              STREAM, STORAGE, CAPSULE, QSCHEME, ANY_LIST, ANY_TUPLE, ANY_CLASS, ANY_ENUM)
}  # fmt: skip
"""The simple types by the names that schemas give them."""


@dataclass(frozen=True, slots=True)
class OptionalType(Type):
    """`Optional[T]`; make it with `optional`, which keeps it flat."""

    inner: Type

    def __str__(self) -> str:
        return f"{self.inner}?"

    @property
    def annotation(self) -> str:
        return f"Optional[{self.inner.annotation}]"

    @property
    def parts(self) -> tuple[Type, ...]:
        return (self.inner,)

    def with_parts(self, parts: Sequence[Type]) -> Type:
        return optional(parts[0])


@dataclass(frozen=True, slots=True)
class UnionType(Type):
    """`Union[A, B]`; make it with `union`, which sorts out what is one type after all."""

    members: tuple[Type, ...]

    def __str__(self) -> str:
        return f"Union({', '.join(map(str, self.members))})"

    @property
    def annotation(self) -> str:
        return f"Union[{', '.join(t.annotation for t in self.members)}]"

    @property
    def parts(self) -> tuple[Type, ...]:
        return self.members

    def with_parts(self, parts: Sequence[Type]) -> Type:
        return union(parts)


@dataclass(frozen=True, slots=True)
class ListType(Type):
    """`List[T]`."""

    element: Type

    def __str__(self) -> str:
        return f"{self.element}[]"

    @property
    def annotation(self) -> str:
        return f"List[{self.element.annotation}]"

    @property
    def parts(self) -> tuple[Type, ...]:
        return (self.element,)

    def with_parts(self, parts: Sequence[Type]) -> Type:
        return ListType(parts[0])


@dataclass(frozen=True, slots=True)
class DictType(Type):
    """`Dict[K, V]`; keys are int, float, bool, complex, str, Tensor or Device."""

    key: Type
    value: Type

    def __str__(self) -> str:
        return f"Dict({self.key}, {self.value})"

    @property
    def annotation(self) -> str:
        return f"Dict[{self.key.annotation}, {self.value.annotation}]"

    @property
    def parts(self) -> tuple[Type, ...]:
        return (self.key, self.value)

    def with_parts(self, parts: Sequence[Type]) -> Type:
        return DictType(parts[0], parts[1])


@dataclass(frozen=True, slots=True)
class TupleType(Type):
    """`Tuple[A, B]`; with `qualified_name` and `fields`, a NamedTuple."""

    elements: tuple[Type, ...]
    qualified_name: str = ""
    fields: tuple[str, ...] = ()
    defaults: tuple[Any, ...] = ()  # of the last fields

    def __hash__(self) -> int:
        return hash(self.qualified_name or self.elements)

    def __str__(self) -> str:
        if self.qualified_name:
            return self.qualified_name
        return f"({', '.join(map(str, self.elements))})"

    @property
    def annotation(self) -> str:
        if self.qualified_name:
            return self.qualified_name
        if not self.elements:
            return "Tuple[()]"
        return f"Tuple[{', '.join(t.annotation for t in self.elements)}]"

    @property
    def parts(self) -> tuple[Type, ...]:
        return self.elements

    def with_parts(self, parts: Sequence[Type]) -> Type:
        return TupleType(tuple(parts), self.qualified_name, self.fields, self.defaults)


@dataclass(frozen=True, slots=True)
class FutureType(Type):
    """`Future[T]`: what `fork` gives."""

    inner: Type

    def __str__(self) -> str:
        return f"Future({self.inner})"

    @property
    def annotation(self) -> str:
        return f"Future[{self.inner.annotation}]"

    @property
    def parts(self) -> tuple[Type, ...]:
        return (self.inner,)

    def with_parts(self, parts: Sequence[Type]) -> Type:
        return FutureType(parts[0])


@dataclass(frozen=True, slots=True)
class VariableType(Type):
    """A type variable of a schema: `t` in `aten::append.t(t[](a!) self, t(c -> *) el)`."""

    name: str

    def __str__(self) -> str:
        return self.name


class FunctionType(Type):
    """The type of a constant that is a function: a node `prim::Constant[name="f"]` has it."""

    def __init__(self, function: Function) -> None:
        self.function = function

    def __str__(self) -> str:
        return "Function"

    @property
    def annotation(self) -> str:
        return self.function.qualified_name


class EnumType(Type):
    """An enumeration. `members` maps names to values; `python` is the class of its members."""

    def __init__(self, qualified_name: str, value_type: Type, python: Any) -> None:
        self.qualified_name = qualified_name
        self.value_type = value_type
        self.python = python  # an enum.Enum

    def __str__(self) -> str:
        return f"Enum<{self.qualified_name}>"

    @property
    def annotation(self) -> str:
        return self.qualified_name


@dataclass(slots=True)
class Attribute:
    """An attribute of a class. `kind`: "parameter", "buffer", "module" or "attribute"."""

    name: str
    type: Type
    kind: str = "attribute"


class ClassType(Type):
    """A class or module: attributes in the order of definition, constants, methods.

    qualified_name: as in archives, `__torch__.models.Net`.
    unit: the compilation unit that it belongs to.
    """

    def __init__(self, qualified_name: str, unit: CompilationUnit | None = None, *,
                 is_module: bool = False) -> None:  # fmt: skip
        self.qualified_name = qualified_name
        self.unit = unit
        self.is_module = is_module
        self.attributes: dict[str, Attribute] = {}
        self.constants: dict[str, Any] = {}
        self.methods: dict[str, Function] = {}
        self.properties: dict[str, tuple[Function, Function | None]] = {}
        self.forward_hooks: list[Function] = []
        self.forward_pre_hooks: list[Function] = []
        self.python: Any = None  # the Python class that it was made from, if there is one

    @property
    def name(self) -> str:
        """The last part of the qualified name."""
        return self.qualified_name.rpartition(".")[2]

    def add(self, name: str, type: Type, kind: str = "attribute") -> Attribute:
        """Declare an attribute."""
        if name in self.attributes or name in self.constants:
            raise ValueError(f"attribute '{name}' already exists in {self.qualified_name}")
        attribute = self.attributes[name] = Attribute(name, type, kind)
        return attribute

    def method(self, name: str) -> Function | None:
        """The method of a name."""
        return self.methods.get(name)

    def __str__(self) -> str:
        return self.qualified_name

    def __repr__(self) -> str:
        return f"<class type {self.qualified_name}>"


class InterfaceType(Type):
    """What a class must have to stand in a place: names and schemas of methods."""

    def __init__(self, qualified_name: str, *, is_module: bool = False) -> None:
        self.qualified_name = qualified_name
        self.is_module = is_module
        self.methods: dict[str, Any] = {}  # name -> FunctionSchema

    def __str__(self) -> str:
        return self.qualified_name

    def implemented_by(self, other: Type) -> bool:
        """Whether another type has all methods, with schemas that fit."""
        have = getattr(other, "methods", None)
        if have is None or (self.is_module and not other.is_module):  # type: ignore[attr-defined]
            return False
        for name, wanted in self.methods.items():
            found = have.get(name)
            if found is None:
                return False
            schema = found.schema if hasattr(found, "schema") else found
            if not schema.fits(wanted):
                return False
        return True


def tensor_with(facts: str) -> Type:
    """Tensor, with facts that the texts of graphs show: `Float(2, 3, strides=[3, 1], …)`. It is
    equal to TENSOR.
    """
    return SimpleType("Tensor", facts=facts)


def without_facts(type: Type) -> Type:
    """The same type without facts about tensors."""
    if type == TENSOR:
        return TENSOR if type.facts else type  # type: ignore[attr-defined]
    return type.with_parts([*map(without_facts, type.parts)]) if type.parts else type


def optional(inner: Type) -> Type:
    """`Optional[inner]`, flat: an optional of an optional is that optional."""
    if inner in (NONE, ANY) or isinstance(inner, OptionalType):
        return inner
    if isinstance(inner, UnionType):
        return union((*inner.members, NONE))
    return OptionalType(inner)


def union(members: Sequence[Type]) -> Type:
    """The union of types: flat, without repetitions and subtypes of other members."""
    flat: list[Type] = []
    for member in _flattened(members):
        if not any(member.is_subtype_of(known) for known in flat):
            flat = [known for known in flat if not known.is_subtype_of(member)]
            flat.append(member)
    if len(flat) == 1:
        return flat[0]
    if len(flat) == 2 and NONE in flat:
        return OptionalType(flat[0] if flat[1] == NONE else flat[1])
    return UnionType(tuple(sorted(flat, key=union_rank)))


RANKS = (ANY, ANY_ENUM, TENSOR, STORAGE, TupleType, ListType, DictType, NUMBER, FLOAT, COMPLEX,
         FutureType, INT, NONE, STRING, GENERATOR, BOOL, OptionalType, DEVICE, STREAM, ClassType,
         CAPSULE, InterfaceType, QSCHEME, ANY_LIST, ANY_TUPLE, ANY_CLASS)  # fmt: skip
"""The order of the members of unions; types of one rank follow their texts."""


def union_rank(member: Type) -> tuple[int, str]:
    """Where a member of a union stands among the others."""
    for rank, kind in enumerate(RANKS):
        same = isinstance(member, kind) if isinstance(kind, type) else member == kind
        if same:
            return rank, str(member)
    return len(RANKS), str(member)


def _flattened(members: Sequence[Type]) -> Iterator[Type]:
    for member in members:
        if isinstance(member, UnionType):
            yield from member.members
        elif isinstance(member, OptionalType):
            yield member.inner
            yield NONE
        else:
            yield member


def alternatives(type: Type) -> tuple[Type, ...]:
    """The types that a value may have: several for optionals, unions and numbers."""
    if type == NUMBER:
        return (INT, FLOAT, COMPLEX)
    return tuple(_flattened((type,)))


def is_subtype(one: Type, other: Type) -> bool:
    """Whether a value of type `one` may stand where `other` is wanted. Lists, dictionaries and
    futures are invariant, tuples covariant, as in torch.
    """
    if one is other or one in (other, NO_RETURN) or other == ANY:
        return True
    if isinstance(one, SimpleType) and isinstance(other, SimpleType):
        return other == NUMBER and one in (INT, FLOAT, COMPLEX)
    if isinstance(one, (OptionalType, UnionType)):
        return all(is_subtype(part, other) for part in _flattened((one,)))
    if isinstance(other, (OptionalType, UnionType)):
        return any(is_subtype(one, part) for part in _flattened((other,)))
    if isinstance(one, TupleType) and isinstance(other, TupleType):
        return _is_subtuple(one, other)
    return _is_subclass(one, other)


def _is_subtuple(one: TupleType, other: TupleType) -> bool:
    if other.qualified_name and one.fields != other.fields:
        return False
    return len(one.elements) == len(other.elements) and all(
        map(is_subtype, one.elements, other.elements)
    )


def _is_subclass(one: Type, other: Type) -> bool:
    if isinstance(other, InterfaceType):
        return other.implemented_by(one)
    if other == ANY_LIST:
        return isinstance(one, ListType)
    if other == ANY_TUPLE:
        return isinstance(one, TupleType)
    if other == ANY_CLASS:
        return isinstance(one, ClassType)
    return other == ANY_ENUM and isinstance(one, EnumType)


def unify(one: Type, other: Type, wanted: Type | None = None, to_union: bool = False
          ) -> Type | None:  # fmt: skip
    """The type that both branches of an `if` have in common, or None.

    A subtype gives way; None and T make Optional[T]; tuples are unified element by element.
    `wanted`: a type that has been annotated and is taken if both fit. `to_union`: what has nothing
    narrower in common, within tuples too, makes a Union.
    """
    if wanted is not None and is_subtype(one, wanted) and is_subtype(other, wanted):
        return wanted
    if is_subtype(one, other):
        return other
    if is_subtype(other, one):
        return one
    if NONE in (one, other):
        return optional(other if one == NONE else one)
    if isinstance(one, OptionalType) and is_subtype(other, one.inner):
        return one
    if isinstance(other, OptionalType) and is_subtype(one, other.inner):
        return other
    found = None
    if isinstance(one, TupleType) and isinstance(other, TupleType):
        found = _unify_tuples(one, other, to_union)
    return union((one, other)) if found is None and to_union else found


def common(one: Type, other: Type) -> Type:
    """The type that two values have in common; a Union, perhaps within tuples, if nothing else."""
    found = unify(one, other, to_union=True)
    assert found is not None
    return found


def _unify_tuples(one: TupleType, other: TupleType, to_union: bool) -> Type | None:
    if len(one.elements) != len(other.elements):
        return None
    pairs = zip(one.elements, other.elements, strict=True)
    parts = [unify(*pair, to_union=to_union) for pair in pairs]
    return None if None in parts else TupleType(tuple(parts))  # type: ignore[arg-type]
