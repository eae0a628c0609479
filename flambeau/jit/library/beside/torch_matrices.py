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
    if isinstance(dims, int):
        if dims > min(a.dim(), b.dim()):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        pairs = _last_and_first(dims, f"{dims}")
    elif isinstance(dims, torch.Tensor):
        pairs = _listed(dims)
    else:
        pairs = [dims[0], dims[1]]
    if out is None:
        return torch.tensordot(a, b, pairs[0], pairs[1])
    return torch.tensordot(a, b, pairs[0], pairs[1], out=out)


def _last_and_first(count: int, given: str) -> List[List[int]]:
    if count < 0:
        raise RuntimeError(f"tensordot expects dims >= 0, but got dims={given}")
    return [[dim - count for dim in range(count)], list(range(count))]


def _listed(dims: Tensor) -> List[List[int]]:
    if dims.numel() == 1:
        return _last_and_first(int(dims.item()), f"{dims}")
    if dims.size(0) != 2:
        raise AssertionError(f"dims tensor must have size 2 in first dimension, got {dims.size(0)}")
    pairs: List[List[int]] = dims.tolist()
    return pairs


# ---- LU


def _lu_no_infos(
    A: Tensor,
    pivot: bool = True,
    get_infos: bool = False,
    out: Optional[Tuple[Tensor, Tensor]] = None,
) -> Tuple[Tensor, Tensor]:
    factors, pivots, _ = torch._lu_with_info(A, pivot, True)
    if out is None:
        return factors, pivots
    return _put(out[0], factors), _put(out[1], pivots)


def _lu_with_infos(
    A: Tensor,
    pivot: bool = True,
    get_infos: bool = False,
    out: Optional[Tuple[Tensor, Tensor, Tensor]] = None,
) -> Tuple[Tensor, Tensor, Tensor]:
    factors, pivots, infos = torch._lu_with_info(A, pivot, False)
    if out is None:
        return factors, pivots, infos
    return _put(out[0], factors), _put(out[1], pivots), _put(out[2], infos)


def _put(place: Tensor, value: Tensor) -> Tensor:
    return place.resize_as_(value).copy_(value)
