"""Sequences of different lengths: padded, packed, and back.

A packed sequence holds the rows of all time steps one after another, each step with those sequences
that are still running, the longest first.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from flambeau._core import dtype as dt
from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor, wrap

NOT_SORTED = (
    "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can "
    "pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this "
    "requirement if you do not need ONNX exportability."
)
NOT_POSITIVE = (
    "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
)


class PackedSequence_(NamedTuple):
    """The fields of a packed sequence."""

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(PackedSequence_):
    """What `pack_padded_sequence` makes and recurrent layers take.

    data: (sum of lengths, *) the rows by time step; batch_sizes: how many rows each step has;
    sorted_indices and unsorted_indices: the order by length and its inverse.
    """

    def __new__(
        cls,
        data: Tensor,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> PackedSequence:
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes is None:
            # PackedSequence((data, batch_sizes)), as files of old have it
            if not (isinstance(data, (list, tuple)) and len(data) == 2):
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)  # type: ignore[arg-type]

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The data in another dtype or on another device."""
        if "copy" in kwargs:
            raise RuntimeError(".to() does not accept copy argument")
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        return type(self)(data, *self[1:])

    def _cast(self, dtype: dt.dtype) -> PackedSequence:
        return self.to(dtype)

    def double(self) -> PackedSequence:
        """The data as float64."""
        return self._cast(dt.float64)

    def float(self) -> PackedSequence:
        """The data as float32."""
        return self._cast(dt.float32)

    def half(self) -> PackedSequence:
        """The data as float16."""
        return self._cast(dt.float16)

    def long(self) -> PackedSequence:
        """The data as int64."""
        return self._cast(dt.int64)

    def int(self) -> PackedSequence:
        """The data as int32."""
        return self._cast(dt.int32)

    def short(self) -> PackedSequence:
        """The data as int16."""
        return self._cast(dt.int16)

    def char(self) -> PackedSequence:
        """The data as int8."""
        return self._cast(dt.int8)

    def byte(self) -> PackedSequence:
        """The data as uint8."""
        return self._cast(dt.uint8)

    def cpu(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The data on the CPU; arguments as those of `to`."""
        probe = self.data[:0].to(*args, **kwargs)
        if probe.device.type == "cpu":
            return self.to(*args, **kwargs)
        return self.to(*args, **{"device": "cpu", **kwargs})

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The data on the GPU; raises where there is none."""
        return type(self)(self.data.cuda(*args, **kwargs), *self[1:])

    @property
    def is_cuda(self) -> bool:
        """Whether the data are on the GPU."""
        return self.data.is_cuda

    def is_pinned(self) -> bool:
        """Whether the data are in pinned memory."""
        return self.data.is_pinned()  # type: ignore[no-any-return]

    def pin_memory(self) -> PackedSequence:
        """The data in pinned memory."""
        return type(self)(self.data.pin_memory(), *self[1:])


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes another."""
    if permutation is None:
        return None
    places = ops.arange(permutation.numel(), device=permutation.device)
    return ops.empty_like(permutation).scatter_(0, permutation, places)  # type: ignore[no-any-return]


def _lengths(lengths: Any) -> np.ndarray:
    if isinstance(lengths, Tensor):
        values = lengths.to(dt.int64)._data  # type: ignore[attr-defined]
    else:
        values = ops.as_tensor(lengths, dtype=dt.int64, device="cpu")._data
    return values.astype(np.int64)


def _check_one_dim(values: np.ndarray) -> None:
    if values.ndim != 1:
        raise RuntimeError(
            f"'lengths' argument should be a 1D CPU int64 tensor, but got {values.ndim}D cpu Long "
            "tensor"
        )


def _rows(batch_sizes: np.ndarray, batch: int) -> Tensor:
    """Where the rows of a packed sequence are in the padded one, seen as (T·N, *)."""
    steps = [step * batch + np.arange(size) for step, size in enumerate(batch_sizes)]
    return wrap(np.concatenate(steps) if steps else np.empty(0, np.int64))


def _beside(indices: Tensor, other: Tensor) -> Tensor:
    """Indices on the device of another tensor."""
    return indices.to(other.device)  # type: ignore[attr-defined, no-any-return]


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack (T, N, *), or (N, T, *) with `batch_first`, keeping `lengths[n]` steps of sequence n.

    `enforce_sorted`: lengths must decrease already; otherwise sequences are sorted.
    """
    sizes = _lengths(lengths)
    order = None
    if not enforce_sorted:
        if sizes.ndim > 1:
            raise IndexError("index_select(): Index is supposed to be a vector")
        order = _beside(wrap(np.argsort(-sizes, kind="stable")), input)
        sizes = sizes[order._data]
        input = ops.index_select(input, 0 if batch_first else 1, order)
    if 0 in input.shape:
        raise RuntimeError("Cannot pack empty tensors.")
    _check_one_dim(sizes)
    if batch_first:
        input = input.transpose(0, 1)
    _check_lengths(input, sizes)
    steps = np.arange(int(sizes[0]))
    batch_sizes = (sizes[None, :] > steps[:, None]).sum(axis=1)
    data = input.reshape(-1, *input.shape[2:])
    data = ops.index_select(data, 0, _beside(_rows(batch_sizes, input.shape[1]), input))
    return PackedSequence(data, wrap(batch_sizes.astype(np.int64)), order)


def _check_lengths(input: Tensor, sizes: np.ndarray) -> None:
    batch = input.shape[1]
    if sizes.size != batch:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {sizes.size} "
            f"(batch_size={batch})"
        )
    if (sizes <= 0).any():
        raise RuntimeError(NOT_POSITIVE)
    if (np.diff(sizes) > 0).any():
        raise RuntimeError(NOT_SORTED)
    if sizes[0] > input.shape[0]:
        raise RuntimeError(
            f"Expected sequence length to be at most {input.shape[0]}, but got {sizes[0]}"
        )


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """The padded sequence (T, N, *), or (N, T, *), and the lengths (N)."""
    batch_sizes = sequence.batch_sizes._data
    steps, batch = len(batch_sizes), int(batch_sizes[0])
    if total_length is not None:
        if total_length < steps:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in "
                f"input, but got total_length={total_length} and max sequence length being {steps}"
            )
        steps = total_length
    shape = sequence.data.shape[1:]
    padded = sequence.data.new_full((steps * batch, *shape), padding_value)
    padded = padded.index_copy(0, _beside(_rows(batch_sizes, batch), padded), sequence.data)
    padded = padded.reshape(steps, batch, *shape)
    lengths = wrap((batch_sizes[:, None] > np.arange(batch)).sum(axis=0).astype(np.int64))
    if batch_first:
        padded = padded.transpose(0, 1)
    if sequence.unsorted_indices is not None:
        padded = ops.index_select(padded, 0 if batch_first else 1, sequence.unsorted_indices)
        lengths = ops.index_select(lengths, 0, _beside(sequence.unsorted_indices, lengths))
    return padded, lengths


def pad_sequence(
    sequences: Any,
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Tensors (L_n, *) of different lengths as one (T, N, *), or (N, T, *)."""
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            "pad_sequence: Expected iterable for input sequences, but got arg of type: "
            f"{type(sequences)}"
        )
    if isinstance(sequences, Tensor):
        sequences = sequences.unbind(0)
    sequences = list(sequences)
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(
            f"Expected padding_side to be one of left or right, but got {padding_side}."
        )
    for place, sequence in enumerate(sequences):
        if not isinstance(sequence, Tensor):
            raise TypeError(
                f"expected Tensor as element {place} in argument 0, but got "
                f"{type(sequence).__name__}"
            )
    longest = max(sequence.shape[0] for sequence in sequences)
    padded = []
    dtype, step = sequences[0].dtype, sequences[0].shape[1:]
    for sequence in sequences:
        sequence = sequence.to(dtype)
        if sequence.shape[1:] != step:
            sequence = sequence.new_zeros((len(sequence), *step)) + sequence
        filler = sequence.new_full(
            (longest - sequence.shape[0], *sequence.shape[1:]), padding_value
        )
        ordered = [filler, sequence] if padding_side == "left" else [sequence, filler]
        padded.append(ops.cat(ordered))
    return ops.stack(padded, 0 if batch_first else 1)  # type: ignore[no-any-return]


def unpad_sequence(padded_sequences: Tensor, lengths: Any, batch_first: bool = False) -> Any:
    """The tensors (L_n, *) of a padded sequence, as a list."""
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    steps = ops.arange(padded_sequences.shape[1], device=lengths.device)
    sequences: Any = padded_sequences
    pairs = zip(sequences, lengths, strict=True)
    return [sequence[steps < length] for sequence, length in pairs]


def pack_sequence(sequences: list[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack tensors (L_n, *) of different lengths."""
    lengths = [sequence.shape[0] for sequence in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The tensors (L_n, *) of a packed sequence."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)  # type: ignore[no-any-return]
