"""Batches on their way from a worker process to the loader's: memory is shared, not sent.

A worker writes the memory of a batch into a segment, an anonymous file that both processes map,
and sends the rest, pickled, through a pipe. When nothing in the loader's process refers to a batch
any more, its segment goes back to the worker, which uses it again. Segments have no names: whatever
happens to the processes, nothing is left over.
"""

from __future__ import annotations

import ctypes
import functools
import io
import mmap
import os
import pickle
import queue
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau._runtime.shared_memory import anonymous_file
from flambeau._tensor.attributes import FIELDS, fields_of
from flambeau._tensor.tensor import Tensor, wrap

INLINE = 1 << 16
"""Bytes of memory up to which a batch goes through the pipe as a whole."""
ALIGNED = 64
"""Each tensor's memory starts at a multiple of this in its segment."""
GRANULE = 1 << 20
"""Sizes of segments are multiples of this."""


# ---- pickling

NON_LEAF = (
    "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not "
    "support crossing process boundaries.  If you just want to transfer the data, call detach() on "
    "the tensor before serializing (e.g., putting it on the queue)."
)


class BatchPickler(pickle.Pickler):
    """Pickles batches; tensors leave their memory to the buffers."""

    def reducer_override(self, value: Any) -> Any:
        """Tensors without a history or attributes of their own, in any dense layout."""
        if isinstance(value, Tensor) and value._node is not None:
            raise RuntimeError(NON_LEAF)
        if type(value) is Tensor and value._node is None and fields_of(value).keys() <= FIELDS:
            data = value._data
            order = sorted(range(data.ndim), key=lambda d: -abs(data.strides[d]))
            dense = data.transpose(order)
            memory: Any = np.ascontiguousarray(dense).reshape(-1).view(np.uint8)
            raw = pickle.PickleBuffer(memory)
            return tensor_of, (raw, data.dtype, dense.shape, order, value._requires_grad)
        return NotImplemented


def tensor_of(raw: Any, dtype: np.dtype[Any], shape: tuple[int, ...], order: list[int],
              requires_grad: bool) -> Tensor:  # fmt: skip
    """A tensor over a buffer that holds its elements in the order of memory."""
    data = np.frombuffer(raw, np.uint8).view(dtype).reshape(shape)
    result = wrap(data.transpose(np.argsort(order)))
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
    """Memory that two processes map. It is unmapped when nothing refers to `memory`.

    The system's own `mmap`, since Python's keeps a descriptor open for each map, and processes may
    have few of those.
    """

    def __init__(self, descriptor: int, size: int) -> None:
        system = _system()
        where = system.mmap(None, size, READ_AND_WRITE, mmap.MAP_SHARED, descriptor, 0)
        if where == NOWHERE:
            raise OSError(ctypes.get_errno(), f"{size} bytes of shared memory can't be mapped")
        self.size = size
        self.memory: Any = (ctypes.c_ubyte * size).from_address(where)
        weakref.finalize(self.memory, system.munmap, where, size).atexit = False


READ_AND_WRITE = mmap.PROT_READ | mmap.PROT_WRITE
NOWHERE = ctypes.c_void_p(-1).value


@functools.cache
def _system() -> Any:
    system = ctypes.CDLL(None, use_errno=True)
    system.mmap.restype = ctypes.c_void_p
    system.mmap.argtypes = (
        ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long,
    )  # fmt: skip
    system.munmap.argtypes = ctypes.c_void_p, ctypes.c_size_t
    return system


class Sender:
    """A worker's end: `send` writes a batch, `given_back` takes segments that are free again, of
    which at most `kept` are kept.
    """

    def __init__(self, connection: Any, kept: int) -> None:
        self.connection = connection
        self.kept = kept
        self.segments: dict[int, Segment] = {}
        self.made = 0
        self.free: list[int] = []
        self.coming: queue.SimpleQueue[list[int]] = queue.SimpleQueue()

    def given_back(self, numbers: list[int]) -> None:
        """These segments may be written again. May be called by another thread."""
        self.coming.put(numbers)

    def send(self, head: Any, value: Any) -> None:
        """Send `head`, which is small, and a batch."""
        text, buffers = pickled(value)
        places, total = [], 0
        for buffer in buffers:
            places.append((total, buffer.nbytes))
            total += -(-buffer.nbytes // ALIGNED) * ALIGNED
        gone = self._gone()
        if total <= INLINE:
            parts = [bytes(buffer) for buffer in buffers]
            self._write((head, text, parts, None, 0, gone))
            return
        number, descriptor = self._segment(total)
        segment = self.segments[number]
        memory = memoryview(segment.memory).cast("B")
        for (start, size), buffer in zip(places, buffers, strict=True):
            memory[start : start + size] = buffer
        if descriptor is None:
            self._write((head, text, places, number, 0, gone))
            return
        from multiprocessing.reduction import send_handle

        try:
            self._write((head, text, places, number, segment.size, gone))
            send_handle(self.connection, descriptor, None)
        finally:
            os.close(descriptor)

    def _write(self, message: Any) -> None:
        self.connection.send_bytes(pickle.dumps(message, 5))

    def _gone(self) -> list[int]:
        """The segments that are too many, which both ends forget."""
        while not self.coming.empty():
            self.free += self.coming.get()
        gone, self.free = self.free[: -self.kept], self.free[-self.kept :]
        for number in gone:
            del self.segments[number]
        return gone

    def _segment(self, size: int) -> tuple[int, int | None]:
        """A free segment of that size, and its descriptor if it is a new one."""
        fitting = [n for n in self.free if self.segments[n].size >= size]
        if fitting:
            number = min(fitting, key=lambda n: self.segments[n].size)
            self.free.remove(number)
            return number, None
        whole = -(-size // GRANULE) * GRANULE
        descriptor = anonymous_file(whole, "flambeau-batch")
        self.made += 1
        try:
            self.segments[self.made] = Segment(descriptor, whole)
        except OSError:
            os.close(descriptor)
            raise
        return self.made, descriptor


class Receiver:
    """The loader's end of a worker's pipe. `free` collects the segments that may go back."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.segments: dict[int, Segment] = {}
        self.free: list[int] = []

    def receive(self) -> tuple[Any, Callable[[], Any]]:
        """The next head, and what makes its batch; a batch that is not made is dropped."""
        message = pickle.loads(self.connection.recv_bytes())  # noqa: S301
        head, text, places, number, size, gone = message
        for old in gone:
            del self.segments[old]
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
