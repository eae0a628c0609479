"""Records in the byte order of another machine."""

import ml_dtypes
import numpy as np
import pytest

from flambeau import serialization
from flambeau._core import dtype as dt
from flambeau._tensor.tensor import wrap
from flambeau.serialization import load
from flambeau.serialization.archive import ArchiveReader
from tests.serialization.checkpoints import archive_of, elements, saved


def test_big_endian_records():
    data = np.arange(6, dtype=np.float32).reshape(2, 3)
    content = ArchiveReader(saved(wrap(data))).read("data.pkl")
    swapped = data.astype(">f4").tobytes()
    found = load(archive_of(content, {"0": swapped}, byteorder=b"big"))
    assert found._data.tolist() == data.tolist()
    with pytest.raises(ValueError, match="Unknown endianness type: middle"):
        load(archive_of(content, {"0": swapped}, byteorder=b"middle"))


@pytest.mark.parametrize("numpy_dtype", [np.complex64, np.uint16, ml_dtypes.bfloat16, np.bool_])
def test_big_endian_types(numpy_dtype):
    data = elements(numpy_dtype)
    width = dt.BY_NUMPY[data.dtype].to_real().itemsize
    content = ArchiveReader(saved(wrap(data))).read("data.pkl")
    swapped = data.view(f"u{width}").byteswap().tobytes()
    found = load(archive_of(content, {"0": swapped}, byteorder=b"big"))
    assert found._data.tobytes() == data.tobytes()


def test_assumed_byte_order():
    data = np.arange(3, dtype=np.int32)
    content = ArchiveReader(saved(wrap(data), _disable_byteorder_record=True))
    assert not content.has("byteorder")
    archive = archive_of(content.read("data.pkl"), {"0": data.byteswap()})
    serialization.set_default_load_endianness(serialization.LoadEndianness.BIG)
    try:
        assert load(archive)._data.tolist() == [0, 1, 2]
    finally:
        serialization.set_default_load_endianness(None)
    with pytest.raises(TypeError, match="Invalid argument type"):
        serialization.set_default_load_endianness("big")
