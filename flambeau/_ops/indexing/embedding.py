"""Rows of a table by index: `embedding` and sums, means and maxima of bags of rows."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._core import modes
from flambeau._core.programs import EAGER
from flambeau._core.promotion import promote_types
from flambeau._core.settings import alert_on_gpus
from flambeau._core.type_words import type_words
from flambeau._ops.indexing import bags
from flambeau._ops.indexing import launch as scatter
from flambeau._ops.indexing.positions import in_range
from flambeau._ops.launching.precision import narrow, widen
from flambeau._ops.table.binder import without_public_attribute
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import composite, functional, internal, kernel
from flambeau._tensor.bits import writes
from flambeau._tensor.examples import numbers_under
from flambeau._tensor.tensor import Tensor, on_device_of, wrap
from flambeau.autograd.history import bump, check_inplace
from flambeau.autograd.saved_fields import OfInput


def _check_types(indices: np.ndarray, name: str) -> None:
    if indices.dtype.kind != "i" or indices.itemsize < 4:
        found = type_words(dt.from_numpy_dtype(indices.dtype))
        position = 2 if name == "embedding_renorm_" else 1
        raise RuntimeError(
            f"Expected tensor for argument #{position} 'indices' to have one of the following "
            f"scalar types: Long, Int; but got {found} instead (while checking "
            f"arguments for {name})"
        )


def _check_indices(indices: np.ndarray, rows: int, name: str = "embedding") -> None:
    _check_types(indices, name)
    if not in_range(indices, rows):
        raise IndexError("index out of range in self")


def _sparse_gradient(
    grad: Any, indices: Any, size: Any, padding_idx: int, scale_grad_by_freq: bool
) -> Any:
    if scale_grad_by_freq:
        raise RuntimeError(
            "embedding_backward: scale_grad_by_freq not supported with sparse gradients"
        )
    from flambeau._ops.sparse.constructors import gradient_of_rows

    return gradient_of_rows(grad, indices, size, padding_idx)


def _embedding_gradient(grad: Any, indices: Any, weight_shape: Any, padding_idx: int,
                        scale_grad_by_freq: bool, sparse: bool) -> Any:  # fmt: skip
    if sparse:
        return _sparse_gradient(grad, indices, weight_shape, padding_idx, scale_grad_by_freq)
    return ops.embedding_dense_backward(
        grad, indices, weight_shape[0], padding_idx, scale_grad_by_freq
    )


@kernel(
    "embedding(Tensor weight, Tensor indices, int padding_idx=-1,"
    " bool scale_grad_by_freq=False, bool sparse=False) -> Tensor",
    regular=True,
    inline="alike",
    device_check="_index_select",
    batch=(None, 0),
    method=False,
    saved_names={"weight_shape": None},
    saved_facts={"weight_sym_argsize_0": OfInput("weight", 0)},
    backward={"weight": _embedding_gradient},
)
def embedding(weight: np.ndarray, indices: np.ndarray, padding_idx: int, scale_grad_by_freq: bool,
              sparse: bool) -> np.ndarray:  # fmt: skip
    """Rows of `weight` [V, D] at `indices` [*]: [*, D].

    >>> import flambeau as torch
    >>> torch.embedding(torch.tensor([[0., 1.], [2., 3.]]), torch.tensor([1, 0, 1]))
    tensor([[2., 3.],
            [0., 1.],
            [2., 3.]])
    """
    if weight.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    _check_types(indices, "embedding")
    found = scatter.read_rows(weight, 0, indices)
    if found is not None:
        return found  # type: ignore[no-any-return]
    if not in_range(indices, weight.shape[0]):
        raise IndexError("index out of range in self")
    return weight.take(indices, 0)


def _embedding_double_backward(grad: Any, indices: Any, padding_idx: int,
                               scale_grad_by_freq: bool) -> Any:  # fmt: skip
    rows = ops.embedding(grad, indices)
    scale = np.ones(indices.shape, rows._data.dtype)
    if scale_grad_by_freq:
        counts = np.bincount(indices._data.ravel(), minlength=1)
        scale /= counts[indices._data]
    if padding_idx >= 0:
        scale[indices._data == padding_idx] = 0
    return rows * wrap(scale).unsqueeze(-1)


@internal(
    "embedding_dense_backward(Tensor grad_output, Tensor indices, int num_weights,"
    " int padding_idx, bool scale_grad_by_freq) -> Tensor",
    backward={"grad_output": _embedding_double_backward},
)
def embedding_dense_backward(grad: np.ndarray, indices: np.ndarray, num_weights: int,
                             padding_idx: int, scale_grad_by_freq: bool) -> np.ndarray:  # fmt: skip
    """Sums of the gradient rows of each index; none for `padding_idx`."""
    width = grad.shape[-1]
    flat = indices.reshape(-1)
    rows = widen(grad).reshape(flat.size, width)
    if not scale_grad_by_freq:
        total = np.zeros((num_weights, width), rows.dtype)
        if scatter.write_rows(total, 0, flat, rows, "add", padding_idx):
            return narrow(total, grad.dtype)
    if padding_idx >= 0:
        kept = flat != padding_idx
        if not kept.all():
            flat, rows = flat[kept], rows[kept]
    return narrow(bags.sum_rows(rows, flat, num_weights, scale_grad_by_freq), grad.dtype)


# ---- limited norms


def _check_normed(dtype: Any) -> None:
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError("norm(): input dtype should be either floating point or complex. "
                           f"Got {dtype.scalar_name} instead.")  # fmt: skip


@composite(
    "embedding_renorm_(Tensor(a!) self, Tensor indices, float max_norm, float norm_type)"
    " -> Tensor(a!)",
    method=False,
)
@writes
def embedding_renorm_(input: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """Scale the rows at `indices` whose norm is above `max_norm` down to it, in place.

    Shapes: weight [V, D], indices [*].

    >>> import flambeau as torch
    >>> weight = torch.tensor([[3., 4.], [0., 1.]])
    >>> torch.embedding_renorm_(weight, torch.tensor([0]), 1.0, 2.0)
    tensor([[0.6000, 0.8000],
            [0.0000, 1.0000]])
    """
    check_inplace(input, bool(modes.grad.enabled) and input.requires_grad)
    table = input._data
    if table.ndim != 2:
        raise RuntimeError(f"Expected 2-dimensional tensor, but got {table.ndim}-dimensional "
                           "tensor for argument #1 'self' (while checking arguments for "
                           "embedding_renorm_)")  # fmt: skip
    _check_normed(input.dtype)
    chosen = np.unique(indices._data)
    _check_indices(chosen, table.shape[0], "embedding_renorm_")
    rows = widen(table[chosen])
    norms = ops.linalg.vector_norm(wrap(rows), norm_type, 1)._data
    large = norms > max_norm
    scale = max_norm / (norms[large] + 1e-7)
    table[chosen[large]] = narrow(rows[large] * scale[:, None].astype(rows.dtype), table.dtype)
    bump(input)
    return input


def _renormed(weight: Any, indices: Any, max_norm: float | None, norm_type: float) -> None:
    if max_norm is None:
        return
    enabled = modes.grad.enabled
    modes.grad.enabled = False
    try:
        ops.embedding_renorm_(weight, indices, max_norm, norm_type)
    finally:
        modes.grad.enabled = enabled


def _wrapped_padding(padding_idx: int | None, rows: int) -> int:
    if padding_idx is None:
        return -1
    if not -rows <= padding_idx < rows:
        raise AssertionError("Padding_idx must be within num_embeddings")
    return padding_idx + rows if padding_idx < 0 else padding_idx


@functional()
def functional_embedding(
    input: Any,
    weight: Any,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Any:
    """Rows of `weight` [V, D] at the indices in `input` [*]: [*, D].

    Rows of `padding_idx` get no gradient; `max_norm` first scales the looked-up rows of `weight`.

    >>> import flambeau as torch
    >>> torch.nn.functional.embedding(torch.tensor([1]), torch.tensor([[1.0, 2.0], [3.0,
    ...     4.0]]))
    tensor([[3., 4.]])
    """
    try:
        padding = (
            -1 if padding_idx is None else _wrapped_padding(padding_idx, weight._data.shape[0])
        )
    except AttributeError:
        without_public_attribute("size", weight)
        raise
    if EAGER:  # programs do not scale, nor do torch's
        _renormed(weight, input, max_norm, norm_type)
    return ops.embedding(weight, input, padding, scale_grad_by_freq, sparse)


# ---- bags

MODES = ("sum", "mean", "max")
"""What the numbers of modes mean."""


def _bag_gradients(grad: Any, weight: Any, indices: Any, per_sample_weights: Any, mode: int,
                   sparse: bool, scale_grad_by_freq: bool, padding_idx: int, result1: Any,
                   result2: Any, result3: Any, wanted: Any) -> Any:  # fmt: skip
    """Each index gets its bag's gradient, weighted as in the sum."""
    rows = ops.embedding(grad, result1)
    of_weight = of_samples = None
    if wanted[0] and mode == 2:
        of_weight = _max_gradient(grad, weight, result2, result3)
    elif wanted[0]:
        scaled = rows
        if mode == 1:
            sizes = np.maximum(numbers_under(result2._data), 1)[numbers_under(result1._data)]
            sizes_ = on_device_of(wrap(sizes.astype(np.float64)), grad)
            scaled = rows / sizes_.to(grad.dtype).unsqueeze(-1)
        if per_sample_weights is not None:
            scaled = rows * per_sample_weights.unsqueeze(-1)
        of_weight = _embedding_gradient(
            scaled, indices, weight.shape, padding_idx, scale_grad_by_freq, sparse
        )
    if wanted[1]:
        of_samples = (rows * ops.embedding(weight, indices)).sum(-1)
        if padding_idx >= 0:
            of_samples = of_samples * (indices != padding_idx)
    return of_weight, of_samples


def _max_gradient(grad: Any, weight: Any, sizes: Any, positions: Any) -> Any:
    """Each column of a bag goes to the row that its maximum came from."""
    alert_on_gpus("embedding_bag_backward_cuda_max", grad)
    filled = ops.unsqueeze(sizes > 0, 1)
    zeros = ops.zeros_like(weight)
    return ops.scatter_add(zeros, 0, positions.to(dt.int64), grad * filled)


@kernel(
    "_embedding_bag(Tensor weight, Tensor indices, Tensor offsets,"
    " bool scale_grad_by_freq=False, int mode=0, bool sparse=False,"
    " Tensor? per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1)"
    " -> (Tensor, Tensor, Tensor, Tensor)",
    method=False,
    shown="embedding_bag",
    node="EmbeddingBagBackward0",
    nondifferentiable=("result1", "result2", "result3"),
    backward={("weight", "per_sample_weights"): _bag_gradients},
)
def _embedding_bag(weight: np.ndarray, indices: np.ndarray, offsets: np.ndarray,
                   scale_grad_by_freq: bool, mode: int, sparse: bool,
                   per_sample_weights: np.ndarray | None, include_last_offset: bool,
                   padding_idx: int) -> Any:  # fmt: skip
    """Bags, the bag of each index, the number of indices in each bag, and where maxima are."""
    if indices.dtype != offsets.dtype:
        given = [dt.from_numpy_dtype(found.dtype) for found in (indices, offsets)]
        common = promote_types(*given).numpy_dtype
        indices, offsets = indices.astype(common), offsets.astype(common)
    _check_offsets(offsets, indices.size)
    _check_bag_indices(indices, weight, mode, padding_idx)
    _check_bag_weights(weight, per_sample_weights)
    starts = offsets[:-1] if include_last_offset else offsets
    found = bags.reduce(weight, indices, starts, MODES[mode], per_sample_weights, padding_idx)
    return tuple(found)


def _has_fast_sum(weight: np.ndarray, mode: int, padding_idx: int) -> bool:
    """Torch has a fast path for sums of shorter types of which nothing is left out.

    Only there does the last of the offsets end the last bag; elsewhere that goes to the end.
    """
    return mode != 2 and padding_idx < 0 and weight.dtype != np.float64


def _check_bag_indices(
    indices: np.ndarray, weight: np.ndarray, mode: int, padding_idx: int
) -> None:
    """Torch's fast sums have words of their own."""
    rows = weight.shape[0]
    _check_types(indices, "embedding_bag")
    if in_range(indices, rows):
        return
    place = int(np.flatnonzero((indices < 0) | (indices >= rows))[0])
    raise RuntimeError(
        f"Index {place} of input takes value {indices[place]} which is not in the valid range "
        f"[0, {rows})"
        if _has_fast_sum(weight, mode, padding_idx)
        else "embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be "
        f"{indices[place]}"
    )


def _check_bag_weights(weight: np.ndarray, per_sample_weights: np.ndarray | None) -> None:
    if weight.dtype.kind not in "fV":
        found = type_words(dt.from_numpy_dtype(weight.dtype))
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have one of the following scalar types: "
            f"Half, BFloat16, Float, Double; but got {found} instead (while checking "
            "arguments for embedding_bag)"
        )
    if per_sample_weights is None or per_sample_weights.dtype == weight.dtype:
        return
    given = weight, per_sample_weights
    names = [type_words(dt.from_numpy_dtype(found.dtype)) for found in given]
    raise RuntimeError(
        "Expected tensor for argument #1 'weight' to have the same type as tensor for argument #1 "
        f"'per_sample_weights'; but type {names[0]} does not equal "
        f"{names[1]} (while checking arguments for embedding_bag)"
    )


def _check_offsets(offsets: np.ndarray, count: int) -> None:
    if not offsets.size:
        return
    if offsets[0] != 0:
        raise RuntimeError(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from "
            f"position 0. However, got {offsets[0]}"
        )
    if offsets[-1] > count:
        raise RuntimeError(
            f"offsets[-1] can not be greater than input's length {count} but got offsets[-1] of "
            f"{offsets[-1]}"
        )
    if offsets.min() < 0:
        raise IndexError("index out of range in self")


@composite(
    "embedding_bag(Tensor weight, Tensor indices, Tensor offsets,"
    " bool scale_grad_by_freq=False, int mode=0, bool sparse=False,"
    " Tensor? per_sample_weights=None, bool include_last_offset=False,"
    " int? padding_idx=None) -> (Tensor, Tensor, Tensor, Tensor)",
    bare=True,
    method=False,
)
def embedding_bag(
    weight: Any,
    indices: Any,
    offsets: Any,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Any:
    """Sums (mode 0), means (1) or maxima (2) of bags of rows that start at `offsets`.

    Shapes: weight [V, D], indices [K], offsets [B]; the first result is [B, D].

    >>> import flambeau as torch
    >>> weight, indices = torch.tensor([[1.], [2.], [3.]]), torch.tensor([0, 1, 2])
    >>> torch.embedding_bag(weight, indices, torch.tensor([0, 2]))[0]
    tensor([[3.],
            [3.]])
    """
    for word, tensor, dims in (("weight", weight, 2), ("offsets", offsets, 1)):
        if tensor.ndim != dims:
            raise RuntimeError(f"{word} has to be a {dims}D Tensor, but got Tensor of dimension "
                               f"{tensor.ndim}")  # fmt: skip
    padding = _wrapped_bag_padding(padding_idx, weight._data.shape[0])
    if include_last_offset and offsets.numel() and _has_fast_sum(weight._data, mode, padding):
        last = int(offsets._data[-1])  # indices behind the last offset belong to no bag
        if last < indices.numel():
            indices = indices.narrow(0, 0, last)
            if per_sample_weights is not None:
                per_sample_weights = per_sample_weights.narrow(0, 0, last)
    return ops._embedding_bag(
        weight,
        indices,
        offsets,
        scale_grad_by_freq,
        mode,
        sparse,
        per_sample_weights,
        include_last_offset,
        padding,
    )


def _wrapped_bag_padding(padding_idx: int | None, rows: int) -> int:
    if padding_idx is None:
        return -1
    if not -rows <= padding_idx < rows:
        raise RuntimeError(
            f"padding_idx must be within the number of embeddings, -{rows} through {rows - 1}, "
            f"but got {padding_idx}"
        )
    return padding_idx + rows if padding_idx < 0 else padding_idx


def _bag_offsets(input: Any, offsets: Any | None, per_sample_weights: Any | None
                 ) -> tuple[Any, Any, Any | None]:  # fmt: skip
    """Flat indices and offsets; a 2-D input is one bag per row."""
    if input.dim() == 2:
        if offsets is not None:
            found = _shown_type(offsets) if EAGER else "<unknown>"
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch "
                f"of fixed length sequences. However, found offsets of type {found}"
            )
        offsets = ops.arange(0, input.numel(), input.shape[1], dtype=input.dtype,
                             device=input.device)  # fmt: skip
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape(-1)
        return input.reshape(-1), offsets, per_sample_weights
    if input.dim() != 1:
        raise ValueError(
            f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}"
        )
    if offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    if offsets.dim() != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    return input, offsets, per_sample_weights


def _shown_type(offsets: Any) -> str:
    return "<class 'torch.Tensor'>" if isinstance(offsets, Tensor) else str(type(offsets))


def _check_bag_mode(mode: str, scale_grad_by_freq: bool, sparse: bool, weighted: bool) -> int:
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if weighted and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported "
            f"for mode='sum' (got mode='{mode}'). Please open a feature request on GitHub."
        )
    return 0 if mode == "sum" else 1 if mode == "mean" else 2


@functional()
def functional_embedding_bag(
    input: Any,
    weight: Any,
    offsets: Any = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Any:
    """Sums, means or maxima over bags of rows of `weight` [V, D].

    `input` [B, L] holds B bags of L indices; `input` [K] is split at `offsets` [B]. Result [B, D].

    >>> import flambeau as torch
    >>> weight, bags = torch.tensor([[1.], [2.], [3.]]), torch.tensor([[0, 1], [2, 2]])
    >>> torch.nn.functional.embedding_bag(bags, weight)
    tensor([[1.5000],
            [3.0000]])
    """
    if weight.dtype == dt.int64 and input.is_floating_point():
        warnings.warn(
            "Argument order of nn.functional.embedding_bag was changed. Usage "
            "`embedding_bag(weight, input, ...)` is deprecated, and should now be "
            "`embedding_bag(input, weight, ...)`.",
            stacklevel=2,
        )
        weight, input = input, weight
    if per_sample_weights is not None and input.size() != per_sample_weights.size():
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then "
            f"it must have the same shape as the input ({input.shape})"
        )
    if weight.dim() != 2:
        raise ValueError(
            f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}"
        )
    input, offsets, per_sample_weights = _bag_offsets(input, offsets, per_sample_weights)
    code = _check_bag_mode(mode, scale_grad_by_freq, sparse, per_sample_weights is not None)
    if EAGER:  # programs do not scale, nor do torch's
        _renormed(weight, input, max_norm, norm_type)
    return ops.embedding_bag(
        weight, input, offsets, scale_grad_by_freq, code, sparse, per_sample_weights,
        include_last_offset, padding_idx,
    )[0]  # fmt: skip
