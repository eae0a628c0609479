"""`torch.functional`: norms, contractions and factorisations that are programs."""

from __future__ import annotations

from typing import overload


@overload
def norm(
    input: Tensor,
    p: str = "fro",
    dim: Optional[List[int]] = None,
    keepdim: bool = False,
    out: Optional[Tensor] = None,
    dtype: Optional[int] = None,
) -> Tensor: ...


@overload
def norm(
    input: Tensor,
    p: Optional[number],
    dim: Optional[List[int]] = None,
    keepdim: bool = False,
    out: Optional[Tensor] = None,
    dtype: Optional[int] = None,
) -> Tensor: ...


@overload
def norm(
    input: Tensor,
    p: Optional[number],
    dim: Optional[int] = None,
    keepdim: bool = False,
    out: Optional[Tensor] = None,
    dtype: Optional[int] = None,
) -> Tensor: ...


@overload
def norm(
    input: Tensor,
    p: str = "fro",
    dim: Optional[int] = None,
    keepdim: bool = False,
    out: Optional[Tensor] = None,
    dtype: Optional[int] = None,
) -> Tensor: ...


def norm(input, p="fro", dim=None, keepdim=False, out=None, dtype=None):
    over: Optional[List[int]] = None
    if dim is not None:
        if isinstance(dim, int):
            over = [dim]
        else:
            over = dim
    if isinstance(p, str):
        if p == "fro" and (over is None or len(over) <= 2):
            if out is None:
                return torch.linalg_vector_norm(input, 2, over, keepdim, dtype=dtype)
            return torch.linalg_vector_norm(input, 2, over, keepdim, dtype=dtype, out=out)
        if over is None:
            over = list(range(input.ndim))
        if out is None:
            return torch.linalg_matrix_norm(input, p, over, keepdim, dtype=dtype)
        return torch.linalg_matrix_norm(input, p, over, keepdim, dtype=dtype, out=out)
    else:
        order = p if p is not None else 2.0
        if out is None:
            return torch.linalg_vector_norm(input, order, over, keepdim, dtype=dtype)
        return torch.linalg_vector_norm(input, order, over, keepdim, dtype=dtype, out=out)


@overload
def tensordot(a: Tensor, b: Tensor, dims: int = 2, out: Optional[Tensor] = None) -> Tensor: ...


@overload
def tensordot(
    a: Tensor, b: Tensor, dims: Tuple[List[int], List[int]], out: Optional[Tensor] = None
) -> Tensor: ...


@overload
def tensordot(
    a: Tensor, b: Tensor, dims: List[List[int]], out: Optional[Tensor] = None
) -> Tensor: ...


@overload
def tensordot(a: Tensor, b: Tensor, dims: Tensor, out: Optional[Tensor] = None) -> Tensor: ...


def tensordot(a, b, dims=2, out=None):
    dims_a: List[int] = []
    dims_b: List[int] = []
    if isinstance(dims, (tuple, list)):
        dims_a, dims_b = dims
    if isinstance(dims, torch.Tensor):
        if dims.numel() > 1:
            if dims.size()[0] != 2:
                raise AssertionError(
                    f"dims tensor must have size 2 in first dimension, got {dims.size()[0]}"
                )
            dims_a = torch.jit.annotate(List[int], dims[0].tolist())
            dims_b = torch.jit.annotate(List[int], dims[1].tolist())
        else:
            count = int(dims.item())
            if count < 0:
                raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
            dims_a = list(range(-count, 0))
            dims_b = list(range(count))
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.dim(), b.dim()):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        dims_a = list(range(-dims, 0))
        dims_b = list(range(dims))
    if out is None:
        return torch.tensordot(a, b, dims_a, dims_b)
    return torch.tensordot(a, b, dims_a, dims_b, out=out)


def _lu_impl(
    A: Tensor, pivot: bool = True, get_infos: bool = False, out: Any = None
) -> Tuple[Tensor, Tensor, Tensor]:
    return torch._lu_with_info(A, pivot=pivot, check_errors=(not get_infos))


def _lu_with_infos(
    A: Tensor,
    pivot: bool = True,
    get_infos: bool = False,
    out: Optional[Tuple[Tensor, Tensor, Tensor]] = None,
) -> Tuple[Tensor, Tensor, Tensor]:
    result = _lu_impl(A, pivot, get_infos, out)
    if out is None:
        return result
    for place, value in zip(out, result):  # noqa: B905 - a program has no `strict`
        place.resize_as_(value).copy_(value)
    return out


def _lu_no_infos(
    A: Tensor,
    pivot: bool = True,
    get_infos: bool = False,
    out: Optional[Tuple[Tensor, Tensor]] = None,
) -> Tuple[Tensor, Tensor]:
    result = _lu_impl(A, pivot, get_infos, out)
    if out is None:
        return result[0], result[1]
    for place, value in zip(out, result):  # noqa: B905 - a program has no `strict`
        place.resize_as_(value).copy_(value)
    return out
