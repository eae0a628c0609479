"""Typed storages: PyTorch's older look at memory."""

import copy
import io
import pickle
import warnings

import numpy as np
import pytest

import flambeau as torch
from flambeau._core import dtype as dt
from flambeau._tensor import typed_storage
from flambeau._tensor.typed_storage import CLASS_NAMES, CONVERSIONS


@pytest.fixture(autouse=True)
def warned(monkeypatch):
    monkeypatch.setattr("flambeau._core.settings.Warnings.given", {typed_storage.DEPRECATED})


def test_one_warning_per_process(monkeypatch):
    monkeypatch.setattr("flambeau._core.settings.Warnings.given", set())
    with pytest.warns(UserWarning, match="TypedStorage is deprecated"):
        torch.ones(1).storage()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.ones(1).storage()


def test_it_looks_at_the_tensors_memory():
    tensor = torch.arange(6.0)
    storage = tensor[2:].storage()
    storage[3] = -1.0
    assert tensor[3] == -1
    assert storage.tolist() == [0, 1, 2, -1, 4, 5]
    assert (len(storage), storage.size(), storage.nbytes(), storage.element_size()) == (6, 6, 24, 4)
    assert storage.data_ptr() == tensor.data_ptr()
    assert storage.untyped() is tensor.untyped_storage()
    assert repr(storage).endswith(
        " 5.0\n[torch.storage.TypedStorage(dtype=torch.float32, device=cpu) of size 6]"
    )


@pytest.mark.parametrize("name", CONVERSIONS)
def test_conversions(name):
    found = getattr(torch.arange(3).storage(), name)()
    assert found.dtype is CONVERSIONS[name]
    assert found.tolist() == torch.arange(3).to(CONVERSIONS[name]).tolist()


@pytest.mark.parametrize("dtype", CLASS_NAMES, ids=str)
def test_classes(dtype):
    cls = getattr(torch, CLASS_NAMES[dtype])
    storage = cls([1, 0, 1])
    assert isinstance(storage, cls)
    assert isinstance(storage, torch.TypedStorage)
    assert storage.type() == f"torch.{CLASS_NAMES[dtype]}"
    assert storage.tolist() == torch.tensor([1, 0, 1]).to(dtype).tolist()
    assert cls.dtype is dtype
    assert cls(4).size() == 4
    assert cls(wrap_storage=storage.untyped()).data_ptr() == storage.data_ptr()
    assert torch.ones(1, dtype=dtype).storage_type() is cls
    assert torch.is_storage(storage)


def test_what_it_is_no_instance_of():
    storage = torch.ones(3).storage()
    assert not isinstance(storage, torch.IntStorage)
    assert not isinstance(torch.ones(3).untyped_storage(), torch.FloatStorage)


def test_copies():
    storage = torch.arange(3.0).storage()
    for copied in (storage.clone(), copy.copy(storage), copy.deepcopy(storage)):
        copied.fill_(9)
        assert copied.tolist() == [9, 9, 9]
        assert storage.tolist() == [0, 1, 2]
    assert storage.copy_(torch.IntStorage([5, 6, 7])).tolist() == [5, 6, 7]
    assert pickle.loads(pickle.dumps(storage)).tolist() == [5, 6, 7]


@pytest.mark.parametrize(
    ("act", "error", "message"),
    [
        (lambda s: s[6], IndexError, "index 6 out of range for storage of size 6"),
        (lambda s: s["a"], RuntimeError, "can't index a"),
        (lambda s: s[1:2], RuntimeError, "slices are only supported in UntypedStorage"),
        (lambda s: torch.FloatStorage(1, 2), RuntimeError, "invalid combination of arguments"),
        (lambda s: torch.FloatStorage("ab"), TypeError, "invalid data type 'str'"),
        (
            lambda s: torch.TypedStorage(wrap_storage=3, dtype=torch.int8),
            TypeError,
            "must be UntypedStorage",
        ),
        (lambda s: torch.TypedStorage(wrap_storage=s.untyped()), RuntimeError, "'dtype' must be"),
        (lambda s: torch.TypedStorage(3, wrap_storage=s.untyped()), RuntimeError, "No positional"),
    ],
)
def test_errors(act, error, message):
    with pytest.raises(error, match=message):
        act(torch.ones(6).storage())


def test_untyped_storages_change_their_size():
    storage = torch.arange(3, dtype=dt.uint8).untyped_storage()
    assert storage.resize_(5).tolist() == [0, 1, 2, 0, 0]
    assert storage.resize_(2).tolist() == [0, 1]
    with pytest.raises(RuntimeError, match="not resizable"):
        torch.from_numpy(np.ones(3)).untyped_storage().resize_(9)


def test_sizes_that_change_under_tensors() -> None:
    """Tensors lie where they lay; only memory that had to grow is another one."""
    x = torch.arange(6.0).reshape(2, 3)
    row = x[1]
    storage = x.untyped_storage()
    for size in (24, 12, 0, 24):
        assert storage.resize_(size).nbytes() == size
        assert (x.storage_offset(), row.storage_offset()) == (0, 3)
        assert storage.data_ptr() == (x.data_ptr() if size else 0)
    row.mul_(2)
    assert storage[20:24].tolist() == [0, 0, 32, 65]  # 10.0
    storage.resize_(48)
    assert storage[20:24].tolist() == [0, 0, 32, 65]
    assert (x.storage_offset(), row.storage_offset()) == (0, 3)
    assert x.untyped_storage().data_ptr() == row.untyped_storage().data_ptr() == x.data_ptr()
    assert x.tolist() == [[0.0, 1.0, 2.0], [6.0, 8.0, 10.0]]
    file = io.BytesIO()
    torch.save([x, row], file)
    file.seek(0)
    assert [part.tolist() for part in torch.load(file)] == [x.tolist(), row.tolist()]
    assert copy.deepcopy(x).tolist() == x.tolist()
