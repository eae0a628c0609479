"""`torch.types`: names for annotations."""

from __future__ import annotations

import builtins
import os
from collections.abc import Sequence
from typing import IO, TypeAlias

from flambeau._core.device import device as _device
from flambeau._core.dtype import dtype
from flambeau._core.layout import Size, layout
from flambeau._core.missing import lazily
from flambeau._tensor.storage import UntypedStorage
from flambeau._tensor.tensor import Tensor
from flambeau._tensor.typed_storage import TypedStorage

__all__ = ["Device", "FileLike", "Number", "Size", "Tensor"]

Number: TypeAlias = int | float | bool
Device: TypeAlias = _device | str | int | None
FileLike: TypeAlias = str | os.PathLike[str] | IO[bytes]
IntLikeType: TypeAlias = int
_dtype: TypeAlias = dtype
_layout: TypeAlias = layout
Storage: TypeAlias = UntypedStorage | TypedStorage
FloatLikeType: TypeAlias = float
BoolLikeType: TypeAlias = bool

_Number = (int, float, bool)
_int, _float, _bool, _str = builtins.int, builtins.float, builtins.bool, builtins.str
_bytes, _complex = builtins.bytes, builtins.complex
_size: TypeAlias = Size | list[int] | tuple[int, ...]
_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]


__getattr__ = lazily(__name__)
