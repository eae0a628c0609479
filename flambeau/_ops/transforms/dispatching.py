"""`__torch_dispatch__`: classes and modes that see operators below autograd.

Rows are shown as the overloads of `aten` that they are; composites are shown as what they are made
of. Autograd records the row as ever, with what the class or mode gave as its result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from flambeau._core import modes
from flambeau._core.once import Once
from flambeau._ops.table import dispatch, pointwise
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.number_operands import number_behind
from flambeau._ops.table.op import Op
from flambeau._ops.table.outputs import tensors_in
from flambeau._ops.table.ranks import Rank
from flambeau._ops.table.recording import Plan
from flambeau._ops.table.schema import REQUIRED, Argument
from flambeau._ops.transforms import batching, expressions, meta
from flambeau._tensor import overriding
from flambeau._tensor.tensor import Tensor, constructors, provides
from flambeau.autograd.history import bump, check_inplace, snapshot
from flambeau.autograd.versions import set_version, version_of

TENSOR_FORMS = frozenset(("add", "sub", "mul", "div", "floor_divide"))
"""Rows whose overload for tensors takes numbers, too, where others have one of their own."""
DECLINED = (
    "Multiple dispatch failed for 'torch._ops.{}'; all __torch_dispatch__ handlers returned "
    "NotImplemented:\n\n{}\nFor more information, try re-running with TORCH_LOGS=not_implemented"
)


class below:
    """`with below():` what runs is not recorded: that is done, or will be, for the whole."""

    def __enter__(self) -> None:
        self.before = modes.grad.enabled, modes.grad.above
        modes.grad.above = bool(modes.grad.enabled)
        modes.grad.enabled = modes.grad.enabled and False

    def __exit__(self, *exc: object) -> None:
        modes.grad.enabled, modes.grad.above = self.before


def watch(op: Op, plain: Callable[..., Any], values: tuple[Any, ...],
          functional: bool | None) -> Any:  # fmt: skip
    """A row's call that a class or mode wants to see; NotImplemented where none does."""
    stack = modes.stacks.dispatch_modes
    if not (stack or classes_in(values)) or overriding.overloaded(values):
        return NotImplemented
    if op.kind == "pointwise":
        values = tuple(map(number_behind, values))
    if op.decomposition is not None and functional is not False:
        return op.decomposition(*values)
    call = as_aten(op, values, functional is False)
    if call is None and op.name.startswith("_") and op.kind == "pointwise" and functional:
        return expressions.evaluate(op, values)
    if call is None and op.kind != "composite" and row_runner(values):
        return _as_row(op, plain, values, functional is False)
    if call is None:
        if op.kind != "composite" and classes_in(values):
            raise NotImplementedError(f"{op.full_name}: no operator of aten's that a class with "
                                      "__torch_dispatch__ could be shown")  # fmt: skip
        return NotImplemented
    if functional is False:
        return _in_place(op, values, lambda: ask(call.overload, values, call.args, call.kwargs))
    with below():
        _, result = ask(call.overload, values, call.args, call.kwargs)
    if call.pick is not None:
        result = result[call.pick]
    return recorded(op, values, result)


class Call(NamedTuple):
    """A call of an overload of `aten`, without arguments at their defaults."""

    overload: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    pick: int | None = None  # which of the results is the row's


def as_aten(op: Op, values: tuple[Any, ...], in_place: bool) -> Call | None:
    """What a row's call is in ATen; None where ATen has no such operator."""
    head = op.name
    if op.namespace in ("linalg", "special", "fft"):
        head = f"{op.namespace}_{head.removeprefix(f'{op.namespace}_')}"
    pick = given = None
    if op.aten is not None:
        head, args, kwargs, pick = op.aten(*values)
        given = args, kwargs
    packet = constructors["operator_of_aten"](f"{head}_" if in_place else head)
    if packet is None:
        return None
    known = packet.overloads()
    wanted = [*_number_forms(op, values), op.overload or "default"]
    names = dict.fromkeys([name for name in wanted if name in known] + known)
    overloads = [getattr(packet, name) for name in names if not name.endswith("out")]
    by_name = [(one, given or _by_name(op, values, one)) for one in overloads]
    own = [getattr(packet, op.overload or "default")] if wanted[-1] in known else overloads
    by_position = [(one, arguments(op, values)) for one in own]
    for overload, found in [*by_name, *by_position]:
        if found is not None and overload.fits(*found):
            args, kwargs = found
            return Call(overload, args, kwargs, pick)
    return None


def _by_name(op: Op, values: tuple[Any, ...], overload: Any) -> tuple[Any, Any] | None:
    """The arguments in the order of the overload's schema, if it knows all of their names."""
    given = [(a, _listed(a, v)) for a, v in zip(op.schema.arguments, values, strict=False)]
    defaults = {a.name: a.default for a, _ in given}
    named = {a.name: value for a, value in given}
    placed = []
    for parameter in overload._schema.arguments:
        if not parameter.has_default_value() and _same(
            named.get(parameter.name), defaults.get(parameter.name, REQUIRED)
        ):
            return None  # there may be an overload without it: `sum()`
        placed.append((parameter, named.pop(parameter.name, parameter.default_value)))
    left = [name for name, value in named.items() if not _same(value, defaults[name])]
    return None if left else arranged(placed)


def arranged(placed: Iterable[tuple[Any, Any]]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Parameters with their values as a call: by position and by name, without those at their
    defaults where nothing comes after them."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    needed = 0
    for parameter, value in placed:
        is_given = not _same(value, parameter.default)
        if parameter.keyword_only:
            if is_given:
                kwargs[parameter.name] = value
            continue
        args.append(value)
        if is_given:
            needed = len(args)
    return tuple(args[:needed]), kwargs


def _same(value: Any, default: Any) -> bool:
    if isinstance(default, tuple) and isinstance(value, list):
        return value == list(default)
    return value is default or (type(value) is type(default) and value == default)


def _number_forms(op: Op, values: tuple[Any, ...]) -> tuple[str, ...]:
    """The overloads that ATen has for a number as one of the two operands."""
    if op.kind != "pointwise" or op.name in TENSOR_FORMS:
        return ()
    operands = [v for a, v in zip(op.schema.arguments, values, strict=False)
                if pointwise.is_operand(a)][:2]  # fmt: skip
    if len(operands) < 2:  # noqa: PLR2004
        return ()
    if not isinstance(operands[1], Tensor):
        return ("Tensor_Scalar", "Scalar")
    return () if isinstance(operands[0], Tensor) else ("Scalar", "Scalar_Tensor")


def arguments(op: Op, values: tuple[Any, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call by position and by name, without those at their defaults."""
    pairs = zip(op.schema.arguments, values, strict=False)
    return arranged([(a, v if _same(v, a.default) else _listed(a, v)) for a, v in pairs])


def _listed(argument: Argument, value: Any) -> Any:
    """Lists for tuples, and for one number that stands for a list."""
    if isinstance(value, tuple):
        return list(value)
    if argument.is_list and argument.type in ("int", "float") and isinstance(value, (int, float)):
        return [value] * (argument.length or 1)
    return value


def classes_in(values: Any) -> list[Any]:
    """The tensors whose class takes part, one of each class, subclasses first."""
    found: list[Any] = []
    for tensor in tensors_in(values):
        if type(tensor) is not Tensor and hasattr(type(tensor), "__torch_dispatch__"):
            overriding.add_to(found, tensor)
    return found


def ask(overload: Any, values: Any, args: Any, kwargs: dict[str, Any],
        rules: Mapping[type, Callable[..., Any]] | None = None) -> tuple[bool, Any]:  # fmt: skip
    """Whether the innermost mode, or a class among the arguments, took a call over, and what it
    gave. `rules` stand for the `__torch_dispatch__` of some classes.

    Raises:
        TypeError: all of them returned NotImplemented.
    """
    stack = modes.stacks.dispatch_modes
    found = classes_in(values)
    if not (stack or found):
        return False, None
    types = tuple(map(type, found))
    if stack:
        mode = stack[-1]
        handler = (rules or {}).get(type(mode))
        try:
            del stack[-1]
            if handler is None:
                result = mode.__torch_dispatch__(overload, types, args, kwargs)
            else:
                result = handler(mode, overload, types, args, kwargs)
        finally:
            stack.append(mode)
        if result is not NotImplemented:
            return True, result
    for tensor in found:
        kind = type(tensor)
        handler = (rules or {}).get(kind)
        if handler is None:
            result = kind.__torch_dispatch__(overload, types, args, kwargs)
        else:
            result = handler(kind, overload, types, args, kwargs)
        if result is not NotImplemented:
            return True, result
    listed = "".join(f"  - tensor subclass {kind}\n" for kind in types)
    if stack:
        listed = f"  - mode object {stack[-1]}\n{listed}"
    raise TypeError(DECLINED.format(overload, listed))


def recorded(op: Op, values: tuple[Any, ...], result: Any) -> Any:
    """The result, recorded as that of the row."""
    many = isinstance(result, (tuple, list))
    results = list(result) if many else [result]
    if any(part is not None and not isinstance(part, Tensor) for part in results):
        return result
    for part in results:
        if part is not None and op.kind == "view":
            part._creation = None
    batching.record(op, values, results)
    return batching.as_returned(op, results) if many else result


def row_runner(values: Any) -> Callable[..., Any] | None:
    """What runs rows that ATen has not, by a class among the arguments that knows how."""
    runners = [getattr(type(tensor), "_run_row", None) for tensor in classes_in(values)]
    return next(filter(None, runners), None)


def _as_row(op: Op, plain: Callable[..., Any], values: tuple[Any, ...], is_written: bool) -> Any:
    """A row that ATen has not, as a class runs it."""
    run = row_runner(values)
    assert run is not None

    def asked() -> Any:
        return run(op, lambda *given: dispatch.taken_over(op, plain, given, not is_written), values)

    if is_written:
        return _in_place(op, values, asked)
    with below():
        result = asked()
    return recorded(op, values, result)


def without_numbers(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A composite that looks at numbers, as a class runs it; NotImplemented if it may look."""
    run = row_runner((*args, *kwargs.values()))
    if run is None:
        return NotImplemented
    return run(op, lambda *given, **named: meta.without_numbers(op, given, named), args, kwargs)


def _in_place(op: Op, values: tuple[Any, ...], asked: Callable[[], Any]) -> Any:
    """A write: checked and recorded around what the class or mode does with it."""
    target, *rest = values
    written = op.written
    recorded = bool(written.backward) and pointwise.wants_grad(values)
    check_inplace(target, recorded)
    before = snapshot(target) if recorded and Plan(written).uses_self() else target
    version = version_of(target)
    with below():
        asked()
    if recorded:
        set_version(target, version)  # which recording counts on
        recorder = batching.recorder(written)
        recorder.inplace(*batching.as_recorded(op, (before, *rest)), target)
    elif version_of(target) == version:
        bump(target)
    return target


@Once
def _begin() -> None:
    from flambeau._ops.transforms import dispatched_factories, dispatched_methods

    if without_numbers not in dispatch.WITHOUT_NUMBERS:
        dispatch.WITHOUT_NUMBERS.insert(0, without_numbers)
    dispatched_factories.ask_all()
    dispatched_methods.ask_all()
    dispatch.add_watcher(watch, Rank.DISPATCH)


@provides("expect_dispatch")
def expect_dispatch() -> None:
    """From now on classes and modes may want to see rows."""
    _begin()


@provides("ones_of_class")
def ones_of_class(root: Tensor) -> Any:
    """The gradient that a backward pass starts with, as the class of its root has it."""
    with below():
        return ops.ones_like(root)
