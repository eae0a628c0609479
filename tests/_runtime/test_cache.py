"""Machine code on disk: whole files or none, whatever happens to writers, disks and entries."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from flambeau._runtime import cache, engine

KEY = "ab" * 32
CODE = bytes(range(256)) * 40


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FLAMBEAU_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(cache.State, "writes", 0)
    return tmp_path


def entry(folder: Path, key: str = KEY) -> Path:
    return folder / key[:2] / f"{key[2:]}.o"


def key_of(number: int) -> str:
    return f"{number:064x}"[::-1]


def test_what_is_written_is_read():
    assert cache.read(KEY) is None
    assert cache.write(KEY, CODE)
    assert cache.read(KEY) == CODE
    assert cache.read(KEY[:-1] + "c") is None
    cache.remove(KEY)
    assert cache.read(KEY) is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:10],
        lambda data: data[:-1],
        lambda data: data + b"x",
        lambda data: b"x" * len(data),
        lambda data: data[:100] + bytes([data[100] ^ 1]) + data[101:],
        lambda data: data.replace(b"kernel 2", b"kernel 1"),
    ],
)
def test_damaged_entries_are_not_used_and_are_removed(folder: Path, damage):
    cache.write(KEY, CODE)
    path = entry(folder)
    path.write_bytes(damage(path.read_bytes()))
    assert cache.read(KEY) is None
    assert not path.exists()
    assert cache.write(KEY, CODE) and cache.read(KEY) == CODE


def test_no_cache(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FLAMBEAU_CACHE_DIR", "")
    assert cache.directory() is None
    assert not cache.write(KEY, CODE)
    assert cache.read(KEY) is None
    assert cache.size() == (0, 0)
    cache.clear()


def test_places(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.delenv("FLAMBEAU_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    assert cache.directory() == tmp_path / "x" / "flambeau"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache.directory() == tmp_path / ".cache" / "flambeau"


def test_a_folder_that_cannot_be_made(folder: Path, monkeypatch: pytest.MonkeyPatch):
    """A read-only place, for every user: below a file there are no folders."""
    (folder / "file").write_text("")
    monkeypatch.setenv("FLAMBEAU_CACHE_DIR", str(folder / "file" / "below"))
    assert not cache.write(KEY, CODE)
    assert cache.read(KEY) is None
    cache.clean(0)


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EDQUOT])
@pytest.mark.parametrize("step", ["mkdir", "mkstemp", "write", "replace"])
def test_errors_of_the_disk(folder: Path, monkeypatch: pytest.MonkeyPatch, step: str, error: int):
    def fail(*arguments: object, **named: object) -> None:
        raise OSError(error, os.strerror(error))

    class Full:
        def __init__(self, handle: int, mode: str) -> None:
            os.close(handle)

        def __enter__(self) -> Full:
            return self

        def __exit__(self, *exc: object) -> None: ...

        write = fail

    where = {"mkdir": (Path, "mkdir", fail), "mkstemp": (cache.tempfile, "mkstemp", fail),
             "write": (cache.os, "fdopen", Full), "replace": (Path, "replace", fail)}  # fmt: skip
    with monkeypatch.context() as patch:
        patch.setattr(*where[step])
        assert not cache.write(KEY, CODE)
    assert [path for path in folder.rglob("*") if path.is_file()] == []
    assert cache.read(KEY) is None
    assert cache.write(KEY, CODE) and cache.read(KEY) == CODE


def python(code: str, folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code], text=True, stdout=subprocess.PIPE,
        env={**os.environ, "FLAMBEAU_CACHE_DIR": str(folder)},
    )  # fmt: skip


def test_a_limit_on_the_size_of_files(folder: Path):
    code = f"""
import resource
from flambeau._runtime import cache, engine
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
print(cache.write({KEY!r}, bytes(10_000)), cache.write({KEY!r}, bytes(100)))
print(len(cache.read({KEY!r})))
"""
    said, _ = python(code, folder).communicate(timeout=60)
    assert said == "False True\n100\n"
    assert len([path for path in folder.rglob("*") if path.is_file()]) == 1


def test_writers_that_are_killed(folder: Path):
    """Processes write one key over and over and are killed: readers find a whole file or none."""
    code = f"""
from flambeau._runtime import cache, engine
print("begin", flush=True)
while True:
    cache.write({KEY!r}, bytes(200_000))
"""
    for turn in range(6):
        writer = python(code, folder)
        assert writer.stdout is not None
        assert writer.stdout.readline() == "begin\n"
        time.sleep(0.004 * turn)
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        path = entry(folder)
        if path.exists():
            assert cache.read(KEY) == bytes(200_000)
    assert cache.write(KEY, CODE) and cache.read(KEY) == CODE


def test_eight_processes_at_once(folder: Path):
    """All write, read, damage and clean the same few keys; nobody fails or reads a wrong byte."""
    code = """
import os, random, sys
from pathlib import Path
from flambeau._runtime import cache, engine
random.seed(os.getpid())
wrong = 0
for turn in range(150):
    number = random.randrange(6)
    key = f"{number:02x}" * 32
    cache.write(key, bytes([number]) * 50_000)
    code = cache.read(key)
    wrong += code is not None and code != bytes([number]) * 50_000
    if turn % 10 == 0:
        cache.clean(100_000)
    if turn % 17 == 0:
        cache._file(key).parent.mkdir(exist_ok=True)
        cache._file(key).write_bytes(b"garbage")
print(wrong)
"""
    crowd = [python(code, folder) for _ in range(8)]
    said = [one.communicate(timeout=120)[0] for one in crowd]
    assert [one.returncode for one in crowd] == [0] * 8
    assert said == ["0\n"] * 8
    assert not list(folder.rglob(f"{cache.UNFINISHED}*"))


def test_the_files_used_longest_ago_go_first(folder: Path):
    now = time.time()
    keys = [key_of(number) for number in range(10)]
    for age, key in enumerate(keys):
        cache.write(key, CODE)
        os.utime(entry(folder, key), (now - 10_000 * age, now - 10_000 * age))
    assert cache.read(keys[9]) == CODE  # used now
    each = entry(folder, keys[0]).stat().st_size
    cache.clean(5 * each)
    assert [cache.read(key) is not None for key in keys] == [True] * 4 + [False] * 5 + [True]
    assert cache.size() == (5, 5 * each)
    cache.clear()
    assert cache.size() == (0, 0)


def test_writing_keeps_the_cache_bounded(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cache, "LIMIT", 5 * len(CODE))
    monkeypatch.setattr(cache, "CLEAN_EVERY", 2)
    for number in range(40):
        cache.write(key_of(number), CODE)
    assert cache.size()[1] <= 7 * len(CODE)
    assert cache.read(key_of(39)) == CODE


def test_what_was_left_unfinished_goes_when_it_is_old(folder: Path):
    cache.write(KEY, CODE)
    fresh, old = (entry(folder).parent / f"{cache.UNFINISHED}{n}" for n in (1, 2))
    fresh.write_bytes(b"x")
    old.write_bytes(b"x")
    os.utime(old, (time.time() - 2 * cache.HOUR,) * 2)
    cache.clean(cache.LIMIT)
    assert fresh.exists() and not old.exists()
    assert cache.read(KEY) == CODE


def test_foreign_files_stay(folder: Path):
    """Someone may name a folder that holds other things."""
    (folder / "notes.txt").write_text("mine")
    (folder / "project").mkdir()
    (folder / "project" / "file").write_text("mine")
    cache.write(KEY, CODE)
    cache.clear()
    assert (folder / "notes.txt").exists() and (folder / "project" / "file").exists()


def test_the_fingerprint_is_of_every_file_of_the_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Machine code that another generator made is never used, whichever of its files changed."""
    pytest.importorskip("llvmlite")
    original = Path(engine.compiler.__file__).parent
    folder = tmp_path / original.name
    shutil.copytree(original, folder, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(engine.compiler, "__file__", str(folder / "native.py"))
    files = sorted(folder.rglob("*.py"))
    assert folder / "vector_math" / "exponential.py" in files
    seen = {engine.fingerprint.__wrapped__()}
    for file in files:
        with file.open("a") as text:
            text.write("#")
        seen.add(engine.fingerprint.__wrapped__())
    assert len(seen) == 1 + len(files)


@pytest.mark.skipif(sys.platform == "win32", reason="the working directory cannot be removed")
def test_a_working_directory_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative folder leads nowhere then: there is no cache, and kernels run."""
    program = (
        "import os, flambeau as torch; os.rmdir(os.getcwd());"
        "print(torch.softmax(torch.ones(10, 500), 1).sum().item())"
    )
    (tmp_path / "gone").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, "FLAMBEAU_CACHE_DIR": "kept"},
        cwd=tmp_path / "gone", capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert round(float(done.stdout)) == 10
