"""What is saved comes back: every kind of content, in both formats."""

import io
import pickle
from collections import OrderedDict

import numpy as np
import pytest

from flambeau import serialization
from flambeau._core import dtype as dt
from flambeau._core.device import device
from flambeau._core.layout import Size, strided
from flambeau._tensor.storage import UntypedStorage
from flambeau._tensor.tensor import Tensor, wrap
from flambeau.serialization import load
from flambeau.serialization.archive import ArchiveReader
from tests.serialization.checkpoints import FORMATS, elements, round_trip, saved


@pytest.mark.parametrize("entry", dt.ALL, ids=str)
@pytest.mark.parametrize("zip_format", FORMATS)
def test_every_dtype(entry, zip_format):
    data = elements(entry.numpy_dtype)
    found = round_trip(wrap(data), zip_format=zip_format)
    assert found.dtype is entry
    assert found._data.tobytes() == data.tobytes()


@pytest.mark.parametrize("zip_format", FORMATS)
def test_views_stay_views(zip_format):
    base = np.arange(24, dtype=np.float32)
    tensors = [wrap(base), wrap(base[4:20:2]), wrap(base.reshape(4, 6).T), wrap(base[5:6][0:])]
    found = round_trip(tensors, zip_format=zip_format)
    for before, after in zip(tensors, found, strict=True):
        assert np.array_equal(before._data, after._data)
        assert before._data.strides == after._data.strides
    found[0]._data[8] = 100
    assert found[1]._data[2] == 100
    assert found[2]._data[2, 1] == 100


def test_a_shared_storage_is_written_once():
    base = np.arange(1000, dtype=np.float64)
    reader = ArchiveReader(saved([wrap(base[i:]) for i in range(10)]))
    assert [name for name in reader.names() if name.startswith("data/")] == ["data/0"]
    assert reader.size("data/0") == 8000


def test_sharing_survives_two_trips():
    base = np.arange(6, dtype=np.float32)
    once = round_trip([wrap(base), wrap(base[2:])])
    twice = round_trip(once)
    twice[0]._data[2] = -1
    assert twice[1]._data[0] == -1


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (3, 0), (1,), (2, 3, 4)])
def test_shapes(shape):
    found = round_trip(wrap(np.ones(shape, np.float32)))
    assert found.shape == shape


def test_expanded_tensors():
    found = round_trip(wrap(np.broadcast_to(np.ones(1, np.float32), (3, 4))))
    assert found.shape == (3, 4)
    assert found._data.strides == (0, 0)


def test_containers_and_small_types():
    value = OrderedDict(
        size=Size((1, 2)),
        device=device("cuda", 1),
        dtype=dt.bfloat16,
        layout=strided,
        nested=[{"a": (1, 2.5, None, True, "text", b"bytes")}],
    )
    value._metadata = OrderedDict({"": {"version": 1}})
    found = round_trip(value)
    assert found == value
    assert type(found["size"]) is Size
    assert found["dtype"] is dt.bfloat16
    assert found["layout"] is strided
    assert found._metadata == value._metadata


def test_storages():
    tensor = wrap(np.arange(3, dtype=np.float32))
    tensor._storage = UntypedStorage.under(tensor._data)
    found = round_trip({"tensor": tensor, "other": UntypedStorage(4)})
    assert type(found["other"].untyped()) is UntypedStorage
    assert found["other"].tolist() == [0, 0, 0, 0]


def test_one_storage_under_two_dtypes_is_refused():
    data = np.arange(4, dtype=np.float32)
    with pytest.raises(RuntimeError, match="view the same data as different types"):
        saved([wrap(data), wrap(data.view(np.int32))])


def test_requires_grad():
    tensor = wrap(np.ones(2, np.float32))
    tensor._requires_grad = True
    assert round_trip(tensor)._requires_grad
    assert not round_trip(wrap(np.ones(2, np.float32)))._requires_grad


def test_attributes_of_tensors():
    tensor = wrap(np.ones(2, np.float32))
    tensor.note = [1, "two"]
    assert round_trip(tensor).note == [1, "two"]


class Marked(Tensor):
    pass


def test_subclasses_need_the_users_word():
    tensor = object.__new__(Marked)
    tensor._data = np.ones(2, np.float32)
    content = saved(tensor)
    with pytest.raises(pickle.UnpicklingError, match="test_contents.Marked"):
        load(io.BytesIO(content))
    with serialization.safe_globals([Marked]):
        assert type(load(io.BytesIO(content))) is Marked


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("weights_only", [True, False])
def test_protocols(protocol, weights_only):
    content = saved({"a": wrap(np.ones(2, np.float32))}, pickle_protocol=protocol)
    found = load(io.BytesIO(content), weights_only=weights_only)
    assert found["a"]._data.tolist() == [1, 1]
