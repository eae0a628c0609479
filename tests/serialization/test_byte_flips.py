"""One byte of a checkpoint is changed: `load` says so, whichever byte it is.

This samples two thousand changes; `fuzz/flip_bytes.py` makes ten thousand, over larger files.
"""

import io
import pickle
import random
import re

import numpy as np
import pytest

from flambeau._tensor.tensor import wrap
from flambeau.serialization import load, save

VALUE = {
    "weight": wrap(np.arange(300, dtype=np.float32).reshape(30, 10)),
    "bias": wrap(np.ones(10, np.float64)),
    "empty": wrap(np.ones((0, 3), np.float32)),
    "epoch": 12,
    "name": "model",
}


def saved(value, **options):
    sink = io.BytesIO()
    save(value, sink, **options)
    return sink.getvalue()


def changes(content, count, seed):
    """Copies of `content` with one byte replaced by another."""
    generator = random.Random(seed)
    for _ in range(count):
        place = generator.randrange(len(content))
        damaged = bytearray(content)
        damaged[place] ^= generator.randrange(1, 256)
        yield place, bytes(damaged)


def test_every_change_of_a_byte_is_found():
    content = saved(VALUE)
    load(io.BytesIO(content))
    for place, damaged in changes(content, 1500, seed=0):
        with pytest.raises((RuntimeError, pickle.UnpicklingError)):
            load(io.BytesIO(damaged))
            pytest.fail(f"byte {place} of {len(content)} was changed and nobody saw it")


def test_every_single_bit_is_found():
    content = saved([wrap(np.arange(3, dtype=np.int16))])
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 1 << place % 8
        with pytest.raises((RuntimeError, pickle.UnpicklingError)):
            load(io.BytesIO(damaged))
            pytest.fail(f"byte {place} of {len(content)}")


def test_the_error_names_the_record():
    content = saved(VALUE)
    named = 0
    for _, damaged in changes(content, 500, seed=1):
        with pytest.raises((RuntimeError, pickle.UnpicklingError)) as caught:
            load(io.BytesIO(damaged))
        text = str(caught.value)
        named += re.search(r"file (archive/)?(data|\.|version|byteorder)", text) is not None
        assert len(text) < 500
    # The others hit the end records and the signatures, which belong to no record.
    assert named > 400


def test_without_checksums_only_content_can_change(tmp_path):
    """A CRC of 0 means "not computed": headers are compared all the same."""
    from flambeau.serialization import set_crc32_options

    set_crc32_options(False)
    try:
        content = saved(VALUE)
    finally:
        set_crc32_options(True)
    start = content.index(np.arange(300, dtype=np.float32).tobytes())
    damaged = bytearray(content)
    damaged[start] ^= 1
    assert load(io.BytesIO(damaged))["weight"]._data[0, 0] != 0
    for place in (content.index(b"PK\x01\x02") + 42, 20, len(content) - 5):
        damaged = bytearray(content)
        damaged[place] ^= 1
        with pytest.raises(RuntimeError):
            load(io.BytesIO(damaged))


def test_mapped_files_check_all_but_storages(tmp_path):
    content = saved(VALUE)
    path = tmp_path / "x.pt"
    inside = content.index(np.arange(300, dtype=np.float32).tobytes())
    for place in (content.index(b"archive/version") + 64, 100, len(content) - 30):
        damaged = bytearray(content)
        damaged[place] ^= 1
        path.write_bytes(damaged)
        with pytest.raises((RuntimeError, pickle.UnpicklingError)):
            load(path, mmap=True)
    damaged = bytearray(content)
    damaged[inside] ^= 1
    path.write_bytes(damaged)
    assert load(path, mmap=True)["epoch"] == 12
