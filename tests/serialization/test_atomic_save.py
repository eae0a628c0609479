"""Saving leaves the old file or the new one, whatever happens; nothing else stays behind."""

import errno
import io
import os
import pickle
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest

from flambeau._tensor.tensor import wrap
from flambeau.serialization import atomic, load, save
from flambeau.serialization.atomic import atomic_write, remove_left_files

ROOT = Path(__file__).parents[2]
FORMATS = [True, False]
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX modes, locks and links")


def tensor(value, count=1000):
    return wrap(np.full(count, value, np.float32))


def names_in(folder):
    return sorted(place.name for place in folder.iterdir())


@pytest.fixture
def path(tmp_path):
    """A file that holds version 1."""
    path = tmp_path / "x.pt"
    save(tensor(1), path)
    return path


def is_whole(path, value):
    """The file holds that version, and its folder nothing but it."""
    return load(path)._data.tolist()[0] == value and names_in(path.parent) == [path.name]


# ---- failures


class Unpicklable:
    def __reduce__(self):
        raise TypeError("not this one")


class Deep:
    """A list too deep for Python's pickler."""

    def __reduce__(self):
        nested = []
        for _ in range(100_000):
            nested = [nested]
        return list, (nested,)


@pytest.mark.parametrize("new_format", FORMATS)
@pytest.mark.parametrize(
    "value", [Unpicklable(), Deep(), lambda: 0, threading.Lock(), (n for n in "a")]
)
def test_what_cannot_be_pickled(path, value, new_format):
    with pytest.raises((TypeError, RecursionError, AttributeError, pickle.PicklingError)):
        save([tensor(2), value], path, _use_new_zipfile_serialization=new_format)
    assert is_whole(path, 1)


@pytest.mark.parametrize("new_format", FORMATS)
def test_a_disk_that_is_full_at_any_write(path, monkeypatch, new_format):
    """Let the first, second, ... write fail, until a save needs no more writes."""
    for allowed in range(200):
        real_open, writes = Path.open, 0

        class Limited:
            def __init__(self, file):
                self.file = file

            def __getattr__(self, name):
                return getattr(self.file, name)

            def __enter__(self):
                return self

            def __exit__(self, *exc):
                self.file.close()

            def write(self, data):
                nonlocal writes
                writes += 1
                if writes > allowed:  # noqa: B023
                    raise OSError(errno.ENOSPC, "No space left on device")
                return self.file.write(data)

        with monkeypatch.context() as patch:
            patch.setattr(Path, "open", lambda *a, **k: Limited(real_open(*a, **k)))  # noqa: B023
            try:
                save(tensor(2), path, _use_new_zipfile_serialization=new_format)
            except OSError as error:
                assert error.errno == errno.ENOSPC
            else:
                break
        assert is_whole(path, 1)
    assert allowed > 3
    assert is_whole(path, 2)


LIMITED = """
import resource, signal, sys
sys.path.insert(0, sys.argv[2])
import numpy as np
import flambeau
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    flambeau.save(flambeau.zeros(1_000_000), sys.argv[1])
except OSError as error:
    print(error.errno)
"""


def test_a_real_limit_on_the_size_of_files(path):
    command = [sys.executable, "-c", LIMITED, str(path), str(ROOT)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert result.stdout == f"{errno.EFBIG}\n"
    assert is_whole(path, 1)


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(errno.EIO, "broken"), KeyboardInterrupt()])
def test_failures_of_the_last_steps(path, monkeypatch, step, error):
    def fail(*arguments):
        raise error

    monkeypatch.setattr(*((os, "fsync") if step == "fsync" else (Path, "replace")), fail)
    with pytest.raises(type(error)):
        save(tensor(2), path)
    monkeypatch.undo()
    assert is_whole(path, 1)


def test_a_new_file_that_fails_leaves_nothing(tmp_path):
    with pytest.raises(ValueError, match="stop"), atomic_write(str(tmp_path / "new")) as file:
        file.write(b"half")
        raise ValueError("stop")
    assert names_in(tmp_path) == []


# ---- the order of the steps


def test_data_reach_the_disk_before_the_name_and_the_name_before_the_return(path, monkeypatch):
    steps = []
    fsync, replace = os.fsync, Path.replace

    def synced(descriptor):
        kind = "folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file"
        steps.append((kind, os.fstat(descriptor).st_size if kind == "file" else None))
        fsync(descriptor)

    def renamed(source, target):
        steps.append(("rename", source.parent == path.parent))
        return replace(source, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", renamed)
    save(tensor(2), path)
    assert steps == [("file", path.stat().st_size), ("rename", True), ("folder", None)]


@pytest.mark.parametrize("code", [errno.EINVAL, errno.ENOTSUP])
def test_folders_that_cannot_be_synced(path, monkeypatch, code):
    fsync = os.fsync

    def refuse(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(code, "no")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", refuse)
    save(tensor(2), path)
    assert is_whole(path, 2)


def test_a_folder_whose_disk_fails_is_an_error(path, monkeypatch):
    fsync = os.fsync

    def refuse(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EIO, "no")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OSError, match="no"):
        save(tensor(2), path)


# ---- modes, links, names


def test_a_private_file_is_private_from_the_first_byte(path):
    path.chmod(0o600)
    with atomic_write(str(path)) as file:
        assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == 0o600
        file.write(b"x")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_new_files_follow_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        save([1], tmp_path / "x.pt")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "x.pt").stat().st_mode) == 0o640


AS_NOBODY = """
import os, sys
sys.path.insert(0, sys.argv[2])
import flambeau
flambeau.save([1], os.devnull)
if os.getuid() == 0:
    os.setuid(65534)
try:
    flambeau.save([2], sys.argv[1])
except PermissionError as error:
    print(error)
"""


@pytest.mark.parametrize("mode", [0o444, 0o400])
def test_a_read_only_file_stays(mode):
    with tempfile.TemporaryDirectory() as folder:  # pytest's own folders are closed to others
        Path(folder).chmod(0o777)
        _read_only_file_stays(Path(folder) / "x.pt", mode)


def _read_only_file_stays(path, mode):
    save(tensor(1), path)
    path.chmod(mode)
    command = [sys.executable, "-c", AS_NOBODY, str(path), str(ROOT)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert "Permission denied" in result.stdout, result.stderr
    assert is_whole(path, 1)


def test_links(tmp_path, path):
    other = tmp_path / "other"
    other.mkdir()
    link, dangling, hard = other / "link", other / "dangling", other / "hard"
    link.symlink_to("../x.pt")
    dangling.symlink_to("nothing yet")
    hard.hardlink_to(path)
    save(tensor(2), link)
    save(tensor(3), dangling)
    assert link.is_symlink()
    assert dangling.is_symlink()
    assert [load(place)._data[0] for place in (path, hard, dangling)] == [2, 1, 3]
    assert names_in(other) == ["dangling", "hard", "link", "nothing yet"]


def test_what_is_no_file(tmp_path):
    with pytest.raises(OSError, match="directory"):
        save([1], tmp_path)
    loop = tmp_path / "loop"
    loop.symlink_to("loop")
    with pytest.raises((OSError, RuntimeError)):
        save([1], loop)
    with pytest.raises(OSError, match="No space left"):
        save([1], "/dev/full")
    with pytest.raises(FileNotFoundError):
        save([1], "")
    with pytest.raises(IsADirectoryError, match="not made/"):
        save([1], f"{tmp_path}/not made/")
    assert names_in(tmp_path) == ["loop"]


@pytest.mark.parametrize("name", ["x" * 255, "é" * 127, "a b\n.pt", "[x]*.pt", ".hidden", "x.tmp"])
def test_names(tmp_path, name):
    path = tmp_path / name
    save(tensor(1), path)
    save(tensor(2), path)
    assert is_whole(path, 2)


# ---- several writers, and those that were killed


def leave_a_file(path):
    """What a writer that was killed leaves behind."""
    left = path.with_name(f"{atomic._prefix(path)}{'0123456789abcdef' * 2}"[:-8] + ".tmp")
    left.write_bytes(b"half")
    return left


def test_the_next_save_removes_what_a_killed_one_left(path):
    left = leave_a_file(path)
    assert left.exists()
    save(tensor(2), path)
    assert is_whole(path, 2)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_under_the_name_of_a_left_file_is_not_waited_for(path):
    left = leave_a_file(path)
    left.unlink()
    os.mkfifo(left)
    saving = threading.Thread(target=save, args=(tensor(2), path), daemon=True)
    saving.start()
    saving.join(20)
    assert not saving.is_alive()
    assert load(path)._data[0] == 2
    assert left.is_fifo()


def test_an_error_names_the_file_that_was_asked_for(tmp_path, monkeypatch):
    def refuse(target, previous):
        raise PermissionError(errno.EACCES, "no", f"{target}.some.tmp")

    monkeypatch.setattr(atomic, "_open_neighbour", refuse)
    with pytest.raises(PermissionError) as caught:
        save([1], tmp_path / "x.pt")
    assert caught.value.filename == str(tmp_path / "x.pt")


def test_files_of_others_stay(path):
    keep = [path.with_name(name) for name in (".x.pt.tmp", ".x.pt.0123.tmp", ".y.pt.tmp", "x.tmp")]
    keep.append(leave_a_file(path.with_name("other.pt")))
    for place in keep:
        place.write_bytes(b"mine")
    save(tensor(2), path)
    assert all(place.exists() for place in keep)


def test_writers_at_work_are_left_alone(path):
    with atomic_write(str(path)) as first:
        first.write(b"first")
        remove_left_files(path)
        with atomic_write(str(path)) as second:
            second.write(b"second")
        assert path.read_bytes() == b"second"
    assert path.read_bytes() == b"first"
    assert names_in(path.parent) == [path.name]


def test_many_writers_at_once(path):
    errors = []

    def work(value):
        try:
            for _ in range(10):
                save(tensor(value), path)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(value,)) for value in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    found = load(path)._data
    assert (found == found[0]).all()
    assert names_in(path.parent) == [path.name]


def test_a_file_removed_before_it_was_locked_is_made_again(path, monkeypatch):
    lock, calls = atomic._lock, 0

    def late(file, *, wait):
        nonlocal calls
        calls += wait
        if wait and calls == 1:
            Path(file.name).unlink()
        return lock(file, wait=wait)

    monkeypatch.setattr(atomic, "_lock", late)
    save(tensor(2), path)
    assert calls == 2
    assert is_whole(path, 2)


def test_killed_while_saving():
    """A small share of what `fuzz/kill_while_saving.py` does."""
    script = ROOT / "fuzz" / "kill_while_saving.py"
    command = [sys.executable, str(script), "--kills", "30", "--legacy"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "every file whole" in result.stdout


def test_a_file_object_that_takes_nothing():
    class Stuck(io.BytesIO):
        def write(self, data):
            return 0

    with pytest.raises(OSError, match="takes no more bytes"):
        save([1], Stuck())


def test_file_objects_are_the_callers():
    sink = io.BytesIO()
    save([1], sink)
    assert not sink.closed
