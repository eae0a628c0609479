"""Batches on their way from a worker process to the loader's: memory is shared, not sent.

A worker writes the memory of a batch into a segment, an anonymous file that both processes map,
and sends the rest, pickled, through a pipe. When nothing in the loader's process refers to a batch
any more, its segment goes back to the worker, which uses it again. Segments have no names: whatever
happens to the processes, nothing is left over.
"""

from __future__ import annotations

import io
import mmap
import os
import pickle
import tempfile
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau._tensor.interop import FIELDS
from flambeau._tensor.tensor import Tensor, wrap

INLINE = 1 << 16
"""Bytes of memory up to which a batch goes through the pipe as a whole."""
ALIGNED = 64
"""Each tensor's memory starts at a multiple of this in its segment."""
GRANULE = 1 << 20
"""Sizes of segments are multiples of this."""


def _file_of(size: int) -> int:
    """The descriptor of a file in memory that has no name."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("flambeau-batch", os.MFD_CLOEXEC)
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    try:
        os.ftruncate(descriptor, size)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


# ---- pickling


class BatchPickler(pickle.Pickler):
    """Pickles batches; tensors leave their memory to the buffers."""

    def reducer_override(self, value: Any) -> Any:
        """Tensors without a history or attributes of their own, in any dense layout."""
        if type(value) is Tensor and value._node is None and vars(value).keys() <= FIELDS:
            data = value._data
            order = sorted(range(data.ndim), key=lambda d: -abs(data.strides[d]))
            dense = np.ascontiguousarray(data.transpose(order))
            memory: Any = dense.reshape(-1).view(np.uint8)
            raw = pickle.PickleBuffer(memory)
            return tensor_of, (raw, data.dtype, dense.shape, order, value._requires_grad)
        return NotImplemented


def tensor_of(raw: Any, dtype: np.dtype[Any], shape: tuple[int, ...], order: list[int],
              requires_grad: bool) -> Tensor:  # fmt: skip
    """A tensor over a buffer that holds its elements in the order of memory."""
    data = np.frombuffer(raw, np.uint8).view(dtype).reshape(shape)
    result = wrap(data.transpose(np.argsort(order)) if shape else data)
    result._requires_grad = requires_grad
    return result


def pickled(value: Any) -> tuple[bytes, list[Any]]:
    """The pickle of a batch, and the buffers that it refers to."""
    buffers: list[Any] = []
    text = io.BytesIO()
    BatchPickler(text, 5, buffer_callback=lambda b: buffers.append(b.raw())).dump(value)
    return text.getvalue(), buffers


# ---- segments


class Segment:
    """Memory that two processes map."""

    def __init__(self, descriptor: int, size: int) -> None:
        self.size = size
        self.memory = mmap.mmap(descriptor, size)


class Sender:
    """A worker's end: `send` writes a batch, `given_back` takes segments that are free again."""

    def __init__(self, connection: Any, parent: int) -> None:
        self.connection = connection
        self.parent = parent
        self.segments: list[Segment] = []
        self.free: set[int] = set()

    def given_back(self, numbers: list[int]) -> None:
        """These segments may be written again."""
        self.free.update(numbers)

    def send(self, head: Any, value: Any) -> None:
        """Send `head`, which is small, and a batch."""
        text, buffers = pickled(value)
        places, total = [], 0
        for buffer in buffers:
            places.append((total, buffer.nbytes))
            total += -(-buffer.nbytes // ALIGNED) * ALIGNED
        if total <= INLINE:
            parts = [bytes(buffer) for buffer in buffers]
            self.connection.send_bytes(pickle.dumps((head, text, parts, None, 0), 5))
            return
        number, descriptor = self._segment(total)
        segment = self.segments[number]
        for (start, size), buffer in zip(places, buffers, strict=True):
            segment.memory[start : start + size] = buffer
        size = segment.size if descriptor is not None else 0
        self.connection.send_bytes(pickle.dumps((head, text, places, number, size), 5))
        if descriptor is not None:
            from multiprocessing.reduction import send_handle

            try:
                send_handle(self.connection, descriptor, self.parent)
            finally:
                os.close(descriptor)

    def _segment(self, size: int) -> tuple[int, int | None]:
        """A free segment of that size, and its descriptor if it is a new one."""
        fitting = [n for n in self.free if self.segments[n].size >= size]
        if fitting:
            number = min(fitting, key=lambda n: self.segments[n].size)
            self.free.discard(number)
            return number, None
        whole = -(-size // GRANULE) * GRANULE
        descriptor = _file_of(whole)
        self.segments.append(Segment(descriptor, whole))
        return len(self.segments) - 1, descriptor


class Receiver:
    """The loader's end of a worker's pipe. `free` collects the segments that may go back."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.segments: dict[int, Segment] = {}
        self.free: list[int] = []

    def receive(self) -> tuple[Any, Callable[[], Any]]:
        """The next head, and what makes its batch; a batch that is not made is dropped."""
        head, text, places, number, size = pickle.loads(self.connection.recv_bytes())  # noqa: S301
        if number is None:
            return head, lambda: pickle.loads(text, buffers=map(bytearray, places))  # noqa: S301
        if size:
            from multiprocessing.reduction import recv_handle

            descriptor = recv_handle(self.connection)
            try:
                self.segments[number] = Segment(descriptor, size)
            finally:
                os.close(descriptor)
        whole = np.frombuffer(self.segments[number].memory, np.uint8).view(Leased)
        weakref.finalize(whole, self.free.append, number).atexit = False
        parts = [whole[start : start + size] for start, size in places]
        return head, lambda: pickle.loads(text, buffers=parts)  # noqa: S301

    def returned(self) -> list[int]:
        """The segments that are free since the last call."""
        return [self.free.pop() for _ in range(len(self.free))]


class Leased(np.ndarray):
    """A segment's memory for one batch. Its own type, so that views keep it alive, not the map."""
