"""`out=` while gradients are recorded: who refuses it, and under which name.

In PyTorch the operator that writes to `out` refuses it, which for composites is one of their parts.
Operators without a formula for writing elsewhere look at `out` alone; and composites that compute
their result first copy it, which is recorded as any other copy.
"""

from __future__ import annotations

from typing import Any

from flambeau._ops.table.op import Op
from flambeau._tensor.tensor import Tensor


def is_copied(op: Op, out: Tensor, result: Tensor) -> bool:
    """Whether a result is written by a recorded copy."""
    return (out.requires_grad or result.requires_grad) and op.out_writer == COPIED


def refuse(op: Op, out: Tensor, result: Tensor, inputs: Any) -> None:
    """Torch's error if what is written to, or what it is computed from, learns."""
    writer = writer_of(op, inputs)
    if not writer:
        return
    learns = out.requires_grad and result is not out
    if learns or (result.requires_grad and not writer.startswith(WITHOUT_FORMULA)):
        raise RuntimeError(
            f"{writer}(): functions with out=... arguments don't support automatic "
            "differentiation, but one of the arguments requires grad."
        )


def writer_of(op: Op, inputs: Any) -> str:
    """What torch calls the operator that writes to `out`; "" where nobody refuses."""
    derived = op.kind == "composite" or (op.backward and not op.underived)
    if op.out_writer == COPIED or not (derived or op.out_writer.startswith(WITHOUT_FORMULA)):
        return ""
    if op.out_writer or op.namespace != "fft":
        return op.out_writer or _writer(op)
    return _transform(op.public, inputs[0])


COPIED = "copy_"
"""The word of rows that compute their result, and copy it."""
WITHOUT_FORMULA = "aten::"
"""How the names of operators begin that have no formula for writing elsewhere."""


def record(op: Op, out: Tensor, result: Tensor, inputs: Any) -> None:
    """Give `out` a history that no gradient gets past, where what is written to it learns and
    nobody has refused: a gradient that is silently absent would be worse."""
    from flambeau._ops.table.unformulated import stop

    operands = [result, *inputs]
    writer = writer_of(op, inputs) if op.out_writer or op.namespace == "fft" else ""
    if writer.startswith(WITHOUT_FORMULA):
        stop(out, operands, writer.removeprefix(WITHOUT_FORMULA))


def _writer(op: Op) -> str:
    return f"{op.namespace}_{op.public}" if op.namespace in ("linalg", "special") else op.public


SIDES = {"hfft": "c2r", "ihfft": "r2c", "irfft": "c2r", "rfft": "r2c"}
"""Transforms of which one side is real."""


def _transform(name: str, source: Tensor) -> str:
    """The Fourier transform that writes a result: real input has one of its own, which gives half
    of the result; the inverse of it is turned round afterwards."""
    real = not source.is_complex()
    if real and name in ("ifft", "ihfft"):
        return "aten::conj_physical"
    one = name.rstrip("2n")
    if one == "ihfft":
        return "_fft_c2c"
    return "_fft_r2c" if real and name == "fft" else f"_fft_{SIDES.get(one, 'c2c')}"
