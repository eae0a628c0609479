"""Saving to what cannot be replaced: pipes, standard output, files in closed folders; and what an
old file was besides its content stays."""

from __future__ import annotations

import errno
import io
import os
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import flambeau as torch
from flambeau.serialization.atomic import atomic_write

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX files")
ROOT = Path(__file__).parents[2]
SAVE = "import sys; sys.path.insert(0, sys.argv[2]); import flambeau as torch\n"
TENSOR = "torch.save(torch.arange(1000), sys.argv[1])\n"


def holds(content: bytes) -> bool:
    return torch.load(io.BytesIO(content)).tolist() == list(range(1000))


def names_in(folder: Path) -> list[str]:
    return sorted(place.name for place in folder.iterdir())


def run(code: str, path: Any, **options: Any) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-c", SAVE + code, str(path), str(ROOT)]
    return subprocess.run(command, timeout=60, check=False, stderr=subprocess.PIPE, **options)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users reach, as pytest's own are not."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.parametrize("path", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_standard_output_that_is_a_pipe(path: str) -> None:
    assert holds(run(TENSOR, path, stdout=subprocess.PIPE).stdout)


@pytest.mark.parametrize("path", ["/dev/stdout", "link"])
def test_standard_output_that_is_a_file(tmp_path: Path, path: str) -> None:
    """The file that the shell has opened gets the content, not another one of its name."""
    if path == "link":
        (tmp_path / "between").symlink_to("/dev/stdout")
        (tmp_path / "link").symlink_to("between")
        path = str(tmp_path / "link")
    with (tmp_path / "out").open("w+b") as out:
        assert run(TENSOR, path, stdout=out).stderr == b""
        out.seek(0)
        assert holds(out.read())
        assert os.fstat(out.fileno()).st_ino == (tmp_path / "out").stat().st_ino


def test_a_pipe_with_a_name(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    torch.save(torch.arange(1000), tmp_path / "pipe")
    reader.join(60)
    assert holds(found[0])
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


AS_NOBODY = """
import os
torch.save(torch.arange(2), os.devnull)
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
"""


def test_a_writable_file_in_a_closed_folder(open_folder: Path) -> None:
    path = open_folder / "x.pt"
    path.write_bytes(b"old")
    path.chmod(0o666)
    open_folder.chmod(0o555)
    status = path.stat()
    done = run(AS_NOBODY + TENSOR, path)
    assert done.returncode == 0, done.stderr
    assert holds(path.read_bytes())
    assert (path.stat().st_ino, path.stat().st_uid) == (status.st_ino, status.st_uid)
    done = run(AS_NOBODY + TENSOR, open_folder / "new.pt")
    assert done.returncode and b"PermissionError" in done.stderr
    assert names_in(open_folder) == ["x.pt"]


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="needs two users")
def test_a_file_of_another_user_stays_theirs(open_folder: Path) -> None:
    """The administrator gives the new file its owner; who cannot, writes into the old one."""
    open_folder.chmod(0o777)
    for user, code in ((1234, TENSOR), (0, AS_NOBODY + TENSOR)):
        path = open_folder / f"{user}.pt"
        path.write_bytes(b"old")
        path.chmod(0o666)
        os.chown(path, user, 4321)
        assert run(code, path).returncode == 0
        assert holds(path.read_bytes())
        status = path.stat()
        assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (user, 4321, 0o666)
    assert len(names_in(open_folder)) == 2


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="no extended attributes")
def test_extended_attributes_stay(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    path.write_bytes(b"old")
    try:
        os.setxattr(path, "user.note", b"mine")
    except OSError:
        pytest.skip("a file system without extended attributes")
    torch.save(torch.arange(1000), path)
    assert os.getxattr(path, "user.note") == b"mine"
    assert holds(path.read_bytes())


@pytest.mark.parametrize("code", [errno.EBUSY, errno.EXDEV, errno.EPERM])
def test_a_name_that_cannot_be_taken_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                          code: int) -> None:  # fmt: skip
    """A file that is a mount of its own, and a file of others in a folder with the sticky bit."""
    path = tmp_path / "x.pt"
    path.write_bytes(b"old, and longer than what comes" * 1000)
    inode = path.stat().st_ino

    def refuse(*arguments: Any) -> None:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", refuse)
        torch.save(torch.arange(1000), path)
    assert holds(path.read_bytes()) and path.stat().st_ino == inode
    assert names_in(tmp_path) == ["x.pt"]


def test_a_failure_in_the_middle_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    path.write_bytes(b"old")
    with pytest.raises(ValueError, match="stop"), atomic_write(str(path)) as file:
        file.write(b"half")
        raise ValueError("stop")
    assert path.read_bytes() == b"old" and names_in(tmp_path) == ["x.pt"]
