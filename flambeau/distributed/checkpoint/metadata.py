"""What a distributed checkpoint says of itself: tensors, their pieces, and where these are.

The classes have PyTorch's names and fields, since both write them into the file `.metadata`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from flambeau._core import dtype as dt
from flambeau._core.layout import Size, layout, memory_format
from flambeau._tensor.tensor import Tensor

MEMORY_FORMATS = ("contiguous_format", "channels_last", "preserve_format")
"""In the order of their numbers in files."""


class _MEM_FORMAT_ENCODING(Enum):  # noqa: N801  its name in files
    """Numbers that stand for memory formats in files."""

    TORCH_CONTIGUOUS_FORMAT = 0
    TORCH_CHANNELS_LAST = 1
    TORCH_PRESERVE_FORMAT = 2


@dataclass
class ChunkStorageMetadata:
    """A rectangular piece of a tensor: where it begins in the whole, and how large it is."""

    offsets: Size
    sizes: Size


@dataclass
class TensorProperties:
    """What has to be known to make a tensor, but for its size."""

    dtype: dt.dtype = field(default_factory=dt.default_dtype)
    layout: Any = field(default_factory=lambda: layout.table["strided"])
    requires_grad: bool = False
    memory_format: Any = field(default_factory=lambda: memory_format.table["contiguous_format"])
    pin_memory: bool = False

    def __getstate__(self) -> tuple[Any, ...]:
        name = str(self.memory_format).removeprefix("torch.")
        number = _MEM_FORMAT_ENCODING(MEMORY_FORMATS.index(name))
        return self.dtype, self.layout, self.requires_grad, number, self.pin_memory

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.dtype, self.layout, self.requires_grad, number, self.pin_memory = state
        self.memory_format = memory_format.table[MEMORY_FORMATS[number.value]]

    @staticmethod
    def create_from_tensor(tensor: Tensor) -> TensorProperties:
        """The properties of a tensor."""
        return TensorProperties(tensor.dtype, tensor.layout, requires_grad=tensor.requires_grad)


@dataclass
class TensorStorageMetadata:
    """A tensor that is saved in pieces."""

    properties: TensorProperties
    size: Size
    chunks: list[ChunkStorageMetadata]


@dataclass
class BytesStorageMetadata:
    """An object that is saved as one pickle."""


@dataclass
class StorageMeta:
    """Names of a checkpoint and of the calls that saved and loaded it."""

    checkpoint_id: str | os.PathLike[str] | None = None
    save_id: str | None = None
    load_id: str | None = None
    modules: list[str] = field(default_factory=list)


@dataclass
class Metadata:
    """What the file `.metadata` holds.

    Attributes:
        state_dict_metadata: for each flat name, what is saved.
        planner_data: for each flat name, the keys that lead to it in the nested dict.
        storage_data: for each piece, the file and the bytes in it.
        storage_meta, version: who saved it, and the version of the format.
    """

    state_dict_metadata: dict[str, TensorStorageMetadata | BytesStorageMetadata]
    planner_data: Any = None
    storage_data: Any = None
    storage_meta: StorageMeta | None = None
    version: str | None = None


@dataclass(frozen=True)
class MetadataIndex:
    """The name of a piece: of an object, or of a tensor from `offset` on.

    `index` is where the piece may be found in the list of the tensor's pieces; it does not count
    when two names are compared.
    """

    fqn: str
    offset: Size | None = None
    index: int | None = field(hash=False, compare=False, default=None)

    def __init__(self, fqn: str, offset: Any = None, index: int | None = None) -> None:
        object.__setattr__(self, "fqn", fqn)
        object.__setattr__(self, "offset", None if offset is None else Size(offset))
        object.__setattr__(self, "index", index)
