"""CRC-32 of records: computed by threads, written, and checked."""

import io
import zipfile
import zlib

import numpy as np
import pytest

from flambeau import serialization
from flambeau._core.settings import get_num_threads, set_num_threads
from flambeau._tensor.tensor import wrap
from flambeau.serialization import load, save
from flambeau.serialization.archive import ArchiveReader
from flambeau.serialization.checksums import PIECE, WORTH_SHARING, Workers, combine, filler_of
from flambeau.utils.serialization import config
from tests.serialization.checkpoints import saved


def test_flipped_bytes_in_storages_are_found(tmp_path):
    path = tmp_path / "x.pt"
    save(wrap(np.ones(1000, np.float32)), path)
    data = bytearray(path.read_bytes())
    data[ArchiveReader(data).offset("data/0") + 99] ^= 1
    path.write_bytes(data)
    with pytest.raises(RuntimeError, match="file data/0: CRC-32 check failed"):
        load(path)


def test_without_crc32():
    serialization.set_crc32_options(False)
    try:
        content = saved(wrap(np.ones(3, np.float32)))
    finally:
        serialization.set_crc32_options(True)
    assert all(entry.CRC == 0 for entry in zipfile.ZipFile(io.BytesIO(content)).infolist())
    assert load(io.BytesIO(content))._data.tolist() == [1, 1, 1]


@pytest.mark.parametrize("lengths", [(0, 0), (1, 0), (0, 1), (3, 5), (1000, 12345), (1, 1 << 20)])
def test_sums_of_pieces_join(lengths):
    generator = np.random.default_rng(0)
    first, second = (generator.bytes(length) for length in lengths)
    joined = combine(zlib.crc32(first), zlib.crc32(second), len(second))
    assert joined == zlib.crc32(first + second)


@pytest.fixture
def three_threads():
    before = get_num_threads()
    set_num_threads(3)
    yield
    set_num_threads(before)


LARGE = [PIECE * 2 + 3, WORTH_SHARING, WORTH_SHARING - 1, PIECE, 1, 0]


@pytest.mark.usefixtures("three_threads")
def test_threads_sum_and_copy():
    generator = np.random.default_rng(0)
    arrays = [generator.integers(0, 256, size, dtype=np.uint8) for size in LARGE]
    with Workers(sum(LARGE)) as workers:
        assert workers.sharing
        for array in arrays:
            found = workers.sum(array)
            assert (found() if found else zlib.crc32(array)) == zlib.crc32(array)
            target = np.empty_like(array)
            copied = workers.copy(filler_of(array), target, verify=True)
            assert copied() == zlib.crc32(array)
            assert np.array_equal(target, array)
    assert not Workers(WORTH_SHARING).sharing


@pytest.mark.usefixtures("three_threads")
def test_large_records_through_threads(tmp_path):
    generator = np.random.default_rng(0)
    tensors = [wrap(generator.integers(0, 256, size, dtype=np.uint8)) for size in LARGE]
    path = tmp_path / "x.pt"
    save(tensors, path)
    assert zipfile.ZipFile(path).testzip() is None
    for before, after in zip(tensors, load(path), strict=True):
        assert np.array_equal(before._data, after._data)


@pytest.mark.usefixtures("three_threads")
@pytest.mark.parametrize("place", [0, PIECE - 1, PIECE, 2 * PIECE + 2])
def test_threads_find_a_flipped_byte(place):
    content = bytearray(saved(wrap(np.ones(LARGE[0], np.uint8))))
    content[ArchiveReader(bytes(content)).offset("data/0") + place] ^= 64
    with pytest.raises(RuntimeError, match="file data/0: CRC-32 check failed"):
        load(io.BytesIO(content))


def test_skipped_data():
    tensor = wrap(np.full(1 << 20, 7, np.uint8))
    whole = saved(tensor)
    with serialization.skip_data():
        empty = saved(tensor)
        assert load(io.BytesIO(whole))._data.sum() == 0
    assert len(empty) == len(whole)
    assert load(io.BytesIO(empty))._data.sum() == 0
    filled = bytearray(empty)
    start = ArchiveReader(empty).offset("data/0")
    filled[start : start + tensor._data.size] = tensor._data.tobytes()
    assert (load(io.BytesIO(filled))._data == 7).all()


def test_alignment_of_storages():
    with config.patch({"save.storage_alignment": 4096}):
        reader = ArchiveReader(saved([wrap(np.ones(3)), wrap(np.ones(4))]))
    assert reader.offset("data/0") % 4096 == reader.offset("data/1") % 4096 == 0
    assert reader.read(".storage_alignment") == b"4096"
    with pytest.raises(AttributeError), config.patch("save.colour", 1):
        pass
    assert config.get_config_copy()["save.storage_alignment"] == 64
