"""Batches from worker processes: what arrives, how long it stays, what becomes of its memory."""

from __future__ import annotations

import gc
import os
import time
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flambeau as torch
from flambeau.utils.data import DataLoader
from flambeau.utils.data.transfer import INLINE

BIG = INLINE // 4 + 1  # float32 elements that go through shared memory
Pair = namedtuple("Pair", "left right")


class Tagged(torch.Tensor):
    """A subclass of tensors."""


def tagged() -> Any:
    value = torch.ones(3).as_subclass(Tagged)
    value.label = "a label"
    return value


def with_attribute() -> Any:
    value = torch.ones(3)
    value.label = "a label"
    return value


VALUES: dict[str, Any] = {
    **{str(dtype): (lambda dtype=dtype: torch.arange(BIG).to(dtype))
       for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.complex64,
                     torch.bool, torch.uint8, torch.int64)},
    "0-d": lambda: torch.tensor(3.5, dtype=torch.bfloat16),
    "empty": lambda: torch.empty(0, 3),
    "transposed": lambda: torch.arange(4.0 * BIG).reshape(4, BIG).t(),
    "permuted": lambda: torch.arange(24.0 * BIG).reshape(2, 3, 4, BIG).permute(3, 0, 2, 1),
    "every other": lambda: torch.arange(2 * BIG)[::2],
    "expanded": lambda: torch.ones(1, 3).expand(BIG, 3),
    "subclass": tagged,
    "attribute": with_attribute,
    "parameter": lambda: torch.nn.Parameter(torch.ones(BIG)),
    "leaf": lambda: torch.ones(BIG, requires_grad=True),
    "nested": lambda: {"a": [torch.ones(BIG), (np.ones(BIG), "text")], "b": {"c": b"bytes"}},
    "named": lambda: Pair(torch.ones(2), {1, 2}),
    "twice": lambda: [torch.ones(BIG)] * 2,
    "arrays": lambda: [np.array(["a", None, 3], object), np.array(["text"]), np.ones((3, BIG)).T],
    "structured": lambda: np.zeros(3, [("x", "f4"), ("y", "i8")]),
    "long text": lambda: "x" * 300_000,
    "numbers": lambda: (1, 2.5, None, True, 10**30, 1j),
}  # fmt: skip


def same(found: Any, wanted: Any) -> None:
    """Equal in type, dtype, shape, attributes and values."""
    assert type(found) is type(wanted)
    if isinstance(wanted, torch.Tensor):
        assert found.dtype is wanted.dtype
        assert found.shape == wanted.shape
        assert found.requires_grad == wanted.requires_grad
        assert found.is_leaf
        assert getattr(found, "label", None) == getattr(wanted, "label", None)
        assert torch.equal(found.detach(), wanted.detach())
    elif isinstance(wanted, np.ndarray):
        assert found.dtype == wanted.dtype
        assert found.shape == wanted.shape
        assert (found == wanted).all()
        assert found.flags.writeable
    elif isinstance(wanted, dict):
        assert found.keys() == wanted.keys()
        for key in wanted:
            same(found[key], wanted[key])
    elif isinstance(wanted, (list, tuple)):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            same(one, other)
    else:
        assert found == wanted


def as_it_is(value: Any) -> Any:
    return value


class Named:
    """Gives the values of `VALUES`, by name."""

    def __init__(self, names: list[str]) -> None:
        self.names = names

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, index: int) -> Any:
        return VALUES[self.names[index]]()


@pytest.fixture
def workers() -> Iterator[dict[str, Any]]:
    """Options of a loader with workers; afterwards nothing of them is left."""
    descriptors = _descriptors()
    yield {"num_workers": 2, "multiprocessing_context": "fork", "collate_fn": as_it_is}
    gc.collect()
    assert "memfd:flambeau" not in Path("/proc/self/maps").read_text()
    assert _descriptors() <= descriptors


def _descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_all_kinds_of_values_arrive(workers: dict[str, Any]) -> None:
    names = list(VALUES)
    for name, (found,) in zip(names, DataLoader(Named(names), **workers), strict=True):
        wanted = VALUES[name]()
        same(found, wanted)
        if name == "twice":
            assert found[0] is found[1]
        if name in {"transposed", "permuted"}:
            assert found.stride() == wanted.stride()


def test_results_of_operators_that_need_gradients_are_refused(workers: dict[str, Any]) -> None:
    table = torch.ones(4, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="refusing to serialize non-leaf tensor"):
        list(DataLoader(table, **workers))


class Filled:
    """Tensors filled with their index, big enough for shared memory."""

    def __init__(self, count: int, size: int = 4 * BIG) -> None:
        self.count, self.size = count, size

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        return torch.full((self.size,), index, dtype=torch.int32)


def test_all_batches_of_a_pass_stay_as_they_are(workers: dict[str, Any]) -> None:
    kept = list(DataLoader(Filled(30), persistent_workers=True, **workers))
    for index, (value,) in enumerate(kept):
        assert value.eq(index).all()
        value += 1
    for index, (value,) in enumerate(kept):
        assert value.eq(index + 1).all()


SURVIVORS: dict[str, Any] = {
    "the tensor": lambda t: t,
    "a slice": lambda t: t[BIG:],
    "an element": lambda t: t[7],
    "a view": lambda t: t.view(2, -1),
    "a view of other bits": lambda t: t.view(torch.float32),
    "data": lambda t: t.data,
    "detached": lambda t: t.detach(),
    "numpy": lambda t: t.numpy(),
    "numpy slice": lambda t: t.numpy()[5:][::2],
    "storage": lambda t: t.untyped_storage(),
    "memoryview": lambda t: memoryview(t.numpy()),
    "buffer": lambda t: np.frombuffer(memoryview(t.numpy()), np.int32),
    "dlpack": lambda t: np.from_dlpack(t),
    "dlpack tensor": lambda t: torch.from_dlpack(t),
    "set": lambda t: torch.empty(0, dtype=torch.int32).set_(t),
    "alias": lambda t: torch.as_tensor(t.numpy()),
}


def bytes_of(survivor: Any) -> Any:
    """Its bytes, as they are now."""
    if isinstance(survivor, torch.UntypedStorage):
        return list(survivor)[: 4 * BIG]
    if isinstance(survivor, memoryview):
        return survivor.tobytes()
    if isinstance(survivor, torch.Tensor):
        return survivor.numpy().tobytes()
    return survivor.tobytes()


@pytest.mark.parametrize("kind", SURVIVORS)
def test_whatever_survives_keeps_the_memory(kind: str, workers: dict[str, Any]) -> None:
    loader = DataLoader(Filled(8), persistent_workers=True, **workers)
    batches = iter(loader)
    (value,) = next(batches)
    survivor = SURVIVORS[kind](value)
    before = bytes_of(survivor)
    del value
    for _ in range(3):
        for _ in batches:
            pass
        batches = iter(loader)
    del batches, loader
    gc.collect()
    assert bytes_of(survivor) == before


def test_dropped_batches_give_their_memory_back(workers: dict[str, Any]) -> None:
    loader = DataLoader(Filled(40), persistent_workers=True, **workers)
    for _ in loader:
        pass
    crew = loader._iterator.crew
    made = [max(receiver.segments) for receiver in crew.receivers]
    assert max(made) <= 6
    kept = list(loader)
    assert sum(len(receiver.segments) for receiver in crew.receivers) >= 40
    del kept
    for _ in loader:
        pass
    assert all(len(receiver.segments) <= 8 for receiver in crew.receivers)


def _shared_pages(pid: int) -> int:
    """Bytes of shared memory that a process has in use."""
    status = Path(f"/proc/{pid}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("RssShmem")]
    return int(line.split()[1]) * 1024


def test_memory_is_flat_over_ten_passes(workers: dict[str, Any]) -> None:
    loader = DataLoader(Filled(24), persistent_workers=True, **workers)
    seen = []
    for _ in range(10):
        for _ in loader:
            pass
        crew = loader._iterator.crew
        seen.append(sum(_shared_pages(pid) for pid in [os.getpid(), *crew.pids]))
    assert max(seen[2:]) <= 1.5 * max(seen[:2])


def test_no_descriptor_per_batch(workers: dict[str, Any]) -> None:
    loader = DataLoader(Filled(30), persistent_workers=True, **workers)
    batches = iter(loader)
    before = _descriptors()
    kept = list(batches)
    assert len(kept) == 30
    assert _descriptors() == before
    worker = loader._iterator.crew.pids[0]
    late = time.monotonic() + 10  # it closes the last one behind the batch that it has sent
    while _memory_files(worker) and time.monotonic() < late:
        time.sleep(0.01)
    assert not _memory_files(worker)


def _memory_files(pid: int) -> list[str]:
    """The open descriptors of a process that are memory."""
    names = [str(entry.readlink()) for entry in Path(f"/proc/{pid}/fd").iterdir()]
    return [name for name in names if "memfd" in name]
