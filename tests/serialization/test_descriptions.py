"""Tensors that a file describes falsely are refused before a view exists."""

import pickle

import numpy as np
import pytest

from flambeau._tensor.tensor import wrap
from flambeau.serialization import load
from flambeau.serialization.archive import ArchiveReader
from tests.serialization.checkpoints import archive_of, saved

GOOD = {
    "numel": 6,
    "offset": 0,
    "size": (2, 3),
    "stride": (3, 1),
    "kind": "FloatStorage",
    "key": "0",
}


def described(requires_grad=False, hooks=(), **changes):
    """A pickle with one tensor over a storage of 24 bytes, described at will."""
    values = {**GOOD, **changes}

    def part(value):
        return pickle.dumps(value, 2)[2:-1]

    identity = (
        b"(" + part("storage") + f"ctorch\n{values['kind']}\n".encode() + part(values["key"])
        + part("cpu") + part(values["numel"]) + b"tQ"
    )  # fmt: skip
    place = part(values["offset"]) + part(values["size"]) + part(values["stride"])
    tail = part(requires_grad) + part(list(hooks))
    return b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(" + identity + place + tail + b"tR."


def load_described(**changes):
    return load(archive_of(described(**changes), {"0": bytes(24)}))


def test_the_honest_description():
    assert load_described()._data.tolist() == [[0, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize(
    "changes",
    [
        {"offset": 1}, {"offset": -1}, {"offset": 2**62}, {"offset": 2**70}, {"offset": True},
        {"offset": 0.0}, {"offset": None}, {"size": (2, 4)}, {"size": (-2, 3)}, {"size": 6},
        {"size": (2**40, 2**40), "stride": (0, 0)}, {"size": ("2", 3)}, {"size": (2, 3, 1)},
        {"size": (1,) * 65, "stride": (1,) * 65}, {"stride": (-3, 1)}, {"stride": (3, 2**62)},
        {"stride": (4, 1)}, {"stride": None}, {"numel": 7}, {"numel": 5}, {"numel": -1},
        {"numel": 2**62}, {"numel": 2**9000}, {"numel": "6"}, {"numel": True}, {"key": 0},
        {"kind": "DoubleStorage"}, {"kind": "Tensor"}, {"kind": "float32"},
        {"requires_grad": 1}, {"kind": "IntStorage", "requires_grad": True},
    ],
    ids=str,
)  # fmt: skip
def test_impossible_tensors(changes):
    with pytest.raises(pickle.UnpicklingError, match="^Weights only load failed"):
        load_described(**changes)


def test_strides_that_no_element_uses():
    found = load_described(size=(1, 6), stride=(2**60, 1))
    assert found.shape == (1, 6)
    assert load_described(size=(0, 2**40), stride=(2**61, 1)).shape == (0, 2**40)


def test_missing_storage():
    with pytest.raises(RuntimeError, match="failed locating file data/7: file not found"):
        load_described(key="7")
    with pytest.raises(RuntimeError, match="file not found"):
        load_described(key="../data.pkl")


def test_state_cannot_replace_fields_of_a_tensor():
    tensor = wrap(np.ones(2, np.float32))
    tensor.notes1 = 1
    content = ArchiveReader(saved(tensor)).read("data.pkl")
    for name in (b"_hooks", b"layout", b"device"):
        archive = archive_of(content.replace(b"notes1", name), {"0": tensor._data})
        with pytest.raises(pickle.UnpicklingError, match="cannot be set"):
            load(archive)


def test_text_behind_the_pickle():
    with pytest.raises(pickle.UnpicklingError, match="goes on behind the end"):
        load(archive_of(b"\x80\x02N.N.", {}))


def test_errors_name_what_is_missing():
    with pytest.raises(NotImplementedError, match=r"torch\.QInt8Storage: quantized tensors"):
        load_described(kind="QInt8Storage")
    for name, word in (("_rebuild_qtensor", "quantized"), ("_rebuild_nested_tensor", "nested")):
        with pytest.raises(NotImplementedError, match=word):
            load(archive_of(f"\x80\x02ctorch._utils\n{name}\n)R.".encode("latin1"), {}))
