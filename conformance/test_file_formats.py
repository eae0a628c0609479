"""Formats, options and errors of files, beside torch's: the same results and the same words."""

import io
import mmap
import pickle
import warnings

import numpy as np
import pytest
import torch

import flambeau
from flambeau.serialization.archive import ArchiveReader
from tests.serialization.checkpoints import archive_of
from tests.serialization.test_legacy import tar_file

LIBRARIES = [(torch, flambeau), (flambeau, torch)]
both_ways = pytest.mark.parametrize(("sender", "receiver"), LIBRARIES, ids=["from", "to"])
pytestmark = pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")


def written(library, value, **options):
    sink = io.BytesIO()
    library.save(value, sink, **options)
    return sink.getvalue()


def outcome(function):
    """What a call returns, or the class and first line of what it raises."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function()
    except Exception as error:  # noqa: BLE001
        return type(error).__name__, str(error).split("\n")[0]


# ---- formats


def of_python_2(word: bytes) -> bytes:
    """A file as Python 2 wrote it: all its texts are bytes. [word, tensor of one float32]."""

    def text(value: bytes) -> bytes:
        return pickle.SHORT_BINSTRING + bytes([len(value)]) + value

    numbers = [pickle.dumps(number, 2) for number in (0x1950A86A20F9469CFC6C, 1001)]
    order = text(b"little_endian") + pickle.NEWTRUE + pickle.SETITEM
    system = b"\x80\x02" + pickle.EMPTY_DICT + order + pickle.STOP
    storage = (
        pickle.MARK + text(b"storage") + b"ctorch\nFloatStorage\n" + text(b"key") + text(b"cpu")
        + b"K\x01" + pickle.NONE + pickle.TUPLE + pickle.BINPERSID
    )  # fmt: skip
    tensor = (
        b"ctorch._utils\n_rebuild_tensor_v2\n" + pickle.MARK + storage + b"K\x00K\x01\x85K\x01\x85"
        + pickle.NEWFALSE + pickle.NONE + pickle.TUPLE + pickle.REDUCE
    )  # fmt: skip
    content = b"\x80\x02]" + pickle.MARK + text(word) + tensor + pickle.APPENDS + pickle.STOP
    keys = b"\x80\x02]" + text(b"key") + pickle.APPEND + pickle.STOP
    return b"".join([*numbers, system, content, keys, b"\x01" + bytes(7), b"\x00\x00\x80\x3f"])


@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("encoding", ["utf-8", "bytes", "latin1", "utf-16"])
def test_encodings_of_files_of_python_2(encoding, weights_only):
    """The words of the format are read in every encoding that makes texts or bytes of them."""
    results = []
    for library in (torch, flambeau):
        data = io.BytesIO(of_python_2("ähnlich".encode()))
        loaded = outcome(
            lambda lib=library, data=data: lib.load(
                data, encoding=encoding, weights_only=weights_only
            )
        )
        fails = isinstance(loaded, tuple)
        results.append(fails or (loaded[0], loaded[1].tolist()))
    assert results[0] == results[1]


def test_tar_files(tmp_path):
    path = tmp_path / "old.tar"
    path.write_bytes(tar_file())
    theirs = torch.load(path, weights_only=False)
    ours = flambeau.load(path, weights_only=False)
    for one, other in zip(theirs, ours, strict=True):
        assert one.tolist() == other.tolist()
        assert one.stride() == other.stride()
        assert one.storage_offset() == other.storage_offset()
    words = [outcome(lambda lib=lib: lib.load(path))[1][:60] for lib in (torch, flambeau)]
    assert words[0] == words[1]


@pytest.mark.parametrize("order", ["little", "big", None])
@pytest.mark.parametrize("name", ["float32", "int16", "complex64", "bfloat16", "bool"])
def test_byte_orders(name, order):
    """A foreign archive, with its order recorded or assumed; torch is the judge.

    Not of untyped storages (uint32 and others), whose elements torch leaves as they are: there
    flambeau swaps by the tensor's dtype.
    """
    value = torch.tensor([0, 1, 1, 3, 2]).to(getattr(torch, name))
    content = ArchiveReader(written(torch, value)).read("data.pkl")
    width = 4 if name in ("complex64", "float32") else value.itemsize
    plain = value.view(torch.uint8).numpy().reshape(-1, width)
    records = {"byteorder": order.encode()} if order else {}
    archive = archive_of(content, {"0": plain[:, ::-1].copy()}, **records).getvalue()
    for assumed in (None, "NATIVE", "LITTLE", "BIG"):
        found = []
        for library in (torch, flambeau):
            chosen = assumed and library.serialization.LoadEndianness[assumed]
            library.serialization.set_default_load_endianness(chosen)
            try:
                loaded = library.load(io.BytesIO(archive))
            finally:
                library.serialization.set_default_load_endianness(None)
            found.append(loaded.float().tolist() if name == "bfloat16" else loaded.tolist())
        assert repr(found[0]) == repr(found[1])


@both_ways
@pytest.mark.parametrize("zip_format", [True, False])
def test_typed_storages(sender, receiver, zip_format):
    tensor = sender.arange(5, dtype=sender.int16)
    content = written(
        sender, [tensor[2:], tensor.storage()], _use_new_zipfile_serialization=zip_format
    )
    part, storage = receiver.load(io.BytesIO(content))
    assert isinstance(storage, receiver.ShortStorage)
    storage[3] = 9
    assert part.tolist() == [2, 9, 4]


@both_ways
def test_generators(sender, receiver):
    generator = sender.Generator()
    generator.manual_seed(11)
    sender.rand(7, generator=generator)
    found = receiver.load(io.BytesIO(written(sender, generator)), weights_only=False)
    numbers = [
        lib.rand(5, generator=g).tolist() for lib, g in ((receiver, found), (sender, generator))
    ]
    assert numbers[0] == numbers[1]
    state = receiver.load(io.BytesIO(written(sender, generator.get_state())))
    again = receiver.Generator()
    again.set_state(state)
    assert (
        receiver.rand(5, generator=again).tolist() == sender.rand(5, generator=generator).tolist()
    )


@both_ways
def test_functions(sender, receiver):
    value = [sender.relu, sender.nn.functional.gelu, sender.nn.functional.relu, sender.tanh]
    found = receiver.load(io.BytesIO(written(sender, value)), weights_only=False)
    assert found[1:3] == [receiver.nn.functional.gelu, receiver.nn.functional.relu]
    assert found[0](receiver.tensor([-1.0, 2.0])).tolist() == [0, 2]
    assert found[3](receiver.zeros(1)).tolist() == [0]


@both_ways
def test_negated_and_conjugated_views(sender, receiver):
    base = sender.tensor([1 + 2j, 3 - 4j])
    for before in (base.conj(), base.conj().imag, base.conj()[1:], base.imag):
        after = receiver.load(io.BytesIO(written(sender, before)))
        assert before.tolist() == after.tolist()


# ---- names and options


def test_names():
    public = set(torch.serialization.__all__)
    assert public <= set(flambeau.serialization.__all__)
    for name in ("location_tag", "validate_cuda_device", "validate_hpu_device"):
        assert hasattr(flambeau.serialization, name)


def test_options_have_torchs_names_and_values():
    from torch.utils.serialization import config as theirs

    from flambeau.utils.serialization import config as ours

    for group in ("load", "save"):
        for name in vars(getattr(theirs, group)):
            if not name.startswith("_"):
                expected = getattr(getattr(theirs, group), name)
                assert getattr(getattr(ours, group), name) == expected
    for library in (theirs, ours):
        with library.patch("save.compute_crc32", False), library.patch({"load.mmap": True}):
            assert not library.save.compute_crc32
            assert library.load.mmap
        assert library.save.compute_crc32
        assert not library.load.mmap


def test_flags_of_mappings():
    found = []
    for library in (torch, flambeau):
        serialization = library.serialization
        with serialization.set_default_mmap_options(mmap.MAP_SHARED):
            inside = serialization.get_default_mmap_options()
        found.append((inside, serialization.get_default_mmap_options()))
        found[-1] += (outcome(lambda s=serialization: s.set_default_mmap_options(77)),)
        found[-1] += (outcome(lambda s=serialization: s.set_default_load_endianness("big")),)
    assert found[0] == found[1]


@both_ways
def test_skipped_data(sender, receiver):
    with sender.serialization.skip_data():
        content = written(sender, sender.ones(1000))
    assert receiver.load(io.BytesIO(content)).tolist() == [0] * 1000
    assert sender.load(io.BytesIO(content)).tolist() == [0] * 1000


# ---- errors


def on(place):
    """A tensor that was saved on another device."""
    content = ArchiveReader(written(torch, torch.ones(3))).read("data.pkl")
    length = len(place).to_bytes(4, "little")
    there = content.replace(b"X\x03\x00\x00\x00cpu", b"X" + length + place.encode())
    return archive_of(there, {"0": np.ones(3, np.float32)}).getvalue()


@pytest.mark.parametrize("place", ["cuda:0", "cuda", "xpu:1", "hpu", "toaster", "cpu"])
@pytest.mark.parametrize("target", [None, "cpu", {"cuda:0": "cpu"}, {}, "cuda:1", "oven"], ids=str)
def test_places(place, target):
    content = on(place)
    found = [
        outcome(lambda lib=lib: lib.load(io.BytesIO(content), map_location=target).tolist())
        for lib in (torch, flambeau)
    ]
    assert found[0] == found[1]


class Unseekable(io.RawIOBase):
    def readable(self):
        return True

    def seekable(self):
        return False


class OnlyReads:
    def read(self, size=-1):
        return b""


WRONG_CALLS = {
    "unseekable": lambda lib: lib.load(Unseekable()),
    "no methods": lambda lib: lib.load(OnlyReads()),
    "a list": lambda lib: lib.load([]),
    "empty": lambda lib: lib.load(io.BytesIO(b"")),
    "mapped bytes": lambda lib: lib.load(io.BytesIO(b"x"), mmap=True),
    "module and safety": lambda lib: lib.load(
        io.BytesIO(b"x"), pickle_module=pickle, weights_only=True
    ),
    "save to a number": lambda lib: lib.save(1, 3),
    "save a thread": lambda lib: lib.save((n for n in "a"), io.BytesIO()),
    "two types": lambda lib: lib.save(
        [lib.ones(2).view(lib.int32), lib.ones(2).view(lib.int32).view(lib.float32)], io.BytesIO()
    ),
    "one memory, two types": lambda lib: lib.save(
        [t := lib.ones(2), t.view(lib.int32)], io.BytesIO()
    ),
    "location of a number": lambda lib: lib.serialization.default_restore_location(
        lib.ones(1).untyped_storage(), "nowhere"
    ),
    "globals of nothing": lambda lib: lib.serialization.get_unsafe_globals_in_checkpoint(
        io.BytesIO(b"abcdef")
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG_CALLS)
def test_wrong_calls(name):
    theirs, ours = (outcome(lambda lib=lib: WRONG_CALLS[name](lib)) for lib in (torch, flambeau))
    assert ours == theirs


@pytest.mark.parametrize("set_variables", [("LOAD",), ("NO",), ("LOAD", "NO")], ids=str)
@pytest.mark.parametrize("weights_only", [None, True, False])
def test_environment(monkeypatch, set_variables, weights_only):
    names = {"LOAD": "TORCH_FORCE_WEIGHTS_ONLY_LOAD", "NO": "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"}
    for key in set_variables:
        monkeypatch.setenv(names[key], "1")
    content = written(torch, [slice(1, 2)])
    found = [
        outcome(lambda lib=lib: lib.load(io.BytesIO(content), weights_only=weights_only))
        for lib in (torch, flambeau)
    ]
    assert found[0] == found[1]
