"""Paths and file objects: what can be saved to and loaded from, and how saving fails."""

import bz2
import gzip
import io
import lzma
import os
import stat
import sys
import zipfile

import numpy as np
import pytest

from flambeau._tensor.tensor import wrap
from flambeau.serialization import load, save
from tests.serialization.checkpoints import FORMATS, archive_of, saved


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


def test_compressed_streams():
    sink = io.BytesIO()
    with gzip.open(sink, "wb") as file:
        save([1], file)
    sink.seek(0)
    with gzip.open(sink) as file:
        assert load(file) == [1]


@pytest.mark.parametrize("module", [gzip, bz2, lzma])
@pytest.mark.parametrize("zip_format", FORMATS)
def test_compressed_files_that_are_buffered_once_more(tmp_path, module, zip_format):
    """They have the descriptor and the name of the file that holds what is compressed."""
    path = tmp_path / "x.pt.packed"
    with module.open(path, "wb") as file:
        save([1], file, _use_new_zipfile_serialization=zip_format)
    with module.open(path) as file:
        assert load(io.BufferedReader(file)) == [1]


class Narrow(io.RawIOBase):
    """Takes little at once, as unbuffered files may."""

    def __init__(self):
        self.content = bytearray()

    def writable(self):
        return True

    def write(self, data):
        self.content += memoryview(data).cast("B")[:100]
        return min(memoryview(data).nbytes, 100)


@pytest.mark.parametrize("zip_format", FORMATS)
def test_files_that_take_a_part_get_the_rest(zip_format):
    sink = Narrow()
    save(wrap(np.arange(300.0)), sink, _use_new_zipfile_serialization=zip_format)
    assert load(io.BytesIO(sink.content))._data.tolist() == list(range(300))


@pytest.mark.skipif(sys.platform == "win32", reason="pipes that nobody may wait for")
@pytest.mark.parametrize("zip_format", FORMATS)
def test_a_full_pipe_that_nobody_may_wait_for(zip_format):
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    refused = pytest.raises(BlockingIOError, match="temporarily unavailable")
    with os.fdopen(reader, "rb"), os.fdopen(writer, "wb", buffering=0) as sink, refused:
        save(wrap(np.zeros(10**6)), sink, _use_new_zipfile_serialization=zip_format)


class Resizes:
    """Resizes a tensor when it is pickled, as another thread may."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __reduce__(self):
        self.tensor.resize_(1000)
        return int, ()


@pytest.mark.parametrize("zip_format", FORMATS)
def test_what_is_resized_while_it_is_saved_is_no_file(tmp_path, zip_format):
    path = tmp_path / "x.pt"
    save([1], path)
    tensor = wrap(np.ones(10))
    with pytest.raises(RuntimeError, match="had 80 bytes when .* 8000 now: it was resized"):
        save([tensor, Resizes(tensor)], path, _use_new_zipfile_serialization=zip_format)
    assert load(path) == [1]


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


def test_torchscript_archives_are_recognised():
    archive = archive_of(b"\x80\x02N.", {}, **{"constants.pkl": b"\x80\x02)."})
    with pytest.raises(RuntimeError, match="TorchScript archives"):
        load(archive)


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
