"""Tensors as pieces: what is written of each, and which pieces a piece is read from.

A tensor of which this process has a part says so by three methods, as distributed tensors do:
`__create_write_items__(fqn, tensor)`, `__create_chunk_list__()`, `__get_tensor_shard__(index)`.
"""

from __future__ import annotations

import math
from typing import Any

from flambeau._core.layout import Size
from flambeau._tensor.tensor import Tensor
from flambeau.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)
from flambeau.distributed.checkpoint.planner import (
    BytesIOWriteData,
    LoadItemType,
    ReadItem,
    TensorWriteData,
    WriteItem,
    WriteItemType,
)


def is_in_parts(value: Any) -> bool:
    """Whether this process has a part of a tensor only."""
    return hasattr(value, "__create_chunk_list__")


def write_items(name: str, value: Any) -> list[WriteItem]:
    """What is written of a value."""
    if is_in_parts(value):
        return list(value.__create_write_items__(name, value))
    if not isinstance(value, Tensor):
        data = BytesIOWriteData(0)
        return [WriteItem(MetadataIndex(name), WriteItemType.BYTE_IO, bytes_io_data=data)]
    chunk = whole(value)
    written = TensorWriteData(chunk, TensorProperties.create_from_tensor(value), value.size())
    index = MetadataIndex(name, chunk.offsets)
    return [WriteItem(index, WriteItemType.TENSOR, tensor_data=written)]


def whole(tensor: Tensor) -> ChunkStorageMetadata:
    """A tensor as one piece."""
    return ChunkStorageMetadata(Size([0] * tensor.dim()), tensor.size())


def chunks_of(tensor: Any) -> list[ChunkStorageMetadata]:
    """The pieces of a tensor that this process has."""
    return tensor.__create_chunk_list__() if is_in_parts(tensor) else [whole(tensor)]


def part_of(tensor: Any, index: MetadataIndex) -> Tensor:
    """The tensor behind one of `chunks_of`."""
    return tensor.__get_tensor_shard__(index) if is_in_parts(tensor) else tensor


def read_items(name: str, saved: TensorStorageMetadata | BytesStorageMetadata,
               value: Any) -> list[ReadItem]:  # fmt: skip
    """What is read for a value.

    Raises:
        ValueError: a tensor was saved, and the value is none.
    """
    if isinstance(saved, BytesStorageMetadata):
        index, none = MetadataIndex(name), Size([0])
        return [ReadItem(LoadItemType.BYTE_IO, index, none, index, none, none)]
    if not is_in_parts(value) and not isinstance(value, Tensor):
        raise ValueError(
            f"Invalid checkpoint metadata for {name}, expected BytesStorageMetadata but found "
            "<class 'torch.distributed.checkpoint.metadata.TensorStorageMetadata'>"
        )
    return read_items_of_chunks(name, saved, chunks_of(value))


def read_items_of_chunks(name: str, saved: TensorStorageMetadata,
                         chunks: list[ChunkStorageMetadata]) -> list[ReadItem]:  # fmt: skip
    """What is read to fill pieces: everything that they share with pieces in the files."""
    items = []
    for number, own in enumerate(chunks):
        for place, stored in enumerate(saved.chunks):
            common = overlap(own, stored)
            if common is None:
                continue
            items.append(
                ReadItem(
                    LoadItemType.TENSOR,
                    MetadataIndex(name, own.offsets, number), _within(common, own),
                    MetadataIndex(name, stored.offsets, place), _within(common, stored),
                    common.sizes,
                )
            )  # fmt: skip
    return items


def overlap(first: ChunkStorageMetadata,
            second: ChunkStorageMetadata) -> ChunkStorageMetadata | None:  # fmt: skip
    """The piece that two pieces share; None if there is nothing in it."""
    begins = list(map(max, first.offsets, second.offsets))
    ends = map(min, _ends(first), _ends(second))
    sizes = [end - begin for begin, end in zip(begins, ends, strict=True)]
    if any(size <= 0 for size in sizes):
        return None
    return ChunkStorageMetadata(Size(begins), Size(sizes))


def _ends(chunk: ChunkStorageMetadata) -> list[int]:
    return [begin + size for begin, size in zip(chunk.offsets, chunk.sizes, strict=True)]


def _within(common: ChunkStorageMetadata, chunk: ChunkStorageMetadata) -> Size:
    return Size([a - b for a, b in zip(common.offsets, chunk.offsets, strict=True)])


def cover_exactly(size: Size, chunks: list[ChunkStorageMetadata]) -> bool:
    """Whether pieces lie in a tensor, do not overlap, and leave nothing out."""
    outer = ChunkStorageMetadata(Size([0] * len(size)), size)
    if math.prod(size) == 0:
        return True
    held = [chunk for chunk in chunks if math.prod(chunk.sizes) > 0]
    if any(overlap(outer, chunk) != chunk for chunk in held):
        return False
    if sum(math.prod(chunk.sizes) for chunk in held) != math.prod(size):
        return False
    return not _any_overlap(held)


def _any_overlap(chunks: list[ChunkStorageMetadata]) -> bool:
    ordered = sorted(chunks, key=lambda chunk: tuple(chunk.offsets))
    for number, first in enumerate(ordered):
        for second in ordered[number + 1 :]:
            if second.offsets and second.offsets[0] >= first.offsets[0] + first.sizes[0]:
                break
            if overlap(first, second) is not None:
                return True
    return False


def narrowed(tensor: Tensor, offsets: Size, lengths: Size) -> Tensor:
    """The part of a tensor that begins at `offsets`."""
    part: Any = tensor
    for dim, (offset, length) in enumerate(zip(offsets, lengths, strict=True)):
        part = part.narrow(dim, offset, length)
    return part  # type: ignore[no-any-return]
