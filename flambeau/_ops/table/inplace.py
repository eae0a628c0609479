"""In-place forms of rows that are not pointwise: `cumsum_`, `index_add_`, `scatter_`, ..."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

from flambeau._core import dtype as dt
from flambeau._core import modes
from flambeau._ops.table import binder, call_text, dispatch, earlier_forms, outputs, pointwise
from flambeau._ops.table.op import Op
from flambeau._ops.table.recording import Plan
from flambeau._runtime import choice, cpu
from flambeau._tensor.bits import require_array
from flambeau._tensor.tensor import Tensor, wrap
from flambeau.autograd.history import bump, check_inplace, from_before, snapshot


def make_kernel_inplace(op: Op) -> Callable[..., Any]:
    """The in-place form: the row's result written to its first argument."""
    if op.in_place is not None:
        return dispatch.finish(op.in_place, op)
    name = f"{op.public.rpartition('.')[2]}_"
    names = [binder.python_name(op, a) for a in op.schema.arguments]
    scope = {
        **dispatch.base_scope(op),
        "inplace": KernelInplace(op),
        "otherwise": partial(dispatch.otherwise, called=f"{op.public}_"),
    }
    parameters = call_text.public_parameters(op)
    listed = ", ".join(names)
    lines = [
        f"def {name}({parameters}):",
        *call_text.numpy_name_lines(op),
        *earlier_forms.lines(op, inplace=True),
        "    try:",
        *(_quick_lines(op, names) if op.write else ()),
        f"        return inplace({listed})",
        "    except (AttributeError, TypeError) as error:",
        f"        return otherwise(op, ({listed},), error, inplace=inplace)",
        "",
    ]
    function = dispatch.compile_function(f"{op.full_name} inplace", "\n".join(lines), scope, name)
    return dispatch.finish(function, op)


def _quick_lines(op: Op, names: list[str]) -> list[str]:
    """Write at once where there is nothing to record and nothing that forbids it: the tensor owns
    its memory, and no tensor has a history. It takes half the time of the general way."""
    first, listed = names[0], ", ".join(names)
    flags = [call_text.flag_text(op, a) for a in op.schema.arguments if a.is_tensor]
    checks = []
    if op.name not in REPEATABLE:
        checks += [f"            if not {first}._data.flags.c_contiguous:",
                   f"                inplace.check_overlap(({listed},))"]  # fmt: skip
    if writes_along_a_dim(op):
        checks.append(f"            inplace.check_apart(({listed},))")
    return [
        f"        if {first}._root is None and not ({' or '.join(flags)} or watch.results",
        f"                or {first}._inference):",
        *checks,
        f"            inplace.write({listed})",
        f"            {first}._version_count += 1",
        f"            return {first}",
    ]


def writes_along_a_dim(op: Op) -> bool:
    """Whether a row writes where an index along a dim says: `index_add`, `scatter` and their like,
    whose operands may not lie in the memory that they write to."""
    return bool(op.write) and {"dim", "index"} <= {a.name for a in op.schema.arguments}


REPEATABLE = frozenset(("fill", "zero", "masked_fill", "index_fill", "index_put"))
"""Rows that may write one place several times: every write is the same."""


NO_SUCH_PLACE = re.compile("index -?[0-9]+ (is out of bounds|on a tensor of)")


class KernelInplace:
    """Runs a row, then writes its result to the first argument and records that."""

    def __init__(self, op: Op) -> None:
        self.op = op
        written = op.written
        self.recorder = dispatch.Recorder(written) if written.backward else None
        self.plain = dispatch.Plain(op) if op.kind != "composite" else positional(op)
        self.write = choice.guarded(write_function(op), True) if op.write else None
        self.repeatable = op.name in REPEATABLE
        self.apart = writes_along_a_dim(op)
        self.needs_before = bool(written.backward) and Plan(written).uses_self()
        names = [argument.name for argument in op.schema.arguments]
        self.dtype_at = names.index("dtype") - 1 if op.follows_out else -1

    def __call__(self, target: Tensor, *rest: Any) -> Tensor:
        if target._stored is not None:
            require_array(target)
        if modes.watch.results:  # levels, or tensors whose numbers are not here
            values = (target, *rest)
            return dispatch.taken_over(self.op, self._run, values, functional=False)  # type: ignore[no-any-return]
        return self._run(target, *rest)

    def _run(self, target: Tensor, *rest: Any) -> Tensor:
        values = (target, *rest)
        recorded = pointwise.wants_grad(values)
        try:
            check_inplace(target, recorded)
        except RuntimeError as error:
            raise dispatch.explain(self.op, values, error) from None
        if self.dtype_at >= 0 and (target._data.dtype.kind in "biu" or rest[self.dtype_at]):
            rest = self._in_own_type(target, rest)
            values = (target, *rest)
        if not self.repeatable:
            self.check_overlap(values)
        if self.write is not None:
            return self._write(values, recorded and self.recorder is not None)
        if self.recorder is None and recorded and self.op.kind == "composite":
            return self._through_copy(values)
        enabled = modes.grad.enabled
        modes.grad.enabled = False
        try:
            result = self.plain(*values)
        finally:
            modes.grad.enabled = enabled
        if not recorded or self.recorder is None:
            outputs.inplace_array(target, result._data, repeatable=self.repeatable)
            bump(target)
            return target
        before = snapshot(target)
        if modes.watch.saving:
            rest = tuple(from_before(target, rest))
        kept = _kept(target, rest)
        outputs.inplace_array(target, result._data, repeatable=self.repeatable)
        self._record(before, rest, target, kept)
        return target

    def _record(self, before: Any, rest: Any, target: Tensor, kept: Any) -> None:
        """Record a write; what cannot be recorded is undone."""
        try:
            self.recorder.inplace(before, *rest, target)  # type: ignore[union-attr]
        except RuntimeError:
            if kept is not None:
                target._data[...] = kept
            raise

    def _in_own_type(self, target: Tensor, rest: tuple[Any, ...]) -> tuple[Any, ...]:
        """What computes in the type of `out` computes in the target's."""
        asked, own = rest[self.dtype_at], target.dtype
        if asked is not None and dt.as_dtype(asked) is not own:
            have, want = [t.c_name for t in (own, dt.as_dtype(asked))]
            raise RuntimeError(f"Bad in-place call: input tensor dtype {have} and output tensor "
                               f"dtype {want} should match")  # fmt: skip
        return (*rest[: self.dtype_at], own, *rest[self.dtype_at + 1 :])

    def _write(self, values: tuple[Any, ...], recorded: bool) -> Tensor:
        """A writer: it changes the target's own memory."""
        target: Tensor = values[0]
        if self.apart:
            self.check_apart(values)
        before = target
        if recorded and self.needs_before:
            before = snapshot(target)
        rest = values[1:]
        if recorded and modes.watch.saving:
            rest = tuple(from_before(target, rest))
        if not recorded:
            self.write(*values)  # type: ignore[misc]
            bump(target)
            return target
        kept = _kept(target, rest)
        self.write(*values)  # type: ignore[misc]
        self._record(before, rest, target, kept)
        return target

    def check_overlap(self, values: tuple[Any, ...]) -> None:
        """A target that overlaps itself is an error, after the row's own checks."""
        try:
            outputs.check_overlap(values[0]._data)
        except RuntimeError:
            self._check_as_copy(values)
            raise

    def check_apart(self, values: tuple[Any, ...]) -> None:
        """Operands from the target's own memory are an error, after the row's own checks."""
        target, *rest = values
        try:
            outputs.check_no_overlap(target._data, [v._data for v in outputs.tensors_in(rest)])
        except RuntimeError:
            self._check_as_copy(values)
            raise

    def _check_as_copy(self, values: tuple[Any, ...]) -> None:
        """What is wrong with the arguments whatever the target's memory: the row on a copy. Places
        that there are not are looked for last."""
        target, *rest = values
        try:
            self.plain(wrap(cpu.copy(target._data)), *rest)
        except (IndexError, RuntimeError) as error:
            if not NO_SUCH_PLACE.search(str(error)):
                raise

    def _through_copy(self, values: tuple[Any, ...]) -> Tensor:
        """A composite without formulas: its recorded result is copied into the target."""
        target: Any = values[0]
        result = self.plain(snapshot(target), *values[1:])
        return target.copy_(result)  # type: ignore[no-any-return]


def _kept(target: Tensor, rest: tuple[Any, ...]) -> Any:
    """The target's numbers, if the write to come may not be one that can be recorded: tensors of
    inference mode cannot be saved."""
    if any(isinstance(value, Tensor) and value._inference for value in rest):
        return target._data.copy()
    return None


def positional(op: Op) -> Callable[..., Any]:
    """The body of a composite, called with all arguments by position."""
    names = [argument.name for argument in op.schema.arguments if argument.keyword_only]
    if not names:
        return op.body
    count = len(op.schema.arguments) - len(names)

    def call(*values: Any) -> Any:
        return op.body(*values[:count], **dict(zip(names, values[count:], strict=True)))

    return call


def write_function(op: Op) -> Callable[..., None]:
    """A function of tensors that lets a writer change the memory of the first."""
    names = ", ".join(binder.python_name(op, a) for a in op.schema.arguments)
    arguments = ", ".join(call_text.argument_text(op, a) for a in op.schema.arguments)
    text = (
        f"def write({names}):\n"
        "    token = enter_quiet(QUIET)\n"
        "    try:\n"
        f"        op.write({arguments})\n"
        "    except (AttributeError, TypeError) as error:\n"
        f"        raise explain(op, ({names},), error) from None\n"
        "    finally:\n"
        "        leave_quiet(token)\n"
    )
    scope = dispatch.base_scope(op)
    return dispatch.compile_function(f"{op.full_name} write", text, scope, "write")  # type: ignore[no-any-return]
