"""`mmap=True`: tensors that view the file."""

import gc
import io
import mmap
import sys
import zipfile
from contextlib import nullcontext

import numpy as np
import pytest

from flambeau import serialization
from flambeau._tensor.tensor import wrap
from flambeau.serialization import load, save
from flambeau.serialization.archive import ArchiveReader
from flambeau.utils.serialization import config
from tests.serialization.checkpoints import saved


def test_mapped_loading(tmp_path):
    path = tmp_path / "x.pt"
    save({"a": wrap(np.arange(1000, dtype=np.float32)), "b": wrap(np.ones(3, bool))}, path)
    before = path.read_bytes()
    found = load(path, mmap=True)
    assert found["a"]._data.tolist() == list(range(1000))
    found["a"]._data[0] = 7
    assert path.read_bytes() == before
    with pytest.raises(ValueError, match="f must be a file path in order to use the mmap"):
        load(io.BytesIO(before), mmap=True)
    save([1], path, _use_new_zipfile_serialization=False)
    with pytest.raises(RuntimeError, match="mmap can only be used with files saved with"):
        load(path, mmap=True)


def test_writes_to_a_shared_mapping_reach_the_file(tmp_path):
    path = tmp_path / "x.pt"
    save(wrap(np.ones(4, np.float32)), path)
    with serialization.set_default_mmap_options(mmap.MAP_SHARED):
        found = load(path, mmap=True)
    found._data[1] = 7
    assert load(path, mmap=True)._data.tolist() == [1, 7, 1, 1]
    with pytest.raises(RuntimeError, match="data/0: CRC-32 check failed"):
        load(path)
    with pytest.raises(ValueError, match="expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, but got 9"):
        serialization.set_default_mmap_options(9)


def test_mapping_checks_the_structure_but_not_the_data(tmp_path):
    path = tmp_path / "x.pt"
    save(wrap(np.ones(1000, np.float32)), path)
    content = bytearray(path.read_bytes())
    reader = ArchiveReader(bytes(content))
    in_data, in_pickle = reader.offset("data/0"), reader.offset("data.pkl") + 20
    for place, is_error in ((in_data, False), (in_pickle, True)):
        damaged = bytearray(content)
        damaged[place] ^= 1
        path.write_bytes(damaged)
        with pytest.raises(RuntimeError, match="CRC-32") if is_error else nullcontext():
            load(path, mmap=True)


def test_mapping_by_default(tmp_path):
    path = tmp_path / "x.pt"
    save(wrap(np.ones(1000, np.float32)), path)
    with config.patch("load.mmap", True):
        found = load(path)
        with pytest.raises(ValueError, match="f must be a file path"):
            load(io.BytesIO(path.read_bytes()))
        assert load(path, mmap=False).untyped_storage().resizable()
    assert not found.untyped_storage().resizable()


def test_mapped_memory_cannot_grow(tmp_path):
    path = tmp_path / "x.pt"
    save({"a": wrap(np.ones(10, np.float32))}, path)
    found = load(path, mmap=True)["a"]
    with pytest.raises(RuntimeError, match="Trying to resize storage that is not resizable"):
        found.untyped_storage().resize_(100)
    with pytest.raises(RuntimeError, match="Trying to resize storage that is not resizable"):
        found.resize_(20)
    found.resize_(3)
    assert found.tolist() == [1, 1, 1]


@pytest.mark.parametrize("dtype", [np.float32, np.complex128, np.uint64])
def test_unaligned_records_are_copied(tmp_path, dtype):
    """Other writers do not align; a tensor never lies across the borders of its elements."""
    data = np.arange(5).astype(dtype)
    content = ArchiveReader(saved(wrap(data))).read("data.pkl")
    path = tmp_path / "x.pt"
    for shift in range(1, 9):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("a/data.pkl", content)
            archive.writestr("a/" + "p" * shift, b"")
            archive.writestr("a/byteorder", sys.byteorder)
            archive.writestr("a/data/0", data.tobytes())
        found = load(path, mmap=True)
        assert found._data.ctypes.data % data.dtype.alignment == 0
        assert found._data.tolist() == data.tolist()


def test_tensors_keep_the_mapping_alive(tmp_path):
    path = tmp_path / "x.pt"
    save({"a": wrap(np.ones(100_000, np.float32)), "b": wrap(np.zeros(9))}, path)
    part = load(path, mmap=True)["a"][5:]
    gc.collect()
    path.unlink()
    assert part.sum().item() == 99_995


def test_a_mapped_file_can_be_replaced(tmp_path):
    path = tmp_path / "x.pt"
    save(wrap(np.ones(1000, np.float32)), path)
    found = load(path, mmap=True)
    save(wrap(np.zeros(1000, np.float32)), path)
    assert found._data.sum() == 1000
