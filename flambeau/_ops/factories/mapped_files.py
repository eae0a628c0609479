"""`from_file`: a tensor whose memory is a file."""

from __future__ import annotations

from typing import Any

from flambeau._ops.factories.making import finish, options
from flambeau._ops.table.op import composite
from flambeau._tensor.storage import UntypedStorage
from flambeau._tensor.tensor import Tensor


@composite(
    "from_file(str filename, bool? shared=None, int? size=0, *, ScalarType? dtype=None, "
    "Layout? layout=None, Device? device=None, bool pin_memory=False, bool requires_grad=False) "
    "-> Tensor",
    method=False,
)
def from_file(filename: str, shared: bool | None = None, size: int | None = 0, *,
              dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
              requires_grad: bool = False) -> Tensor:  # fmt: skip
    """The first `size` elements of a file, mapped into memory.

    `shared`: what is written goes into the file, which is made or lengthened if need be. Otherwise
    the file must have these elements, and writes stay in this process.

    >>> import flambeau as torch
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(bytes([1, 0, 2, 0]))
    ...     file.flush()
    ...     x = torch.from_file(file.name, size=2, dtype=torch.int16).clone()
    >>> x
    tensor([1, 2], dtype=torch.int16)
    """
    if pin_memory:
        raise RuntimeError("tensors constructed from a file cannot be pinned")
    element = options(dtype, layout, device)
    storage = UntypedStorage.from_file(filename, bool(shared), (size or 0) * element.itemsize)
    result = finish(storage.array.view(element), requires_grad)
    result._storage = storage
    return result
