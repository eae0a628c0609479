"""The .safetensors format: bytes as the specification has them, laziness, refusals, atomicity."""

from __future__ import annotations

import json
import random
import struct
import sys
import tracemalloc
from contextlib import contextmanager

import ml_dtypes
import numpy as np
import pytest

import flambeau as torch
from flambeau import hook
from flambeau.serialization.safetensors import SafetensorError, safe_open
from flambeau.serialization.safetensors import numpy as of_arrays
from flambeau.serialization.safetensors import torch as of_tensors
from flambeau.serialization.safetensors.header import MAX_DIMS, parse_header

FIELD = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}


def content(header, data=b""):
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(raw)) + raw + data


@contextmanager
def at_most(count):
    """The block allocates no more than `count` bytes at a time."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] <= count
    finally:
        tracemalloc.stop()


def test_the_bytes_of_a_file():
    """Wide dtypes first, then names; the header padded to eight bytes."""
    tensors = {
        "b": torch.tensor([1, 2], dtype=torch.uint8),
        "z": torch.tensor([[1.5]], dtype=torch.float64),
        "a": torch.tensor(True),
    }
    header = (
        b'{"__metadata__":{"k":"v"},'
        b'"z":{"dtype":"F64","shape":[1,1],"data_offsets":[0,8]},'
        b'"b":{"dtype":"U8","shape":[2],"data_offsets":[8,10]},'
        b'"a":{"dtype":"BOOL","shape":[],"data_offsets":[10,11]}}'
    )
    padded = header + b" " * (-len(header) % 8)
    expected = struct.pack("<Q", len(padded)) + padded + struct.pack("<d", 1.5) + b"\1\2\1"
    assert of_tensors.save(tensors, {"k": "v"}) == expected
    assert {name: x.tolist() for name, x in of_tensors.load(expected).items()} == {
        "z": [[1.5]], "b": [1, 2], "a": True,
    }  # fmt: skip


@pytest.mark.parametrize("backend", ["mmap", "pread"])
def test_loaded_tensors_are_private(tmp_path, backend):
    path = tmp_path / "x.safetensors"
    of_tensors.save_file({"x": torch.arange(4.0), "y": torch.ones(2)}, path)
    before = path.read_bytes()
    loaded = of_tensors.load_file(path, backend=backend)
    loaded["x"].mul_(10)
    assert path.read_bytes() == before
    assert loaded["x"].tolist() == [0.0, 10.0, 20.0, 30.0] and loaded["y"].tolist() == [1.0, 1.0]
    assert loaded["x"].untyped_storage().nbytes() == 16
    assert of_tensors.load_file(path)["x"].tolist() == [0.0, 1.0, 2.0, 3.0]


def test_a_large_file_opens_without_being_read(tmp_path):
    """8 GB, most of them a hole in the file: only what a slice asks for comes into memory."""
    path = tmp_path / "large.safetensors"
    rows, columns = 2**21, 1024
    size = rows * columns * 4
    field = {"dtype": "F32", "shape": [rows, columns], "data_offsets": [0, size]}
    text = json.dumps({"x": field}).encode()
    header = content(text + b" " * (-len(text) % 8))
    with path.open("wb") as file:
        file.write(header)
        file.seek(len(header) + 4 * columns * 12_345)
        file.write(struct.pack("<2f", 1.0, 2.0))
        file.truncate(len(header) + size)
    with at_most(8 << 20), safe_open(path, "pt") as file:
        part = file.get_slice("x")
        assert part.get_shape() == [rows, columns] and part.get_dtype() == "F32"
        assert part[12_345, :3].tolist() == [1.0, 2.0, 0.0]
        assert part[12_340:12_350:5, 1].tolist() == [0.0, 2.0]


def test_tensors_that_lie_at_odd_places(tmp_path):
    header = {"u": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]},
              "x": {"dtype": "F64", "shape": [2], "data_offsets": [1, 17]}}  # fmt: skip
    path = tmp_path / "odd"
    path.write_bytes(content(header, b"\7" + struct.pack("<2d", 1.5, -2.0)))
    x = of_tensors.load_file(path)["x"]
    assert x.tolist() == [1.5, -2.0] and x.data_ptr() % 8 == 0


def test_arrays(tmp_path):
    arrays = {"a": np.arange(6).reshape(2, 3).T, "b": np.ones(2, ml_dtypes.bfloat16)}
    of_arrays.save_file(arrays, tmp_path / "x", {"k": "v"})
    loaded = of_arrays.load_file(tmp_path / "x")
    for name, array in arrays.items():
        assert type(loaded[name]) is np.ndarray
        assert loaded[name].dtype == array.dtype and (loaded[name] == array).all()


def test_saving_is_atomic(tmp_path, monkeypatch):
    path = tmp_path / "x.safetensors"
    of_tensors.save_file({"x": torch.ones(1)}, path)
    before = path.read_bytes()
    with pytest.raises(SafetensorError, match="Unknown dtype"):
        of_tensors.save_file({"x": torch.zeros(1, dtype=torch.complex128)}, path)
    monkeypatch.setattr("os.fsync", lambda descriptor: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(SafetensorError, match="disk full"):
        of_tensors.save_file({"x": torch.zeros(10)}, path)
    assert path.read_bytes() == before and [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("target", ["missing/x", "."])
def test_places_that_cannot_be_written(target, tmp_path):
    with pytest.raises(SafetensorError, match="Error while serializing: I/O error"):
        of_tensors.save_file({"x": torch.ones(1)}, tmp_path / target)


def test_what_saving_refuses():
    x = torch.arange(12.0).reshape(3, 4)
    for tensors, kind, words in (
        ([x], ValueError, "Expected a dict"),
        ({"a": 1}, ValueError, "Key `a` is invalid, expected torch.Tensor"),
        ({"a": x.t()}, ValueError, "non contiguous tensor: `a`"),
        ({"a": x, "b": x[1]}, RuntimeError, r"share memory.*\[\{'a', 'b'\}\]"),
        ({1: x}, TypeError, "'int' object is not an instance of 'str'"),
        ({"__metadata__": x}, SafetensorError, "cannot be called"),
    ):
        with pytest.raises(kind, match=words):
            of_tensors.save(tensors)
    assert set(of_tensors.load(of_tensors.save({"a": x[0], "b": x[1]}))) == {"a", "b"}


BROKEN = {
    "header too small": b"1234567",
    "header too large": struct.pack("<Q", 100_000_001) + b"{}",
    "invalid header length": struct.pack("<Q", 3) + b"{}",
    "invalid UTF-8": content(b'{"\xff":1}'),
    "trailing characters": content(b"{}\0"),
    "duplicate tensor `a`": content(b'{"a":%s,"a":%s}' % ((json.dumps(FIELD).encode(),) * 2)),
    "duplicate key `k`": content(b'{"__metadata__":{"k":"1","k":"2"}}'),
    "duplicate field `shape`": content(b'{"a":{"shape":[],"shape":[]}}'),
    "unknown field `x`": content({"a": {**FIELD, "x": 1}}),
    "missing field `shape`": content({"a": {"dtype": "F32"}}),
    "unknown variant `Q4`": content({"a": {**FIELD, "dtype": "Q4"}}),
    "expected an integer": content({"a": {**FIELD, "shape": [-1]}}),
    "expected a string": content({"__metadata__": {"a": 1}}),
    "expected an object": content({"a": None}),
    "more than 64 integers": content({"a": {**FIELD, "shape": [1] * (MAX_DIMS + 1)}}),
    "does not fit 64 bits": content({"a": {**FIELD, "shape": [2**64]}}),
    "overflow computing buffer size": content({"a": {**FIELD, "shape": [0, 2**62, 2**62]}}),
    "invalid offset for tensor `b`": content({"a": FIELD, "b": {**FIELD, "data_offsets": [3, 7]}}),
    "invalid shape, data type, or offset": content({"a": {**FIELD, "shape": [2]}}, b"1234"),
    "file not fully covered": content({"a": FIELD}, b"12345"),
    "fill no whole bytes": content({"a": {**FIELD, "dtype": "F4", "shape": [3]}}),
}


@pytest.mark.parametrize("words", list(BROKEN))
def test_broken_files(words, tmp_path):
    with pytest.raises(SafetensorError, match=words):
        of_tensors.load(BROKEN[words])
    (tmp_path / "x").write_bytes(BROKEN[words])
    with pytest.raises(SafetensorError, match=words):
        of_tensors.load_file(tmp_path / "x")


def test_headers_that_cost_no_more_than_they_are_long():
    """A hostile header must not make the parser slow, deep or hungry."""
    million = 1_000_000
    for header in (
        b'{"a":' + b"[" * million,
        b'{"' + b"a" * million,
        b'{"' + rb"\"" * million,
        b'{"a":{"dtype":"F32","shape":[' + b"0," * million,
        b'{"a":{"dtype":"F32","shape":[' + b"9" * million + b"]",
        b" " * million + b"x",
    ):
        data = memoryview(content(header))
        with at_most(8 * len(header)), pytest.raises(SafetensorError):
            parse_header(data)


def test_every_changed_header_byte_is_noticed_or_harmless():
    """After any one change the file is refused, or describes the same number of bytes."""
    good = of_tensors.save(
        {"a": torch.ones(2, 3), "b": torch.zeros(1, dtype=torch.int64)}, {"k": "v"}
    )
    rng = random.Random(0)
    data_size = 24 + 8
    for place in range(len(good) - data_size):
        for value in {good[place] ^ (1 << bit) for bit in range(8)} | {rng.randrange(256)}:
            damaged = good[:place] + bytes([value]) + good[place + 1 :]
            try:
                loaded = of_tensors.load(damaged)
            except SafetensorError:
                continue
            assert sum(tensor.nbytes for tensor in loaded.values()) == data_size


def test_dtypes_below_a_byte_are_named():
    data = content({"a": {"dtype": "F4", "shape": [4], "data_offsets": [0, 2]}}, b"12")
    with pytest.raises(NotImplementedError, match="`a` has the dtype F4"):
        of_tensors.load(data)


def test_safe_open_refuses_what_it_cannot_do(tmp_path):
    of_tensors.save_file({"x": torch.ones(1)}, tmp_path / "x")
    with pytest.raises(FileNotFoundError, match="No such file or directory"):
        safe_open(tmp_path / "y", "pt")
    with pytest.raises(NotImplementedError, match="framework tf"):
        safe_open(tmp_path / "x", "tf")
    with pytest.raises(AssertionError, match="not compiled with CUDA"):
        safe_open(tmp_path / "x", "pt", device="cuda:0")


def test_the_hook_serves_the_name_where_nothing_is_installed(monkeypatch):
    """`from safetensors.torch import load_file` gives ours; an installed package has priority."""
    names = [name for name in sys.modules if name.partition(".")[0] == "safetensors"]
    for name in names:
        monkeypatch.delitem(sys.modules, name)
    nothing = type("Finder", (), {"find_spec": staticmethod(lambda name, path=None: None)})
    monkeypatch.setattr(hook, "PathFinder", nothing)
    present = {name: sys.modules.pop(name) for name in list(sys.modules) if name == "torch"}
    hook.install()
    try:
        import safetensors.torch

        assert safetensors.safe_open is safe_open
        assert safetensors.torch is of_tensors
    finally:
        hook.uninstall()
        sys.modules.update(present)
    assert "safetensors" not in sys.modules and "safetensors.torch" not in sys.modules
