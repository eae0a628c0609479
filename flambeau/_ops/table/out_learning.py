"""`out=` while gradients are recorded: who refuses it, and under which name.

In PyTorch the operator that writes to `out` refuses it, which for composites is one of their parts.
Operators without a formula for writing elsewhere look at `out` alone; and composites that compute
their result first copy it, which is recorded as any other copy.
"""

from __future__ import annotations

from typing import Any

from flambeau._ops.table.op import Op
from flambeau._tensor.tensor import Tensor

WRITERS = {
    "_clamp_high": "clamp", "_clamp_low": "clamp", "_complex": "complex", "_logit": "logit",
    "_logit_eps": "logit",
    "_polar": "polar", "_polygamma": "polygamma", "cross": "linalg_cross", "diff": "sub",
    "float_power": "pow", "frobenius_norm": "norm", "inverse": "linalg_inv_ex", "kron": "mul",
    "linalg.cross": "linalg_cross", "linalg.det": "_linalg_det", "linalg.eigvalsh": "_linalg_eigh",
    "linalg.inv": "linalg_inv_ex", "linalg.multi_dot": "mm", "linalg.solve": "_linalg_solve_ex",
    "linalg.svdvals": "_linalg_svd", "linalg.vecdot": "sum", "matrix_power": "matmul",
    "msort": "sort", "nanmean": "nansum", "norm": "linalg_vector_norm", "outer": "mul",
    "square": "pow",
}  # fmt: skip
"""Operators of PyTorch that write the results of others."""
ALONE = {
    "alias_copy": "", "as_strided_copy": "", "conj_physical": "", "_conj_physical": "conj_physical",
    "diag": "diag_embed", "diagonal_copy": "", "expand_copy": "", "fft.fftfreq": "fft_fftfreq",
    "fft.rfftfreq": "fft_rfftfreq", "floor_divide": "", "_heaviside": "heaviside",
    "log_softmax": "", "linalg.eigvals": "linalg_eigvals", "permute_copy": "", "select_copy": "",
    "slice_copy": "", "slice_scatter": "", "softmax": "", "squeeze_copy": "", "t_copy": "",
    "transpose_copy": "", "unfold_copy": "", "unsqueeze_copy": "", "view_as_real_copy": "",
    "view_copy": "",
}  # fmt: skip
"""Operators without a formula for writing elsewhere, with another name for them."""
COPIED = frozenset(
    """inner linalg.matrix_norm linalg.matrix_power linalg.norm linalg.tensorsolve nanquantile
    nuclear_norm quantile special.ndtr tensordot""".split()
)
"""Operators that compute their result, and copy it."""
SIDES = {"fft": "c2c", "ifft": "c2c", "hfft": "c2r", "ihfft": "r2c", "irfft": "c2r", "rfft": "r2c"}


def public_name(op: Op) -> str:
    """The name of a row with its namespace."""
    return f"{op.namespace}.{op.public}" if op.namespace else op.public


def is_copied(op: Op, out: Tensor, result: Tensor) -> bool:
    """Whether a result is written by a recorded copy."""
    return (out.requires_grad or result.requires_grad) and public_name(op) in COPIED


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
    name = public_name(op)
    derived = op.kind == "composite" or (op.backward and not op.underived)
    if name in COPIED or not (derived or name in ALONE):
        return ""
    other = ALONE.get(name)
    if other is None and op.namespace == "fft":
        return _transform(op.public, inputs[0])
    return f"{WITHOUT_FORMULA}{other or op.public}" if other is not None else _writer(op, name)


WITHOUT_FORMULA = "aten::"
"""How the names of operators begin that have no formula for writing elsewhere."""


def record(op: Op, out: Tensor, result: Tensor, inputs: Any) -> None:
    """Give `out` a history that no gradient gets past, where what is written to it learns and
    nobody has refused: a gradient that is silently absent would be worse."""
    from flambeau._ops.table.unformulated import stop

    operands = [result, *inputs]
    writer = writer_of(op, inputs) if public_name(op) in ALONE or op.namespace == "fft" else ""
    if writer.startswith(WITHOUT_FORMULA):
        stop(out, operands, writer.removeprefix(WITHOUT_FORMULA))


def _writer(op: Op, name: str) -> str:
    found = WRITERS.get(name)
    if found is not None:
        return found
    return f"{op.namespace}_{op.public}" if op.namespace in ("linalg", "special") else op.public


def _transform(name: str, source: Tensor) -> str:
    """The Fourier transform that writes a result: real input has one of its own, which gives half
    of the result; the inverse of it is turned round afterwards."""
    real = not source.is_complex()
    if real and name in ("ifft", "ihfft"):
        return "aten::conj_physical"
    one = name.rstrip("2n")
    if one == "ihfft":
        return "_fft_c2c"
    return "_fft_r2c" if real and name == "fft" else f"_fft_{SIDES[one]}"
