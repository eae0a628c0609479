"""What others may put into the cache's place: nothing of it is ever handed out as machine code."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from flambeau._runtime import cache, cache_folders, choice

if not cache_folders.HAS_OWNERS:
    pytest.skip("files have no owners here", allow_module_level=True)

KEY, OTHER = "ab" * 32, "ab" + "cd" * 31
CODE = bytes(range(256)) * 40


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "cache"
    monkeypatch.setenv("FLAMBEAU_CACHE_DIR", str(place))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir(mode=0o700)
    cache_folders._instead_of.cache_clear()
    return place


def entry(folder: Path, key: str = KEY) -> Path:
    return folder / key[:2] / f"{key[2:]}.o"


# ---- files


def test_a_file_under_another_name_is_not_used_and_removed(folder: Path) -> None:
    """Renamed, copied, linked or exchanged: the hash holds for one name."""
    cache.write(KEY, CODE)
    cache.write(OTHER, CODE[::-1])
    first, second = entry(folder), entry(folder, OTHER)
    first.rename(folder / "kept")
    second.rename(first)
    (folder / "kept").rename(second)
    assert (cache.read(KEY), cache.read(OTHER)) == (None, None)
    assert not first.exists() and not second.exists()
    assert cache.write(KEY, CODE)
    os.link(first, second)
    assert (cache.read(OTHER), cache.read(KEY)) == (None, CODE)


def pipe(path: Path) -> None:
    os.mkfifo(path)


def bound_socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # names of sockets are short
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path.name)
    os.chdir(here)


def link_to_what_is_right(path: Path) -> None:
    cache.write(KEY, CODE)
    path.rename(path.parent.parent / "elsewhere")
    path.symlink_to(path.parent.parent / "elsewhere")


def too_large(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(cache.LONGEST + 1)


def open_to_all(path: Path) -> None:
    cache.write(KEY, CODE)
    path.chmod(0o666)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize(
    "put", [pipe, bound_socket, link_to_what_is_right, too_large, open_to_all, endless]
)
def test_what_is_no_plain_file_of_ours_is_removed(folder: Path, put: Callable) -> None:
    """At once: a pipe would be waited for, a device read for ever."""
    entry(folder).parent.mkdir(parents=True, mode=0o700)
    put(entry(folder))
    assert cache.read(KEY) is None
    assert not os.path.lexists(entry(folder))
    assert cache.write(KEY, CODE) and cache.read(KEY) == CODE


def test_files_of_others_are_not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 1234)
    monkeypatch.setattr(cache_folders, "_owner_of_root", lambda: 0)
    plain = stat.S_IFREG | 0o600
    trusted = {owner: cache._is_trusted(os.stat_result((plain, 0, 0, 1, owner, 0, 0, 0, 0, 0)))
               for owner in (0, 1233, 1234)}  # fmt: skip
    assert trusted == {0: True, 1233: False, 1234: True}


# ---- folders


def used(wanted: Path) -> tuple[Path | None, list[str]]:
    """Which folder is used, and what was said about it."""
    cache_folders._instead_of.cache_clear()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = cache.directory()
        assert cache.directory() == found  # said once
        cache.write(KEY, CODE)
        assert cache.read(KEY) == (None if found is None else CODE)
    assert wanted.is_absolute()
    return found, [str(one.message) for one in said]


@pytest.mark.parametrize("which", ["cache", "cache/..", "link"])
def test_a_folder_that_others_may_write_to_is_refused(
    folder: Path, which: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Itself, or one above it, or one that a link leads to; a private one is used."""
    above = folder.parent / "above"
    (above / "cache").mkdir(parents=True)
    (folder.parent / "link").symlink_to(above)
    (above / "cache").chmod(0o700 if which == "link" else 0o777)
    above.chmod(0o755 if which == "cache" else 0o777)
    wanted = folder.parent / "link" / "cache" if which == "link" else above / "cache"
    monkeypatch.setenv("FLAMBEAU_CACHE_DIR", str(wanted))
    found, said = used(wanted)
    assert found == folder.parent / "home" / ".cache" / "flambeau"
    assert len(said) == 1 and "has mode 777" in said[0] and str(found) in said[0]
    assert not list(above.rglob("*.o"))
    assert stat.S_IMODE(found.stat().st_mode) == 0o700


def test_the_folder_for_temporary_files_is_the_last_resort(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, temporary = folder.parent / "home", folder.parent / "tmp"
    temporary.mkdir()
    temporary.chmod(0o1777)
    monkeypatch.setattr(cache_folders.tempfile, "gettempdir", lambda: str(temporary))
    monkeypatch.delenv("FLAMBEAU_CACHE_DIR")
    home.chmod(0o777)
    found, said = used(home)
    assert found == temporary / f"flambeau-{os.getuid()}" and "mode 777" in said[0]
    found.chmod(0o770 | stat.S_IWOTH)
    found, said = used(home)
    assert found is None and "None are kept" in said[0]


def test_a_sticky_folder_above_is_fine(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sticky = folder.parent / "tmp"
    sticky.mkdir()
    sticky.chmod(0o1777)
    monkeypatch.setenv("FLAMBEAU_CACHE_DIR", str(sticky / "mine"))
    assert used(folder) == (sticky / "mine", [])
    monkeypatch.setenv("FLAMBEAU_CACHE_DIR", str(sticky))  # anyone may add files there
    assert used(folder)[0] != sticky


def test_a_group_of_ones_own_may_write(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir()
    folder.chmod(0o775)
    monkeypatch.setattr(cache_folders, "_is_own_group", lambda group: True)
    assert used(folder) == (folder, [])
    monkeypatch.setattr(cache_folders, "_is_own_group", lambda group: False)
    assert used(folder)[0] != folder


def test_a_folder_of_another_user_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_folders, "_is_owner_trusted", lambda owner: False)
    assert "belongs to user" in cache_folders.fault_of(folder)


def test_folders_below_that_are_not_ours_are_left_alone(folder: Path) -> None:
    elsewhere = folder.parent / "elsewhere"
    elsewhere.mkdir()
    folder.mkdir(mode=0o700)
    (folder / KEY[:2]).symlink_to(elsewhere)
    assert not cache.write(KEY, CODE)
    assert cache.read(KEY) is None and not list(elsewhere.iterdir())
    (folder / KEY[:2]).unlink()
    (folder / KEY[:2]).mkdir()
    (folder / KEY[:2]).chmod(0o777)
    assert not cache.write(KEY, CODE)


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_folders_are_made_for_one_user(folder: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        assert cache.write(KEY, CODE)
    finally:
        os.umask(before)
    for path in (folder, entry(folder).parent):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert stat.S_IMODE(entry(folder).stat().st_mode) == 0o600


def test_cleaning_removes_what_the_cache_has_written_and_nothing_else(folder: Path) -> None:
    """Someone may name a folder of other things, with short names such as `de`."""
    cache.write(KEY, CODE)
    outside = folder.parent / "outside"
    outside.mkdir()
    (outside / entry(folder).name).write_text("mine")
    (folder / "fe").symlink_to(outside)
    for name in ("de", KEY[:2]):
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "texts.po").write_text("mine")
    cache.clear()
    assert not entry(folder).exists()
    assert sorted(path.name for path in folder.rglob("*.po")) == ["texts.po"] * 2
    assert (outside / entry(folder).name).exists()


@pytest.mark.skipif(not choice.available(), reason="no kernels without llvmlite")
def test_kernels_run_while_files_are_exchanged(folder: Path) -> None:
    """All files under each other's names: the numbers stay right."""
    code = """
import flambeau as torch
x = torch.linspace(0.5, 2, 20_000)
print([round(f(x).sum().item()) for f in (torch.exp, torch.neg)])
"""

    def run() -> str:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                              timeout=120, check=True)  # fmt: skip
        return done.stdout + done.stderr

    said = run()
    paths = sorted(folder.glob("*/*.o"))
    contents = [path.read_bytes() for path in paths]
    for path, content in zip(paths, contents[1:] + contents[:1], strict=True):
        path.write_bytes(content)
    assert len(paths) > 1
    assert run() == said
    assert [path.read_bytes() for path in paths] == contents


def test_an_empty_folder_in_a_files_place_is_removed(folder: Path) -> None:
    assert cache.write(KEY, CODE)
    entry(folder).unlink()
    entry(folder).mkdir()
    assert cache.read(KEY) is None and not entry(folder).exists()
    assert cache.write(KEY, CODE) and cache.read(KEY) == CODE
