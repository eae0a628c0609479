"""Storages in both libraries: how they are made, read, written, converted, and what is refused."""

from __future__ import annotations

import copy
import io
import itertools
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch as reference

import flambeau
from conformance.side_by_side import Raised, attempt, compare


@pytest.fixture(autouse=True)
def _both_have_warned() -> None:
    """Both say once per process that typed storages are old."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for t in (reference, flambeau):
            t.FloatStorage()


KINDS = (
    "Float Double Half BFloat16 Long Int Short Char Byte Bool ComplexFloat ComplexDouble"
).split()


def answer(function: Callable[[], Any]) -> Any:
    """A result, or the class and the first line of what was raised, and its last line."""
    found = attempt(function)
    if not isinstance(found, Raised):
        return found
    lines = found.text.replace("flambeau._tensor.typed_storage", "torch.storage").split("\n")
    return found.kind, lines[0], lines[-1].split("<class")[0]


def elements(storage: Any) -> Any:
    return storage.tolist(), str(storage.dtype), storage.type(), storage.nbytes(), len(storage)


def every_kind(t: Any) -> Any:
    found = []
    for kind in KINDS:
        maker = getattr(t, f"{kind}Storage")
        made = maker([0, 1, 2, 3])
        made[1:3] = 1
        made[-1] = 0
        found += [elements(made), elements(maker(2).fill_(1)), elements(maker())]
        found += [isinstance(made, maker), issubclass(maker, t.TypedStorage), str(maker.dtype)]
        with warnings.catch_warnings():  # of imaginary parts that are lost, once per process
            warnings.simplefilter("ignore")
            found += [elements(getattr(made, name)()) for name in ("float", "short", "bool", "cpu")]
        found += [elements(copy.deepcopy(made)), elements(pickle.loads(pickle.dumps(made)))]  # noqa: S301
        found += [elements(made.untyped().int()), made.resizable(), made.filename]
        made.resize_(1)
        found.append(elements(made))
    return found


def from_buffers(t: Any) -> Any:
    data = bytearray(range(16))
    found = [
        answer(lambda k=kind, o=order: elements(getattr(t, f"{k}Storage").from_buffer(data, o)))
        for kind in KINDS for order in ("big", "little", "native", "middle")
    ]  # fmt: skip
    parts = ((2, 4), (9, 0), (-1, 3), (-1, 2), (0, 16))
    found += [
        answer(lambda p=part: t.ShortStorage.from_buffer(data, "big", *p).tolist())
        for part in parts
    ]
    return found, answer(lambda: t.ByteStorage.from_buffer(b"ab").tolist()), answer(
        lambda: t.FloatStorage.from_buffer(data)
    ), t.UntypedStorage.from_buffer(data, "big", dtype=t.int16).tolist()  # fmt: skip


def in_tensors(t: Any) -> Any:
    storage = t.FloatStorage([1, 2, 3])
    calls = (
        lambda: t.tensor(storage), lambda: t.tensor(storage.untyped(), dtype=t.float32),
        lambda: t.tensor(storage, dtype=t.int32), lambda: t.as_tensor(storage),
        lambda: t.FloatTensor(storage), lambda: t.IntTensor(storage), lambda: t.Tensor(storage),
        lambda: t.Tensor(storage.untyped()), lambda: t.ones(2).new(storage),
        lambda: t.ones(2).set_(storage), lambda: t.asarray(storage),
    )  # fmt: skip
    t.FloatTensor(storage).add_(1)
    return [answer(call) for call in calls], storage.tolist()


def wrongly_made(t: Any) -> Any:
    storage = t.FloatStorage([1, 2])
    calls = (
        lambda: t.FloatStorage(device="cpu"), lambda: t.FloatStorage(dtype=t.float32),
        lambda: t.FloatStorage(0, 0), lambda: t.FloatStorage("text"),
        lambda: t.FloatStorage(t.tensor([])), lambda: t.FloatStorage(1.5),
        lambda: t.FloatStorage(0, wrap_storage=storage.untyped()),
        lambda: t.FloatStorage(wrap_storage=storage), lambda: t.storage._LegacyStorage(),
        lambda: t.TypedStorage(0, wrap_storage=storage.untyped(), dtype=t.int8),
        lambda: t.TypedStorage(wrap_storage=storage.untyped()),
        lambda: t.TypedStorage(wrap_storage=storage.untyped(), dtype=0),
        lambda: t.TypedStorage(wrap_storage=storage, dtype=t.int8), lambda: t.TypedStorage(0, 0),
        lambda: t.TypedStorage(dtype=t.int8, device="xla"), lambda: t.TypedStorage("text"),
        lambda: t.TypedStorage(t.tensor([])), lambda: t.UntypedStorage(1.5),
        lambda: t.UntypedStorage([1.5]), lambda: t.UntypedStorage([300, -1]).tolist(),
        lambda: t.UntypedStorage("ab"), lambda: storage.fill_(storage),
        lambda: storage.fill_("a"), lambda: storage.__setitem__(slice(0, 2), [1, 2]),
        lambda: storage.__setitem__(9, 1), lambda: storage[9], lambda: storage.untyped()[99],
        lambda: t.UntypedStorage(2).copy_(t.UntypedStorage(3)), lambda: storage[0:1],
    )  # fmt: skip
    return [answer(call) for call in calls]


def bytes_turned_round(t: Any) -> Any:
    found = []
    for name in ("float64", "float32", "int16", "uint8", "bool", "complex64", "complex128"):
        storage = t.UntypedStorage(list(range(16)))
        storage.byteswap(getattr(t, name))
        found.append(storage.tolist())
    return found


def of_the_default_type(t: Any) -> Any:
    found = [str(t.Storage.dtype)]
    t.set_default_dtype(t.float64)
    try:
        return [*found, str(t.Storage.dtype), elements(t.Storage([1, 2]))]
    finally:
        t.set_default_dtype(t.float32)


def mapped_files(t: Any) -> Any:
    import tempfile

    with tempfile.NamedTemporaryFile() as file:
        one = t.ShortStorage.from_file(file.name, True, 4)
        other = t.ShortTensor(t.ShortStorage.from_file(file.name, True, 4))
        one[1] = 7
        return other, one.filename == file.name, attempt(lambda: one.resize_(9))


SCENARIOS: list[Callable[[Any], Any]] = [
    every_kind, from_buffers, in_tensors, wrongly_made, bytes_turned_round, of_the_default_type,
    mapped_files,
]  # fmt: skip


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
@pytest.mark.filterwarnings("ignore")
def test_both_do_the_same(scenario: Callable[[Any], Any]) -> None:
    compare(scenario)


GROWN = {
    "set_": "t.empty(0).set_(x.untyped_storage(), 0, (3, 3))",
    "resize_": "x.resize_(9)",
    "storage": "x.untyped_storage().resize_(96)",
    "same": "x.untyped_storage().resize_(16)",
    "less, more": "x.resize_(2), x.resize_(4)",
}


@pytest.mark.parametrize("name", GROWN)
def test_tensors_whose_memory_has_grown(name: str) -> None:
    """They lie where they lay, and are saved and copied as what they are."""
    told = []
    for library in (reference, flambeau):
        x = library.arange(4.0)
        y = x[1:]
        eval(GROWN[name], {"t": library, "x": x})
        file = io.BytesIO()
        library.save([x, y], file)
        file.seek(0)
        groups = [[x, y], library.load(file), copy.deepcopy([x, y])]
        told.append(
            [(one.storage_offset(), one.flatten()[:3].tolist()) for one in itertools.chain(*groups)]
        )
    assert told[0] == told[1]


def test_memory_of_another_type() -> None:
    told = []
    for library in (reference, flambeau):
        bits = library.tensor([4607182418800017408, 2])
        one = library.zeros(2, dtype=library.float64).set_(bits, 0, (1,), (1,))
        with pytest.raises(RuntimeError) as caught:
            one.set_(bits)
        told.append((one.tolist(), str(caught.value)))
    assert told[0] == told[1]
