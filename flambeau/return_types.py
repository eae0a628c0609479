"""`torch.return_types`: the named tuples that operators with several results give."""

from __future__ import annotations

from typing import Any

from flambeau._ops.table import namespace, op
from flambeau._ops.table.dispatch import result_type

NAMES = """
aminmax cummax cummin frexp geqrf histogram histogramdd kthvalue linalg_cholesky_ex linalg_eig
linalg_eigh linalg_inv_ex linalg_ldl_factor linalg_ldl_factor_ex linalg_lstsq linalg_lu
linalg_lu_factor linalg_lu_factor_ex linalg_qr linalg_slogdet linalg_solve_ex linalg_svd lu_unpack
max median min mode nanmedian qr slogdet sort svd topk triangular_solve
""".split()

__all__ = NAMES  # noqa: PLE0605  # they are made when they are first asked for


def __getattr__(name: str) -> Any:
    if name == "all_return_types":
        return [__getattr__(one) for one in NAMES]
    if name not in NAMES:
        raise AttributeError(f"module 'torch.return_types' has no attribute '{name}'")
    found = globals()[name] = _made(name)
    return found


def _made(name: str) -> Any:
    public = name.replace("linalg_", "linalg.", 1)
    namespace.get(public)  # its rows are read now
    with_names = [row for row in op.BY_NAME[public] if len(row.schema.returns) > 1]
    return result_type(with_names[0]).__self__


def __dir__() -> list[str]:
    return sorted([*NAMES, "all_return_types"])
