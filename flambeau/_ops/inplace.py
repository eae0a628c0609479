"""In-place forms of rows that are not pointwise: `cumsum_`, `index_add_`, `scatter_`, ..."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau._core import modes
from flambeau._ops import binder, dispatch, outputs, pointwise
from flambeau._ops.op import Op
from flambeau._runtime import cpu
from flambeau._tensor.tensor import Tensor, new, wrap
from flambeau.autograd.history import bump, check_inplace


def make_kernel_inplace(op: Op) -> Callable[..., Any]:
    """The in-place form: the row's result written to its first argument."""
    name = f"{op.public.rpartition('.')[2]}_"
    names = [binder.python_name(op, a) for a in op.schema.arguments]
    scope = {**dispatch.base_scope(op), "inplace": KernelInplace(op)}
    parameters = binder.signature_text(op)
    lines = [f"def {name}({parameters}):", f"    return inplace({', '.join(names)})", ""]
    function = dispatch.compile_function(f"{op.full_name} inplace", "\n".join(lines), scope, name)
    return dispatch.finish(function, op)


class KernelInplace:
    """Runs a row, then writes its result to the first argument and records that."""

    def __init__(self, op: Op) -> None:
        self.op = op
        self.recorder = dispatch.Recorder(op) if op.backward else None
        self.plain = dispatch.Plain(op) if op.kind != "composite" else op.body

    def __call__(self, target: Tensor, *rest: Any) -> Tensor:
        values = (target, *rest)
        recorded = pointwise.wants_grad(values)
        check_inplace(target, recorded)
        outputs.check_overlap(target._data)
        if self.recorder is None and recorded and self.op.kind == "composite":
            return self._through_copy(values)
        enabled = modes.grad.enabled
        modes.grad.enabled = False
        try:
            result = self.plain(*values)
        finally:
            modes.grad.enabled = enabled
        if not recorded or self.recorder is None:
            outputs.inplace_array(target, result._data)
            bump(target)
            return target
        before = new(Tensor)
        before._data = cpu.copy(target._data)
        outputs.inplace_array(target, result._data)
        self.recorder.inplace(before, *rest, target)
        return target

    def _through_copy(self, values: tuple[Any, ...]) -> Tensor:
        """A composite without formulas: its recorded result is copied into the target."""
        result = self.plain(*values)
        target: Any = values[0]
        return target.copy_(result)  # type: ignore[no-any-return]


_ = wrap
