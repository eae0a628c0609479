"""Paths and file objects: what can be saved to and loaded from, and how saving fails."""

import gzip
import io
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
