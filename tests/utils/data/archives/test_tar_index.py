"""Where samples lie: all kinds of tar files; side files that are new, old, wrong, impossible."""

from __future__ import annotations

import gzip
import io
import multiprocessing
import os
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flambeau.utils.data import TarDataset
from flambeau.utils.data.archives import tar_index
from flambeau.utils.data.archives.sources import SourceError, opened
from flambeau.utils.data.archives.tar_index import index_of, key_and_field
from tests.utils.data.archives.making import add, tar_of


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def read(path: Any) -> list[dict[str, bytes]]:
    return list(TarDataset(path, decode=False))


@pytest.mark.parametrize("format", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_formats(tmp_path: Path, format: int):  # noqa: A002
    members = [("a/1.x", b"one"), ("a/1.y", b""), ("a/2.x", b"z" * 513)]
    assert read(tar_of(tmp_path / "t.tar", members, format)) == [
        {"__key__": "a/1", "x": b"one", "y": b""},
        {"__key__": "a/2", "x": b"z" * 513},
    ]


@pytest.mark.parametrize("format", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_long_names_and_other_alphabets(tmp_path: Path, format: int):  # noqa: A002
    long = "d" * 90 + "/" + "n" * 150
    found = read(tar_of(tmp_path / "t.tar", [(f"{long}.x", b"1"), ("ключ.x", b"2")], format))
    assert [sample["__key__"] for sample in found] == [long, "ключ"]


def test_names_become_samples_and_fields():
    assert key_and_field("a/b.c/0001.seg.PNG") == ("a/b.c/0001", "seg.png")
    assert key_and_field("0001") == ("0001", "")


def test_directories_links_and_metadata_are_no_samples(tmp_path: Path):
    path = tmp_path / "t.tar"
    with tarfile.open(path, "w") as tar:
        for kind, name in ((tarfile.DIRTYPE, "a"), (tarfile.SYMTYPE, "a/l.x"),
                           (tarfile.LNKTYPE, "a/h.x"), (tarfile.FIFOTYPE, "a/f.x")):  # fmt: skip
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, "a/1.x"
            tar.addfile(member)
        add(tar, "__meta__", b"about")
        add(tar, "a/1.x", b"1")
        add(tar, "a/__note__", b"about")
        add(tar, "a/1.y", b"2")
    assert read(path) == [{"__key__": "a/1", "x": b"1", "y": b"2"}]


def test_an_empty_archive_has_no_samples(tmp_path: Path):
    assert read(tar_of(tmp_path / "t.tar", [])) == []


def test_one_key_in_two_places_is_two_samples(tmp_path: Path):
    path = tar_of(tmp_path / "t.tar", [("1.x", b"a"), ("2.x", b"b"), ("1.x", b"c")])
    assert [s["x"] for s in read(path)] == [b"a", b"b", b"c"]


# ---- side files


def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The archives whose headers are read."""
    names: list[str] = []
    before = tar_index._read

    def read_headers(source: Any) -> Any:
        names.append(source.name)
        return before(source)

    monkeypatch.setattr(tar_index, "_read", read_headers)
    return names


def test_headers_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    names = counted(monkeypatch)
    path = tar_of(tmp_path / "t.tar", [("1.x", b"a")])
    assert read(path) == read(path)
    assert names == [path]
    assert names_in(tmp_path) == ["t.tar", "t.tar.index.npz"]


def test_a_changed_archive_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    names = counted(monkeypatch)
    path = tar_of(tmp_path / "t.tar", [("1.x", b"a")])
    read(path)
    tar_of(tmp_path / "t.tar", [("1.x", b"b"), ("2.x", b"c")])
    assert [s["x"] for s in read(path)] == [b"b", b"c"]
    assert len(names) == 2


@pytest.mark.parametrize("damage", ["no zip file", "cut", "empty", "wrong arrays", "other kind"])
def test_a_wrong_side_file_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
):
    path = tar_of(tmp_path / "t.tar", [("1.x", b"a"), ("2.x", b"b")])
    read(path)
    side = tmp_path / "t.tar.index.npz"
    whole = side.read_bytes()
    with np.load(side) as file:
        arrays = dict(file)
    if damage == "wrong arrays":
        arrays["offsets"] = arrays["offsets"] + 100_000
        np.savez(side, **arrays)
    elif damage == "other kind":
        np.savez(side, **{**arrays, "kind": "tar index 0"})
    else:
        side.write_bytes({"no zip file": b"hello", "cut": whole[:-40], "empty": b""}[damage])
    names = counted(monkeypatch)
    assert [s["x"] for s in read(path)] == [b"a", b"b"]
    assert names == [path]
    assert [s["x"] for s in read(path)] == [b"a", b"b"]
    assert names == [path]


def test_where_nothing_can_be_written_the_index_is_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = tar_of(tmp_path / "t.tar", [("1.x", b"a")])

    def refuse(*args: Any) -> Any:
        raise PermissionError("read-only")  # chmod does not keep root from writing

    monkeypatch.setattr("tempfile.mkstemp", refuse)
    assert [s["x"] for s in read(path)] == [b"a"]
    assert names_in(tmp_path) == ["t.tar"]


def _index(path: str, start: Any, out: Any) -> None:
    start.wait(20)
    out.put(len(index_of(opened(path))))


def test_several_processes_at_once(tmp_path: Path):
    path = tar_of(tmp_path / "t.tar", [(f"{k}.x", b"a") for k in range(300)])
    context = multiprocessing.get_context("fork")
    start, out = context.Event(), context.Queue()
    processes = [context.Process(target=_index, args=(path, start, out)) for _ in range(4)]
    for process in processes:
        process.start()
    start.set()
    assert [out.get(timeout=20) for _ in processes] == [300] * 4
    for process in processes:
        process.join(20)
    assert names_in(tmp_path) == ["t.tar", "t.tar.index.npz"]
    assert len(read(path)) == 300


# ---- faults


def test_an_archive_that_is_cut_short(tmp_path: Path):
    path = tmp_path / "t.tar"
    tar_of(path, [("1.x", b"a" * 1000), ("2.x", b"b" * 5000)])
    os.truncate(path, 512 + 1024 + 512 + 2000)
    with pytest.raises(SourceError, match=r"t\.tar ends at byte 4048, in the middle of member "
                       r"'2\.x': 5000 bytes at offset 2048"):  # fmt: skip
        TarDataset(path)


@pytest.mark.parametrize("data", [b"hello, this is no archive" * 100, b"\1" * 512])
def test_what_is_no_archive(tmp_path: Path, data: bytes):
    (tmp_path / "t.tar").write_bytes(data)
    with pytest.raises(SourceError, match=r"t\.tar: no tar file, or a damaged one"):
        TarDataset(tmp_path / "t.tar")


def test_a_damaged_header_in_the_middle(tmp_path: Path):
    path = tmp_path / "t.tar"
    tar_of(path, [("1.x", b"a"), ("2.x", b"b"), ("3.x", b"c")])
    data = bytearray(path.read_bytes())
    data[1024:1100] = b"\xff" * 76
    path.write_bytes(data)
    with pytest.raises(SourceError, match=r"t\.tar: .*damaged"):
        TarDataset(path)


def test_a_compressed_archive_says_so(tmp_path: Path):
    path = tmp_path / "t.tar.gz"
    plain = Path(tar_of(tmp_path / "t.tar", [("1.x", b"a")])).read_bytes()
    path.write_bytes(gzip.compress(plain))
    with pytest.raises(SourceError, match="compressed with gzip.*unpack it"):
        TarDataset(path)


def test_a_missing_file_is_named(tmp_path: Path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.tar"):
        TarDataset(tmp_path / "nowhere.tar")


def test_a_sparse_member_is_named(tmp_path: Path):
    member = tarfile.TarInfo("1.x")
    member.type = tarfile.GNUTYPE_SPARSE
    out = io.BytesIO(member.tobuf(tarfile.GNU_FORMAT) + bytes(1024))
    (tmp_path / "t.tar").write_bytes(out.getvalue())
    with pytest.raises(SourceError, match="sparse"):
        TarDataset(tmp_path / "t.tar")
