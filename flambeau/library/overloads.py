"""`torch.ops`: every operator by the name and the overload that PyTorch gives it.

    torch.ops.aten.add.Tensor(x, y)        # one overload
    torch.ops.aten.add(x, y)               # the first overload that fits
    torch.ops.mylib.double(x)              # what a program has defined by `torch.library`

The schemas of `aten` are those that scripts know (`jit/operators/table.py`), and so is what
carries them out; operators that programs define are in `operators.py`, and scripts know them, too.
"""

from __future__ import annotations

import enum
import importlib
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

from flambeau._core import modes
from flambeau._ops.table.index import ALIASES
from flambeau._ops.table.op import BY_NAME
from flambeau._ops.transforms.dispatching import TENSOR_FORMS
from flambeau._tensor import overriding
from flambeau._tensor.conversion import tensor
from flambeau.jit.ir import types as T
from flambeau.jit.ir.function import FunctionSchema
from flambeau.jit.operators import calls, table
from flambeau.jit.operators.registry import FUNCTIONS
from flambeau.jit.run.binding import Binder

NO_MATCH = "Overloaded torch operator invoked from Python failed to match any schema:\n{}"


class Tag(enum.Enum):
    """What is known of an operator: whether it works element by element, draws numbers, is a view.

    An operator has its marks in `tags`, as `torch.ops.aten.add.Tensor.tags`.

    >>> import flambeau as torch
    >>> torch.Tag.pointwise in torch.ops.aten.add.Tensor.tags
    True
    """

    core = 0
    cudagraph_unsafe = 1
    data_dependent_output = 2
    dynamic_output_shape = 3
    flexible_layout = 4
    generated = 5
    inplace_view = 6
    maybe_aliasing_or_mutating = 7
    needs_contiguous_strides = 8
    needs_exact_strides = 9
    needs_fixed_stride_order = 10
    nondeterministic_bitwise = 11
    nondeterministic_seeded = 12
    pointwise = 16
    pt2_compliant_tag = 17
    view_copy = 18


class OperatorBase:
    """What operators of all kinds have in common: `torch._ops.OperatorBase`."""

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self


class OpOverload(OperatorBase):
    """One overload of an operator: called with what its schema names.

    Attributes:
        _schema: the schema; `arguments`, `returns`, `is_mutable`.
        overloadpacket: the operator with all of its overloads.
        tags: what is known of it; of PyTorch's operators `Tag.pointwise` alone.
    """

    def __init__(self, packet: OpOverloadPacket, schema: FunctionSchema) -> None:
        self._schema = schema
        self._overloadpacket = packet
        self._overloadname = schema.overload or "default"
        self._opname = packet.__name__
        self._name = schema.full_name
        self.__name__ = f"{self._opname}.{self._overloadname}"
        self.__qualname__ = str(self)
        self.__module__ = packet.__module__
        takes_numbers = ALIASES.get(self._opname.removesuffix("_"), self._opname.removesuffix("_"))
        kind = NumberBinder if takes_numbers in TENSOR_FORMS else Binder
        self.binder = kind(schema.name, schema)

    @property
    def namespace(self) -> str:
        """`aten`."""
        return self._schema.name.partition("::")[0]

    _namespace = namespace

    @property
    def overloadpacket(self) -> OpOverloadPacket:
        """The operator with all of its overloads."""
        return self._overloadpacket

    @cached_property
    def is_view(self) -> bool:
        """Whether the result is a view of an argument that it does not write to."""
        marks = [p.alias for p in self._schema.arguments if p.alias]
        return bool(marks) and not any("!" in mark for mark in marks)

    @cached_property
    def tags(self) -> list[Tag]:
        """What is known of the operator."""
        defined = DEFINED.get(self._name)
        if defined is not None:
            return list(defined.tags)
        rows = BY_NAME.get(self._opname.removesuffix("_"), ())
        return [Tag.pointwise] if any(op.kind == "pointwise" for op in rows) else []

    def name(self) -> str:
        """`aten::add.Tensor`."""
        return self._name

    @property
    def op(self) -> Callable[..., Any]:
        """The function that is called."""
        return self.__call__

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if modes.stacks.function_modes or modes.watch.overriding:
            taken, result = _asked(self, args, kwargs)
            if taken:
                return result
        return self.run(self.binder.bind(args, kwargs))

    def fits(self, args: Any, kwargs: dict[str, Any]) -> bool:
        """Whether arguments are those that the schema asks for."""
        if len(args) > sum(not p.keyword_only for p in self._schema.arguments):
            return False
        try:
            self.binder.bind(args, kwargs)
        except RuntimeError:
            return False
        return True

    def run(self, values: list[Any]) -> Any:
        """The result for arguments that fit the schema, in its order."""
        return self._implementation(*values)

    @cached_property
    def _implementation(self) -> Callable[..., Any]:
        return calls.implementation(self._schema)

    def redispatch(self, keys: Any, /, *args: Any, **kwargs: Any) -> Any:
        """A call; which layers of PyTorch's dispatcher are left out makes no difference here."""
        return self(*args, **kwargs)

    def has_kernel_for_dispatch_key(self, key: Any) -> bool:
        """Whether there is an implementation for a key such as "CPU"."""
        defined = DEFINED.get(self._name)
        named = getattr(key, "name", str(key))
        return named == "CPU" if defined is None else named in defined.kernels

    def decompose(self, *args: Any, **kwargs: Any) -> Any:
        """NotImplemented: what it is made of is not told."""
        return NotImplemented

    def __str__(self) -> str:
        return f"{self.namespace}.{self._opname}.{self._overloadname}"

    def __repr__(self) -> str:
        place = f"{self.namespace}.{self._opname}"
        return f"<OpOverload(op='{place}', overload='{self._overloadname}')>"

    def __reduce__(self) -> Any:
        return find, (self._name,)


def _asked(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[bool, Any]:
    """Whether a mode or a class with `__torch_function__` took a call over, and the result."""
    found = overriding.overloaded((*args, *kwargs.values()))
    if found or (modes.stacks.function_modes and not overriding.state.off):
        return True, overriding.handle(function, found, args, kwargs)
    return False, None


class NumberBinder(Binder):
    """Arguments of an operator that takes numbers for tensors."""

    def one(self, index: int, value: Any) -> Any:
        """One argument; a number may stand for a tensor."""
        is_number = isinstance(value, (bool, int, float, complex))
        if is_number and self.schema.arguments[index].type == T.TENSOR:
            return value if index else tensor(value)
        return super().one(index, value)


class OpOverloadPacket(OperatorBase):
    """An operator with all of its overloads: `torch.ops.aten.add`."""

    def __init__(self, namespace: str, name: str, schemas: tuple[FunctionSchema, ...]) -> None:
        self.__name__ = self.__qualname__ = name
        self.__module__ = f"torch._ops.{namespace}"
        self._qualified_op_name = f"{namespace}::{name}"
        self._schemas = {schema.overload: schema for schema in schemas}
        self._made: dict[str, OpOverload] = {}

    @property
    def _overload_names(self) -> list[str]:
        return list(self._schemas)

    def overloads(self) -> list[str]:
        """The names of the overloads; `default` is the one without a name."""
        return [name or "default" for name in self._schemas]

    @property
    def op(self) -> Callable[..., Any]:
        """The function that is called."""
        return self.__call__

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        key = "" if name == "default" else name
        if key not in self._schemas:
            raise AttributeError(f"The underlying op of '{self}' has no overload name '{name}'")
        if key not in self._made:
            self._made[key] = OpOverload(self, self._schemas[key])
        return self._made[key]

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if modes.stacks.function_modes or modes.watch.overriding:
            taken, result = _asked(self, args, kwargs)
            if taken:
                return result
        reasons = []
        for name in self.overloads():
            overload: OpOverload = getattr(self, name)
            try:
                values = overload.binder.bind(args, kwargs)
            except RuntimeError as error:
                reasons.append(error)
            else:
                return overload.run(values)
        if len(reasons) == 1:
            raise reasons[0]
        raise RuntimeError(NO_MATCH.format("".join(f"{reason}\n\n" for reason in reasons)))

    def __iter__(self) -> Iterator[str]:
        return iter(self.overloads())

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.overloads()]

    def __str__(self) -> str:
        return self._qualified_op_name.replace("::", ".")

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"


# ---- what programs define

DEFINED: dict[str, Any] = {}
"""Operators that programs have defined, by full name: see `operators.Operator`."""


def define(operator: Any) -> None:
    """Make an operator known, here and to scripts."""
    DEFINED[operator.schema.full_name] = operator
    table.define(operator.schema)
    FUNCTIONS[operator.schema.full_name] = operator.call
    _forget(operator.schema)


def undefine(operator: Any) -> None:
    """Forget an operator."""
    DEFINED.pop(operator.schema.full_name, None)
    table.undefine(operator.schema)
    FUNCTIONS.pop(operator.schema.full_name, None)
    _forget(operator.schema)


def _forget(schema: FunctionSchema) -> None:
    namespace, _, name = schema.name.partition("::")
    made = vars(ops).get(namespace)
    if made is not None:
        vars(made).pop(name, None)


def find(name: str) -> OpOverload:
    """The overload of a full name, `aten::add.Tensor`.

    Raises:
        AttributeError: there is none.
    """
    head, _, rest = name.partition("::")
    operator, _, overload = rest.partition(".")
    found: OpOverload = getattr(getattr(getattr(ops, head), operator), overload or "default")
    return found


# ---- namespaces


class _OpNamespace(ModuleType):
    """The operators of a namespace: `torch.ops.aten`."""

    def __init__(self, name: str) -> None:
        super().__init__(f"torch.ops.{name}")
        self.__file__ = "torch.ops"
        self.name = name

    def __getattr__(self, name: str) -> OpOverloadPacket:
        full = f"{self.name}::{name}"
        schemas = () if name.startswith("__") else table.overloads(full) or absent(full)
        if not schemas:
            raise AttributeError(f"'_OpNamespace' '{self.name}' object has no attribute '{name}'")
        packet = OpOverloadPacket(self.name, name, schemas)
        setattr(self, name, packet)
        return packet

    def __iter__(self) -> Iterator[str]:
        head = f"{self.name}::"
        return iter([name[len(head) :] for name in table.names() if name.startswith(head)])

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]


def can_run(name: str) -> bool:
    """Whether there is an operator of a name that does not only say that it is not here."""
    return bool(table.overloads(name))


@cache
def _absent_texts() -> dict[str, list[str]]:
    """What ATen has and flambeau cannot run, by name: libraries mention it while they are
    imported."""
    found: dict[str, list[str]] = {}
    for line in Path(__file__).with_name("absent_operators.txt").read_text("utf-8").splitlines():
        found.setdefault(line[: line.index("(")].partition(".")[0], []).append(line)
    return found


def absent(name: str) -> tuple[FunctionSchema, ...]:
    """The schemas of an operator of ATen that raises, naming itself, when it is called."""
    return tuple(map(table.schema, _absent_texts().get(name, ())))


PROVIDED = {"torchvision": "flambeau.library.vision"}
"""Namespaces of libraries whose compiled part cannot be loaded, and who defines them here."""


class _Ops(ModuleType):
    """`torch.ops`: namespaces of operators, made when they are first asked for."""

    __file__ = "_ops.py"

    def __init__(self) -> None:
        super().__init__("torch.ops")
        self.loaded_libraries: set[str] = set()

    def __getattr__(self, name: str) -> _OpNamespace:
        if name.startswith("__"):
            raise AttributeError(f"module 'torch.ops' has no attribute '{name}'")
        namespace = _OpNamespace(name)
        setattr(self, name, namespace)
        if name in PROVIDED:
            importlib.import_module(PROVIDED[name])
        return namespace

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(name.partition("::")[0] for name in table.names()))

    def load_library(self, path: str) -> None:
        """Refuse: a compiled library of operators is written for PyTorch's own binary interface.

        The one of torchvision is not needed: its operators are ours (`vision.py`).

        Raises:
            OSError: as where PyTorch finds no such file; libraries of Python that bring compiled
                operators are prepared for it.
        """
        file = Path(path).absolute()
        if file.parent.name in PROVIDED and file.name.partition(".")[0] == "_C":
            getattr(self, file.parent.name)
            return
        raise OSError(f"Could not load this library: {file}")

    def import_module(self, module: str) -> None:
        """Import a module of Python that defines operators."""
        __import__(module)


ops = _Ops()
"""`torch.ops`."""


class HigherOrderOperator(OperatorBase):
    """An operator that takes functions: a class to inherit from; there are none here."""

    def __init__(self, name: str, *, cacheable: bool = False) -> None:
        self._name = self.__name__ = name
        self.cacheable = cacheable

    def name(self) -> str:
        """Its name."""
        return self._name

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"the operator {self._name} says nothing of how it runs")


OF_OPS = frozenset((
    "HigherOrderOperator", "OpOverload", "OpOverloadPacket", "OperatorBase", "_OpNamespace",
    "_Ops", "ops",
))  # fmt: skip
"""Names of `torch._ops`."""
