"""Data pipes beside PyTorch's: what they give, in which order, their warnings and errors."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.utils.data.datapipes  # noqa: F401
import torch.utils.data.graph_settings  # noqa: F401

import flambeau

TEN = list(range(10))
WORDS = ["a.x", "b.x", "a.y", "c.x", "b.y"]


def first(word: str) -> str:
    return word[0]


def odd(number: int) -> bool:
    return number % 2 == 1


def parity(number: int) -> int:
    return number % 2


def tenfold(number: int) -> int:
    return number * 10


def total(a: int, b: int) -> int:
    return a + b


def two_readers(pipe: Any) -> Any:
    earlier, later = iter(pipe), iter(pipe)
    return next(later), next(earlier)


def after(pipe: Any, *told: Any) -> list[Any]:
    getattr(pipe, told[0])(*told[1:])
    return [list(pipe), len(pipe)]


# name -> of the library's `torch.utils.data`, IterableWrapper and SequenceWrapper
PIPES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "text": lambda d, w, s: (repr(w(TEN)), str(w(TEN).map(int).batch(3))),
    "length": lambda d, w, s: len(w(TEN)),
    "no length": lambda d, w, s: len(w(iter(TEN))),
    "generator": lambda d, w, s: list(w(x for x in TEN)),
    "two readers": lambda d, w, s: two_readers(w(TEN)),
    "two readers of a step": lambda d, w, s: two_readers(w(TEN).map(tenfold, input_col=None)),
    "no such step": lambda d, w, s: w(TEN).nothing(),
    "batch": lambda d, w, s: list(w(TEN).batch(3)),
    "whole batches": lambda d, w, s: list(w(TEN).batch(3, drop_last=True)),
    "lengths of batches": lambda d, w, s: (len(w(TEN).batch(3)), len(w(TEN).batch(3, True))),
    "batch 0": lambda d, w, s: w(TEN).batch(0),
    "chunk": lambda d, w, s: (str(d.DataChunk([1, 2])), d.DataChunk([1]).as_str(">")),
    "unbatch": lambda d, w, s: list(w([[1, 2], [[3, 4]]]).unbatch()),
    "unbatch 2": lambda d, w, s: list(w([[[1, 2]], [[3, 4]]]).unbatch(2)),
    "unbatch all": lambda d, w, s: list(w([[[1, 2]], [[3], 4]]).unbatch(-1)),
    "unbatch too deep": lambda d, w, s: list(w([1, 2]).unbatch(1)),
    "unbatch -2": lambda d, w, s: list(w([[1, 2]]).unbatch(-2)),
    "map": lambda d, w, s: list(w(TEN).map(tenfold)),
    "map a column": lambda d, w, s: list(w([(1, 2), (3, 4)]).map(tenfold, input_col=0)),
    "map columns": lambda d, w, s: list(
        w([(1, 2), (3, 4)]).map(total, input_col=[0, 1], output_col=1)
    ),
    "map columns into the first": lambda d, w, s: list(w([(1, 2, 3)]).map(total, input_col=[0, 2])),
    "map, appended": lambda d, w, s: list(w([(1, 2)]).map(tenfold, input_col=0, output_col=-1)),
    "map of a dict": lambda d, w, s: list(
        w([{"a": 1}]).map(tenfold, input_col="a", output_col="b")
    ),
    "output without input": lambda d, w, s: w(TEN).map(int, output_col=1),
    "two outputs": lambda d, w, s: w(TEN).map(int, input_col=1, output_col=[1, 2]),
    "too few columns": lambda d, w, s: w(TEN).map(total),
    "too many columns": lambda d, w, s: w(TEN).map(tenfold, input_col=[0, 1]),
    "local function": lambda d, w, s: str(w(TEN).map(lambda x: x)),
    "error in a step": lambda d, w, s: list(w(["x"]).map(int)),
    "filter": lambda d, w, s: list(w(TEN).filter(odd)),
    "filter by a column": lambda d, w, s: list(w([(1, 2), (2, 4)]).filter(odd, input_col=0)),
    "filter by no bool": lambda d, w, s: list(w(TEN).filter(tenfold)),
    "length of a filter": lambda d, w, s: len(w(TEN).filter(odd)),
    "concat": lambda d, w, s: list(w(TEN).concat(w([1, 2]))),
    "length of concat": lambda d, w, s: len(w(TEN).concat(w([1, 2]))),
    "concat of nothing": lambda d, w, s: d.datapipes.iter.Concater(),
    "concat of lists": lambda d, w, s: d.datapipes.iter.Concater(w(TEN), [1]),
    "zip": lambda d, w, s: list(w(TEN).zip(w([1, 2]))),
    "zip of lists": lambda d, w, s: d.datapipes.iter.Zipper([1]),
    "mux": lambda d, w, s: list(w(TEN).mux(w([10, 20]), w([100, 200, 300]))),
    "length of mux": lambda d, w, s: len(w(TEN).mux(w([10, 20]))),
    "fork": lambda d, w, s: [list(one) for one in w(TEN).fork(2)],
    "fork 1": lambda d, w, s: str(w(TEN).fork(1)),
    "fork 0": lambda d, w, s: w(TEN).fork(0),
    "fork, little room": lambda d, w, s: [list(one) for one in w(TEN).fork(2, buffer_size=3)],
    "fork, side by side": lambda d, w, s: list(zip(*w(TEN).fork(2, buffer_size=1), strict=True)),
    "fork, any room": lambda d, w, s: [list(one) for one in w(TEN).fork(3, buffer_size=-1)],
    "fork of copies": lambda d, w, s: [list(one) for one in w([[1], [2]]).fork(2, copy="deep")],
    "fork, unknown copies": lambda d, w, s: w(TEN).fork(2, copy="x"),
    "fork, read again": lambda d, w, s: two_readers(w(TEN).fork(2)[0]),
    "demux": lambda d, w, s: [list(one) for one in w(TEN).demux(2, parity)],
    "demux to nobody": lambda d, w, s: [list(one) for one in w(TEN).demux(2, tenfold)],
    "demux, little room": lambda d, w, s: [
        list(one) for one in w(TEN).demux(2, parity, buffer_size=2)
    ],
    "demux 0": lambda d, w, s: w(TEN).demux(0, parity),
    "length of demux": lambda d, w, s: len(w(TEN).demux(2, parity)[0]),
    "shuffle": lambda d, w, s: list(w(TEN).shuffle()),
    "shuffle, little room": lambda d, w, s: list(w(TEN).shuffle(buffer_size=3)),
    "shuffle by a seed": lambda d, w, s: list(w(TEN).shuffle().set_seed(5)),
    "shuffle twice": lambda d, w, s: [list(p) for p in [w(TEN).shuffle().set_seed(5)] * 2],
    "shuffle off": lambda d, w, s: list(w(TEN).shuffle().set_shuffle(False)),
    "shuffle without room": lambda d, w, s: w(TEN).shuffle(buffer_size=0),
    "shuffle what is in lists": lambda d, w, s: list(
        w([[1, 2], [3, 4]]).shuffle(unbatch_level=1).set_seed(1)
    ),
    "sampler": lambda d, w, s: list(d.datapipes.iter.Sampler(w(TEN))),
    "groupby": lambda d, w, s: list(w(WORDS).groupby(first)),
    "groupby with keys": lambda d, w, s: list(w(WORDS).groupby(first, keep_key=True)),
    "groups of 2": lambda d, w, s: list(w(WORDS).groupby(first, group_size=2)),
    "groups, little room": lambda d, w, s: list(w(WORDS).groupby(first, buffer_size=2)),
    "groups of at least 2": lambda d, w, s: list(
        w(WORDS).groupby(first, buffer_size=3, group_size=3, guaranteed_group_size=2)
    ),
    "groups, small ones dropped": lambda d, w, s: list(
        w(["a", "b", "c", "a", "b"]).groupby(
            first, buffer_size=3, group_size=3, guaranteed_group_size=2, drop_remaining=True
        )
    ),
    "groups, small ones held": lambda d, w, s: list(
        w(["a", "b", "c"]).groupby(first, buffer_size=3, group_size=2)
    ),
    "groups larger than the room": lambda d, w, s: w(TEN).groupby(
        first, group_size=200, buffer_size=10
    ),
    "groups without a size": lambda d, w, s: w(TEN).groupby(first, guaranteed_group_size=2),
    "sharding": lambda d, w, s: after(w(TEN).sharding_filter(), "apply_sharding", 3, 1),
    "sharding, no such reader": lambda d, w, s: w(TEN).sharding_filter().apply_sharding(3, 3),
    "sharding by settings": lambda d, w, s: list(
        d.graph_settings.apply_sharding(w(TEN).sharding_filter().map(tenfold), 2, 1)
    ),
    "sharding twice": lambda d, w, s: d.graph_settings.apply_sharding(
        w(TEN).sharding_filter().sharding_filter(), 2, 1
    ),
    "shuffling on": lambda d, w, s: str(
        d.graph_settings.apply_shuffle_settings(w(TEN).map(int), shuffle=True)
    ),
    "shuffling off": lambda d, w, s: list(
        d.graph_settings.apply_shuffle_settings(w(TEN).shuffle(), shuffle=False)
    ),
    "graph": lambda d, w, s: [
        (str(pipe), [str(one) for one, _ in below.values()])
        for pipe, below in d.graph.traverse_dps(w(TEN).zip(w([1]).batch(2))).values()
    ],
    "graph of a number": lambda d, w, s: d.graph.traverse_dps(3),
    "collate": lambda d, w, s: [one.tolist() for one in w(TEN).batch(5).collate()],
    "collate by a function": lambda d, w, s: list(w(TEN).collate(tenfold)),
    "loader": lambda d, w, s: [
        one.tolist() for one in d.DataLoader(w(TEN).shuffle(), batch_size=4)
    ],
    "loader that shuffles": lambda d, w, s: [
        one.tolist() for one in d.DataLoader(w(TEN).shuffle(), batch_size=4, shuffle=True)
    ],
    "loader that does not": lambda d, w, s: [
        one.tolist() for one in d.DataLoader(w(TEN).shuffle(), batch_size=4, shuffle=False)
    ],
    "by key": lambda d, w, s: (s(TEN)[3], len(s(TEN)), list(s(TEN)), s({"a": 1})["a"]),
    "by key, text": lambda d, w, s: (str(s(TEN).map(tenfold)), repr(s(TEN))),
    "by key, map": lambda d, w, s: list(s(TEN).map(tenfold)),
    "by key, batch": lambda d, w, s: (list(s(TEN).batch(3)), list(s(TEN).batch(3, True))),
    "by key, no such batch": lambda d, w, s: s(TEN).batch(3)[4],
    "by key, concat": lambda d, w, s: list(s(TEN).concat(s([1]))),
    "by key, no such item": lambda d, w, s: s(TEN).concat(s([1]))[11],
    "by key, zip": lambda d, w, s: list(s(TEN).zip(s([1, 2]))),
    "by key, no such pair": lambda d, w, s: s(TEN).zip(s([1, 2]))[2],
    "by key, shuffle": lambda d, w, s: list(s(TEN).shuffle().set_seed(4)),
    "by key, shuffle keys": lambda d, w, s: list(
        s({"a": 1, "b": 2, "c": 3}).shuffle(indices=["a", "b", "c"]).set_seed(1)
    ),
}


def outcome(library: Any, run: Callable[[Any, Any, Any], Any]) -> Any:
    """What a program gives and which warnings; the class and words of its error."""
    data = library.utils.data
    library.manual_seed(7)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = run(
                data, data.datapipes.iter.IterableWrapper, data.datapipes.map.SequenceWrapper
            )
        except Exception as error:
            found = [type(error).__name__, *map(str, error.args)]
    told = [(one.category.__name__, str(one.message)) for one in caught]
    return re.sub(r"\bflambeau\.", "torch.", repr(found)), told


@pytest.mark.parametrize("name", PIPES)
def test_pipes(name: str) -> None:
    assert outcome(flambeau, PIPES[name]) == outcome(torch, PIPES[name])


@pytest.fixture
def folder(tmp_path: Path) -> str:
    (tmp_path / "below").mkdir()
    for name, text in (("a.txt", "hello"), ("b.json", '{"k": 1}'), ("below/c.txt", "deep")):
        (tmp_path / name).write_text(text)
    return str(tmp_path)


FILES: dict[str, Callable[[Any, str], Any]] = {
    "list": lambda d, f: list(d.iter.FileLister(f)),
    "list all": lambda d, f: list(d.iter.FileLister(f, recursive=True)),
    "list by pattern": lambda d, f: list(d.iter.FileLister(f, masks="*.txt", recursive=True)),
    "list several": lambda d, f: list(d.iter.FileLister([f, f"{f}/below"], masks=["*.json", "c*"])),
    "list named folders": lambda d, f: list(d.iter.IterableWrapper([f]).list_files()),
    "length": lambda d, f: len(d.iter.FileLister(f, length=7)),
    "no length": lambda d, f: len(d.iter.FileLister(f)),
    "open": lambda d, f: [(name, file.read()) for name, file in d.iter.FileLister(f).open_files()],
    "open as bytes": lambda d, f: [
        file.read() for _, file in d.iter.FileLister(f).open_files(mode="rb")
    ],
    "open as nothing": lambda d, f: d.iter.FileOpener([f], mode="zz"),
    "bytes in an encoding": lambda d, f: d.iter.FileOpener([f], mode="rb", encoding="utf8"),
    "read": lambda d, f: list(d.iter.FileLister(f).open_files(mode="rb").read_from_stream()),
    "read by 2": lambda d, f: list(
        d.iter.FileLister(f).open_files(mode="rb").read_from_stream(chunk=2)
    ),
    "decode": lambda d, f: list(d.iter.FileLister(f).open_files(mode="rb").routed_decode()),
}


@pytest.mark.parametrize("name", FILES)
def test_files(name: str, folder: str) -> None:
    found, expected = (
        outcome(library, lambda d, w, s: FILES[name](d.datapipes, folder))
        for library in (flambeau, torch)
    )
    assert found == expected
