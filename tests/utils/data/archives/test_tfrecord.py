"""TFRecord files: framing, checksums, Examples; and whatever bytes may stand in their place."""

from __future__ import annotations

import contextlib
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flambeau as torch
from flambeau.utils.data import DataLoader, TFRecordDataset
from flambeau.utils.data.archives import crc32c
from flambeau.utils.data.archives.example import ExampleError, parse, serialized
from flambeau.utils.data.archives.records import write_record
from flambeau.utils.data.archives.sources import SourceError

# RFC 3720, appendix B.4
KNOWN = {
    b"123456789": 0xE3069283,
    bytes(32): 0x8A9136AA,
    b"\xff" * 32: 0x62A8AB43,
    bytes(range(32)): 0x46DD794E,
    bytes(range(31, -1, -1)): 0x113FDB5C,
    b"": 0,
}


@pytest.mark.parametrize("data", KNOWN)
def test_known_checksums(data: bytes):
    assert crc32c.crc32c(data) == KNOWN[data]
    assert crc32c._by_numpy(np.frombuffer(data, np.uint8)) == KNOWN[data]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 5000), st.integers(0, 2**32 - 1))
def test_kernel_and_numpy_agree(size: int, seed: int):
    data = np.random.default_rng(seed).bytes(size)
    assert crc32c.crc32c(data) == crc32c._by_numpy(np.frombuffer(data, np.uint8))


def test_without_compiled_kernels():
    program = (
        "from flambeau.utils.data.archives import crc32c\n"
        "print(crc32c._kernel(), hex(crc32c.crc32c(b'123456789')))"
    )
    environment = {"FLAMBEAU_ENGINE": "numpy", "PATH": "/usr/bin:/bin"}
    result = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True,
        check=True, cwd=Path(__file__).parents[4], timeout=60,
    )  # fmt: skip
    assert result.stdout.split() == ["None", "0xe3069283"]


def test_the_mask_of_files():
    # of a record of no bytes: crc 0, so that only the constant is left
    assert crc32c.masked(b"") == 0xA282EAD8


# ---- files


def records(path: Path, data: list[bytes]) -> str:
    with path.open("wb") as file:
        for one in data:
            write_record(file, one)
    return str(path)


def read(path: Any, **options: Any) -> list[Any]:
    return list(TFRecordDataset(path, parse_example=False, **options))


def test_records_in_order_and_shared_by_workers(tmp_path: Path):
    data = [b"%d" % k * (k % 7) for k in range(40)]
    path = records(tmp_path / "r", data)
    assert read(path) == data
    assert (tmp_path / "r.index.npz").exists()
    dataset = TFRecordDataset(path, parse_example=False, shuffle=5)
    assert len(dataset) == 40
    assert sorted(DataLoader(dataset, None, num_workers=2)) == sorted(data)


def test_a_file_as_tensorflow_writes_it(tmp_path: Path):
    # TFRecordWriter("r").write(b"abc"), byte by byte
    length = struct.pack("<Q", 3)
    whole = length + struct.pack("<I", crc32c.masked(length)) + b"abc"
    whole += struct.pack("<I", crc32c.masked(b"abc"))
    (tmp_path / "r").write_bytes(whole)
    assert read(tmp_path / "r") == [b"abc"]


def test_examples_become_tensors(tmp_path: Path):
    path = records(tmp_path / "r", [serialized({"y": [k], "x": [k / 2, 1.5], "s": [b"a"]})
                                    for k in range(3)])  # fmt: skip
    first = next(iter(TFRecordDataset(path)))
    assert first["y"].dtype is torch.int64
    assert first["x"].dtype is torch.float32
    assert (first["y"].tolist(), first["x"].tolist(), first["s"]) == ([0], [0.0, 1.5], [b"a"])
    chosen = TFRecordDataset(path, transform=lambda e: (e["x"], e["y"]))
    (batch,) = DataLoader(chosen, 3)
    assert [part.shape for part in batch] == [(3, 2), (3, 1)]


def damaged(tmp_path: Path, place: int) -> Path:
    path = Path(records(tmp_path / "r", [b"first", b"second", b"third"]))
    whole = bytearray(path.read_bytes())
    whole[place] ^= 1
    path.write_bytes(whole)
    return path


SECOND = 16 + 5
"""Where the second record begins."""


@pytest.mark.parametrize("place", [SECOND, SECOND + 9])
def test_a_wrong_checksum_of_a_length(tmp_path: Path, place: int):
    with pytest.raises(
        SourceError, match=rf"r: .*checksum of a record's length at offset {SECOND}"
    ):
        read(damaged(tmp_path, place))


@pytest.mark.parametrize("place", [SECOND + 12, SECOND + 17, SECOND + 18])
def test_a_wrong_checksum_of_data(tmp_path: Path, place: int):
    path = damaged(tmp_path, place)
    with pytest.raises(
        SourceError, match="r, sample 1: wrong checksum of the 6 bytes at offset 33"
    ):
        read(path)
    assert len(read(path, verify=False)) == 3
    dataset = TFRecordDataset(path, parse_example=False, on_error="skip")
    assert list(dataset) == [b"first", b"third"]
    assert dataset.skipped == 1


@pytest.mark.parametrize(
    ("size", "text"),
    [(SECOND + 5, "in the middle of a record's head, at offset 21"),
     (SECOND + 14, "in the middle of a record of 6 bytes at offset 33"),
     (SECOND + 20, "in the middle of a record of 6 bytes at offset 33")],
)  # fmt: skip
def test_a_file_that_is_cut_short(tmp_path: Path, size: int, text: str):
    path = Path(records(tmp_path / "r", [b"first", b"second", b"third"]))
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(SourceError, match=text):
        read(path)


# ---- Examples


def field(number: int, data: bytes) -> bytes:
    assert len(data) < 128
    return bytes([number << 3 | 2, len(data)]) + data


def example(feature: bytes, name: bytes = b"f") -> bytes:
    return field(1, field(1, field(1, name) + field(2, feature)))


def test_the_wire_format_by_hand():
    # {"f": Int64List [3, 150, -1]}: 150 is 96 01, -1 is ten bytes (protobuf.dev, "Encoding")
    numbers = b"\x03\x96\x01" + b"\xff" * 9 + b"\x01"
    packed = example(field(3, field(1, numbers)))
    assert packed.hex().startswith("0a")
    assert parse(packed)["f"].tolist() == [3, 150, -1]
    single = example(field(3, b"\x08\x03\x08\x96\x01\x08" + b"\xff" * 9 + b"\x01"))
    assert parse(single)["f"].tolist() == [3, 150, -1]


def test_floats_packed_and_not():
    one, two = struct.pack("<f", 1.5), struct.pack("<f", -2)
    packed = example(field(2, field(1, one + two)))
    single = example(field(2, b"\x0d" + one + b"\x0d" + two))
    mixed = example(field(2, b"\x0d" + one + field(1, two)))
    for data in (packed, single, mixed):
        assert parse(data)["f"].tolist() == [1.5, -2.0]
        assert parse(data)["f"].dtype == np.float32


def test_unknown_fields_and_empty_ones():
    unknown = field(9, b"later") + b"\x50\x01" + b"\x5d1234" + b"\x6112345678"
    entry = unknown + field(1, b"f") + field(2, field(1, field(1, b"a") + field(1, b"")))
    assert parse(unknown + field(1, unknown + field(1, entry)))["f"] == [b"a", b""]
    assert parse(b"") == {}
    assert parse(field(1, field(1, field(1, b"f")))) == {"f": []}
    assert parse(example(field(3, b"")))["f"].tolist() == []


VALUES = st.one_of(
    st.lists(st.binary(max_size=20), max_size=5),
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=5),
    st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=5),
)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.text(max_size=10), VALUES, max_size=4))
def test_what_was_written_is_read(features: dict[str, Any]):
    found = parse(serialized(features))
    assert {name: list(values) for name, values in found.items()} == features


@settings(max_examples=500, deadline=None)
@given(st.binary(max_size=200))
def test_no_bytes_do_harm(data: bytes):
    with contextlib.suppress(ExampleError):
        parse(data)


@settings(max_examples=500, deadline=None)
@given(st.dictionaries(st.text(max_size=6), VALUES, max_size=3), st.data())
def test_no_damage_does_harm(features: dict[str, Any], data: st.DataObject):
    whole = bytearray(serialized(features))
    for _ in range(data.draw(st.integers(1, 4))):
        if whole:
            whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(whole)))
    with contextlib.suppress(ExampleError):
        parse(bytes(whole[:cut]))
