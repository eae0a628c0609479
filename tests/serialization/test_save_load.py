"""`save` and `load` of our own files: contents, sharing, places, damage, atomicity."""

import gzip
import io
import os
import pickle
import random
import stat
import sys
import tracemalloc
import zipfile
from collections import OrderedDict
from contextlib import suppress

import ml_dtypes
import numpy as np
import pytest

from flambeau import serialization
from flambeau._core import dtype as dt
from flambeau._core.device import device
from flambeau._core.layout import Size, channels_last, strided
from flambeau._tensor.storage import Storage
from flambeau._tensor.tensor import Tensor, wrap
from flambeau.serialization import load, save
from flambeau.serialization.archive import ArchiveReader
from flambeau.serialization.archive_writer import ArchiveWriter

FORMATS = [True, False]


def saved(obj, **options):
    sink = io.BytesIO()
    save(obj, sink, **options)
    return sink.getvalue()


def round_trip(obj, *, zip_format=True, **options):
    content = saved(obj, _use_new_zipfile_serialization=zip_format)
    return load(io.BytesIO(content), **options)


def elements(numpy_dtype):
    return np.array([0, 1, 1, 3, 2, 5, 7, 6], np.float32).astype(numpy_dtype)


def archive_of(content, storages, **records):
    """A checkpoint with a hand-written pickle."""
    sink = io.BytesIO()
    writer = ArchiveWriter(sink, "archive")
    writer.write("data.pkl", content)
    for name, record in records.items():
        writer.write(name, record)
    for key, array in storages.items():
        writer.write(f"data/{key}", array)
    writer.finish()
    return io.BytesIO(sink.getvalue())


# ---- contents


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
    tensor._storage = Storage.under(tensor._data)
    found = round_trip({"tensor": tensor, "other": Storage(4)})
    assert isinstance(found["other"], Storage)
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
    with pytest.raises(pickle.UnpicklingError, match="test_save_load.Marked"):
        load(io.BytesIO(content))
    with serialization.safe_globals([Marked]):
        assert type(load(io.BytesIO(content))) is Marked


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("weights_only", [True, False])
def test_protocols(protocol, weights_only):
    content = saved({"a": wrap(np.ones(2, np.float32))}, pickle_protocol=protocol)
    found = load(io.BytesIO(content), weights_only=weights_only)
    assert found["a"]._data.tolist() == [1, 1]


# ---- unsafe loading


class Settings:
    def __init__(self):
        self.rate = 0.1
        self.weight = wrap(np.ones(2, np.float32))


@pytest.mark.parametrize("zip_format", FORMATS)
def test_any_object_with_the_users_word(zip_format):
    content = saved(Settings(), _use_new_zipfile_serialization=zip_format)
    with pytest.raises(pickle.UnpicklingError, match="^Weights only load failed. This file can"):
        load(io.BytesIO(content))
    found = load(io.BytesIO(content), weights_only=False)
    assert found.rate == 0.1
    assert found.weight._data.tolist() == [1, 1]


def test_memory_formats():
    content = saved([channels_last])
    assert load(io.BytesIO(content), weights_only=False) == [channels_last]


def test_names_that_flambeau_lacks():
    content = archive_of(b"\x80\x02ctorch.nn.quantized\nLinear\n.", {})
    with pytest.raises(AttributeError, match="Can't get attribute 'Linear'"):
        load(content, weights_only=False)


def test_environment_variables(monkeypatch):
    content = saved(Settings())
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    with pytest.warns(UserWarning, match="TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD detected"):
        load(io.BytesIO(content))
    with pytest.raises(pickle.UnpicklingError):
        load(io.BytesIO(content), weights_only=True)
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "1")
    with pytest.raises(RuntimeError, match="Only one of"):
        load(io.BytesIO(content))
    monkeypatch.delenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    with pytest.raises(pickle.UnpicklingError):
        load(io.BytesIO(content), weights_only=False)


def test_pickle_module():
    content = saved([1])
    assert load(io.BytesIO(content), pickle_module=pickle) == [1]
    with pytest.raises(RuntimeError, match="explicit pickle_module"):
        load(io.BytesIO(content), pickle_module=pickle, weights_only=True)
    with pytest.warns(UserWarning, match="pickle_load_args only works"):
        load(io.BytesIO(content), encoding="latin1")


def test_inspection_of_globals():
    for protocol in (2, 4):
        content = saved([Settings(), OrderedDict(), {1}], pickle_protocol=protocol)
        found = serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(content))
        assert f"{__name__}.Settings" in found
        assert "collections.OrderedDict" not in found
        assert "torch._utils._rebuild_tensor_v2" not in found
    with pytest.raises(ValueError, match="Expected input to be a checkpoint"):
        serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(b"abc"))


# ---- places


@pytest.mark.parametrize("place", [None, "cpu", device("cpu"), {"cpu": "cpu"}, lambda s, p: s])
@pytest.mark.parametrize("zip_format", FORMATS)
def test_map_location(place, zip_format):
    found = round_trip(wrap(np.ones(2, np.float32)), zip_format=zip_format, map_location=place)
    assert found._data.tolist() == [1, 1]


def on_cuda(content):
    return content.replace(b"X\x03\x00\x00\x00cpu", b"X\x06\x00\x00\x00cuda:0")


def test_storages_of_missing_devices():
    tensor = wrap(np.ones(2, np.float32))
    content = on_cuda(ArchiveReader(saved(tensor)).read("data.pkl"))
    archive = archive_of(content, {"0": tensor._data}).getvalue()
    with pytest.raises(RuntimeError, match="deserialize object on a CUDA device but"):
        load(io.BytesIO(archive))
    for place in ("cpu", {"cuda:0": "cpu"}, lambda storage, name: storage):
        found = load(io.BytesIO(archive), map_location=place)
        assert found._data.tolist() == [1, 1]
    with pytest.raises(RuntimeError, match=r"don't know how to restore .* \(tagged with tpu\)"):
        load(io.BytesIO(archive), map_location="tpu")
    with pytest.raises(TypeError, match="must return a storage or None, got int"):
        load(io.BytesIO(archive), map_location=lambda storage, name: 3)


# ---- hostile descriptions of tensors

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
        {"kind": "QInt8Storage"},
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
    for name, word in (("_rebuild_qtensor", "quantized"), ("_rebuild_sparse_tensor", "sparse")):
        with pytest.raises(NotImplementedError, match=word):
            load(archive_of(f"\x80\x02ctorch._utils\n{name}\n)R.".encode("latin1"), {}))


# ---- byte order


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


# ---- files


def test_paths_and_folder_names(tmp_path):
    for name, folder in (("a.b.pth", "a.b"), ("plain", "plain"), ("é.pt", "archive")):
        save(wrap(np.ones(2, np.float32)), tmp_path / name)
        assert load(str(tmp_path / name))._data.tolist() == [1, 1]
        with zipfile.ZipFile(tmp_path / name) as archive:
            assert archive.namelist()[0] == f"{folder}/data.pkl"


def test_file_objects_are_read_from_their_position():
    content = saved([1, 2])
    stream = io.BytesIO(b"before" + content)
    stream.seek(6)
    assert load(stream) == [1, 2]


def test_open_files(tmp_path):
    path = tmp_path / "x.pt"
    with path.open("wb") as file:
        file.write(b"before")
        save(wrap(np.ones(2, np.float32)), file)
    with path.open("rb") as file:
        file.seek(6)
        assert load(file)._data.tolist() == [1, 1]


def test_legacy_objects_in_a_row(tmp_path):
    path = tmp_path / "x.pt"
    with path.open("wb") as file:
        for number in range(3):
            save(wrap(np.full(2, number)), file, _use_new_zipfile_serialization=False)
    for weights_only in (True, False):
        with path.open("rb") as file:
            for number in range(3):
                assert load(file, weights_only=weights_only)._data.tolist() == [number, number]


def test_compressed_streams():
    sink = io.BytesIO()
    with gzip.open(sink, "wb") as file:
        save([1], file)
    sink.seek(0)
    with gzip.open(sink) as file:
        assert load(file) == [1]


def test_wrong_files(tmp_path):
    with pytest.raises(AttributeError, match="You can only torch.load from a file that is seek"):
        load(3)
    with pytest.raises(AttributeError, match="expected 'f' to be string, path, or a file-like"):
        save(1, 3)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing.pt")
    with pytest.raises(RuntimeError, match="Parent directory .* does not exist"):
        save(1, tmp_path / "nowhere" / "x.pt")
    with pytest.raises(EOFError):
        load(io.BytesIO(b""))
    with pytest.raises(NotImplementedError, match="safetensors"):
        load(tmp_path / "x.safetensors")


def test_torchscript_archives_are_recognised():
    archive = archive_of(b"\x80\x02N.", {}, **{"constants.pkl": b"\x80\x02)."})
    with pytest.raises(RuntimeError, match="TorchScript archives"):
        load(archive)


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


def test_a_mapped_file_can_be_replaced(tmp_path):
    path = tmp_path / "x.pt"
    save(wrap(np.ones(1000, np.float32)), path)
    found = load(path, mmap=True)
    save(wrap(np.zeros(1000, np.float32)), path)
    assert found._data.sum() == 1000


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


class Unpicklable:
    def __reduce__(self):
        raise TypeError("not this one")


class FullDisk(io.RawIOBase):
    def write(self, data):
        raise OSError(28, "No space left on device")


@pytest.mark.parametrize("zip_format", FORMATS)
def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch, zip_format):
    path = tmp_path / "x.pt"
    save([1], path)
    before = path.read_bytes()
    with pytest.raises(TypeError, match="not this one"):
        save([2, Unpicklable()], path, _use_new_zipfile_serialization=zip_format)
    monkeypatch.setattr(os, "fsync", lambda fd: FullDisk().write(b""))
    with pytest.raises(OSError, match="No space left"):
        save([3], path, _use_new_zipfile_serialization=zip_format)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX modes and links")
def test_modes_links_and_devices(tmp_path):
    path = tmp_path / "x.pt"
    save([1], path)
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask
    path.chmod(0o600)
    link = tmp_path / "link.pt"
    link.symlink_to(path)
    save([2], link)
    assert link.is_symlink()
    assert load(path) == [2]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    save([3], "/dev/null")


# ---- damage


def damaged_files(count):
    tensor = wrap(np.arange(20, dtype=np.float32).reshape(4, 5))
    value = {"a": tensor, "b": [wrap(tensor._data[1:]), Size((1,))], "c": OrderedDict(d=1.5)}
    files = [saved(value), saved(value, _use_new_zipfile_serialization=False)]
    pickled = ArchiveReader(files[0]).read("data.pkl")
    generator = random.Random(2)
    for step in range(count):
        data = bytearray((*files, pickled)[step % 3])
        for _ in range(generator.randint(1, 3)):
            data[generator.randrange(len(data))] = generator.randrange(256)
        yield io.BytesIO(data) if step % 3 < 2 else archive_of(bytes(data), {"0": tensor._data})


def test_random_damage_never_escapes_and_never_allocates():
    tracemalloc.start()
    try:
        for file in damaged_files(1500):
            with suppress(pickle.UnpicklingError, RuntimeError, EOFError):
                load(file)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 10 << 20


def test_truncated_legacy_files():
    content = saved([wrap(np.ones(5, np.float32))], _use_new_zipfile_serialization=False)
    for length in range(1, len(content)):
        with pytest.raises((pickle.UnpicklingError, RuntimeError)):
            load(io.BytesIO(content[:length]))


def test_legacy_headers():
    for magic, version in ((1, 1001), (0x1950A86A20F9469CFC6C, 7)):
        content = pickle.dumps(magic, 2) + pickle.dumps(version, 2)
        with pytest.raises(RuntimeError, match=r"Invalid (magic number|protocol version)"):
            load(io.BytesIO(content))
    with pytest.raises(NotImplementedError, match="PyTorch 0.1"):
        load(io.BytesIO(b"x" * 257 + b"ustar" + bytes(100)))


def test_legacy_storages_cannot_outgrow_the_file():
    content = saved([wrap(np.ones(5, np.float32))], _use_new_zipfile_serialization=False)
    huge = content.replace(b"K\x05N", b"J\xff\xff\xff\x7fN")
    assert huge != content
    with pytest.raises(pickle.UnpicklingError, match="too short for storage"):
        load(io.BytesIO(huge))
