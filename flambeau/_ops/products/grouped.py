"""Matrix products in groups of different sizes, as layers with several experts need them."""

from __future__ import annotations

from typing import Any

from flambeau._core import dtype as dt
from flambeau._ops.products.errors import c_name, scalar_name
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import composite, functional

SINGLES = (dt.float32, dt.bfloat16, dt.float16)


def _check_grouped(left: Any, right: Any, offs: Any, bias: Any, out_dtype: Any) -> None:
    for name, operand in (("mat_a", left), ("mat_b", right)):
        if operand.dtype not in SINGLES:
            raise RuntimeError(
                f"Expected {name} to be Float32, BFloat16 or Float16 matrix, got "
                f"{scalar_name(operand._data)}"
            )
        if operand.dim() not in (2, 3):
            raise RuntimeError(f"{name} has to be 2 or 3d")
    if left.size(-1) != right.size(-2):
        raise RuntimeError("contraction dimension of mat_a and mat_b must match")
    both_stacked = left.dim() == right.dim() == 3
    if both_stacked and left.size(0) != right.size(0):
        raise RuntimeError("batched dimension has to match")
    if (offs is None) != both_stacked:
        raise RuntimeError(
            "Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d"
        )
    if offs is not None and offs.dtype is not dt.int32:
        raise RuntimeError("Offsets have to be int32")
    if bias is not None:
        raise RuntimeError("Bias not supported yet")
    if out_dtype is not None and out_dtype is not left.dtype:
        raise RuntimeError("Grouped gemm output dtype must match `mat_a` dtype")
    if left.dtype is not right.dtype:
        raise RuntimeError(
            "expected m1 and m2 to have the same dtype, but got: "
            f"{c_name(left._data)} != {c_name(right._data)}"
        )


def _sizes(offs: Any, length: int, groups: int | None) -> list[int]:
    """Group sizes from their ends, and the size of what no group takes."""
    ends = offs.tolist()
    if groups is not None and len(ends) != groups:
        raise RuntimeError("matrix batch sizes have to match")
    sizes = [end - start for start, end in zip([0, *ends], ends, strict=False)]
    return [*sizes, length - ends[-1]]


@composite(
    "_grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None,"
    " ScalarType? out_dtype=None) -> Tensor",
    method=False,
)
def _grouped_mm(
    self: Any, mat2: Any, offs: Any = None, bias: Any = None, out_dtype: dt.dtype | None = None
) -> Any:
    """One matrix product per group, as `torch.nn.functional.grouped_mm` describes them.

    >>> import flambeau as torch
    >>> torch._grouped_mm(torch.ones(2, 4, 8), torch.ones(2, 8, 4)).shape
    torch.Size([2, 4, 4])
    """
    _check_grouped(self, mat2, offs, bias, out_dtype)
    if offs is None:
        return self.matmul(mat2)
    if self.dim() == 2 and mat2.dim() == 2:
        sizes = _sizes(offs, self.size(1), None)
        pairs = zip(self.split(sizes, 1)[:-1], mat2.split(sizes, 0)[:-1], strict=True)
        return ops.stack([left.matmul(right) for left, right in pairs])
    if self.dim() == 2:
        *parts, rest = self.split(_sizes(offs, self.size(0), mat2.size(0)), 0)
        done = [left.matmul(right) for left, right in zip(parts, mat2, strict=True)]
        return ops.cat([*done, ops.new_zeros(self, (rest.size(0), mat2.size(-1)))], 0)
    *parts, rest = mat2.split(_sizes(offs, mat2.size(1), self.size(0)), 1)
    done = [left.matmul(right) for left, right in zip(self, parts, strict=True)]
    return ops.cat([*done, ops.new_zeros(mat2, (self.size(1), rest.size(1)))], 1)


@functional()
def grouped_mm(
    mat_a: Any, mat_b: Any, *, offs: Any = None, bias: Any = None, out_dtype: dt.dtype | None = None
) -> Any:
    """One matrix product per group; `offs` (int32) holds where groups end in a matrix of 2 dims.

    | mat_a | mat_b | groups are | result |
    |---|---|---|---|
    | [M, K] | [G, K, N] | rows of mat_a | [M, N] |
    | [G, M, K] | [K, N] | columns of mat_b | [M, N] |
    | [M, K] | [K, N] | columns of mat_a and rows of mat_b | [G, M, N] |
    | [G, M, K] | [G, K, N] | no `offs` | [G, M, N] |

    Rows and columns behind the last group give zeros.

    >>> import flambeau as torch
    >>> a, b = torch.ones(4, 8, dtype=torch.bfloat16), torch.ones(2, 8, 8, dtype=torch.bfloat16)
    >>> torch.nn.functional.grouped_mm(a, b, offs=torch.tensor([1, 4], dtype=torch.int32)).shape
    torch.Size([4, 8])
    """
    return ops._grouped_mm(mat_a, mat_b, offs, bias, out_dtype)
