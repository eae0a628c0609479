"""Data pipes: passes, copies, workers, and what one's own classes are asked."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import flambeau as torch
from flambeau.utils.data import DataLoader, IterDataPipe
from flambeau.utils.data.datapipes.iter import FileLister, IterableWrapper, Sampler
from flambeau.utils.data.datapipes.map import SequenceWrapper
from flambeau.utils.data.datapipes.utils.decoder import Decoder, basichandlers, handle_extension

TEN = list(range(10))


def odd(number: int) -> bool:
    return number % 2 == 1


class Counting(IterDataPipe):
    """An iterator of its own, told when a pass begins."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.passes = 0

    def reset(self) -> None:
        self.passes += 1

    def __iter__(self) -> Any:
        self.at = 0
        return self

    def __next__(self) -> int:
        if self.at == self.count:
            raise StopIteration
        self.at += 1
        return self.at


def test_a_class_may_be_its_own_iterator() -> None:
    pipe = Counting(3)
    assert (list(pipe), list(pipe), pipe.passes) == ([1, 2, 3], [1, 2, 3], 2)
    assert list(pipe.batch(2)) == [[1, 2], [3]]


def test_methods_of_ones_own() -> None:
    @torch.utils.data.functional_datapipe("thrice_for_a_test")
    class Thrice(IterDataPipe):
        def __init__(self, source: Any) -> None:
            self.source = source

        def __iter__(self) -> Iterator[Any]:
            for item in self.source:
                yield from (item, item, item)

    try:
        assert list(IterableWrapper([1, 2]).thrice_for_a_test()) == [1, 1, 1, 2, 2, 2]
        assert "thrice_for_a_test" in dir(IterableWrapper([1]))
        with pytest.raises(Exception, match="already taken"):
            torch.utils.data.functional_datapipe("thrice_for_a_test")(Thrice)
    finally:
        del IterDataPipe.functions["thrice_for_a_test"]
    with pytest.raises(TypeError, match="can only decorate"):
        torch.utils.data.functional_datapipe("x")(int)


def test_copies_begin_from_the_start() -> None:
    pipe = IterableWrapper(TEN).filter(odd).batch(2)
    assert next(iter(pipe)) == [1, 3]
    for twin in (copy.deepcopy(pipe), pickle.loads(pickle.dumps(pipe))):
        assert list(twin) == [[1, 3], [5, 7], [9]]


def test_a_copy_of_the_items_is_read_unless_told_otherwise() -> None:
    items = [[1], [2]]
    for deep, expected in ((True, [[1], [2]]), (False, [[1, 0], [2, 0]])):
        for item in IterableWrapper(items, deepcopy=deep):
            item.append(0)
        assert items == expected


@pytest.mark.parametrize("kind", ["process", "thread"])
def test_workers_share_a_pipe(kind: str) -> None:
    pipe = IterableWrapper(TEN).shuffle().sharding_filter()
    loader: Any = DataLoader(pipe, batch_size=None, num_workers=2)
    loader.worker_type = kind
    for _ in range(2):
        assert sorted(int(x) for x in loader) == TEN


def test_workers_that_stay_shuffle_alike() -> None:
    pipe = IterableWrapper(list(range(40))).shuffle().sharding_filter()
    loader = DataLoader(pipe, batch_size=None, num_workers=2, persistent_workers=True)
    passes = [[int(x) for x in loader] for _ in range(3)]
    assert all(sorted(one) == list(range(40)) for one in passes)
    assert passes[0] != passes[1] != passes[2]


def test_loaders_shuffle_pipes_that_can_and_others_with_a_warning() -> None:
    def passed(**words: Any) -> list[int]:
        torch.manual_seed(1)
        return [
            int(x) for x in DataLoader(IterableWrapper(TEN).shuffle(), batch_size=None, **words)
        ]

    assert passed(shuffle=False) == TEN
    assert passed() == passed(shuffle=True) != TEN
    with pytest.warns(UserWarning, match="does not contain a `Shuffler`"):
        loader = DataLoader(IterableWrapper(TEN), batch_size=None, shuffle=True)
    assert sorted(int(x) for x in loader) == TEN


def test_samplers_over_pipes() -> None:
    assert list(Sampler(IterableWrapper("abc"))) == [0, 1, 2]


def test_pipes_with_keys_go_into_loaders() -> None:
    pipe = SequenceWrapper(TEN).map(str)
    assert list(DataLoader(pipe, batch_size=4))[2] == ["8", "9"]


def test_a_folder_that_is_not_there() -> None:
    with (
        pytest.warns(UserWarning, match="/nowhere : No such file"),
        pytest.raises(FileNotFoundError, match="No such file"),
    ):
        list(FileLister("/nowhere"))


def test_decoders(tmp_path: Path) -> None:
    assert basichandlers("txt", b"words") == "words"
    assert basichandlers("cls", b"7") == 7
    assert basichandlers("json", b"[1, 2]") == [1, 2]
    assert basichandlers("pickle", pickle.dumps({"a": 1})) == {"a": 1}
    assert basichandlers("bin", b"x") is None
    file = tmp_path / "x.pt"
    torch.save(torch.arange(3), file)
    assert basichandlers("pt", file.read_bytes()).tolist() == [0, 1, 2]
    decoder = Decoder(handle_extension("jpg png", len), basichandlers)
    assert decoder(("a/b.PNG".lower(), b"1234")) == ("a/b.png", 4)
    assert decoder(("a/b.bin", b"1234")) == ("a/b.bin", b"1234")
    decoder.add_handler(lambda extension, data: "first")
    assert decoder(("b.txt", b"1")) == ("b.txt", "first")


def test_order_that_is_not_always_the_same() -> None:
    @torch.utils.data.non_deterministic(lambda wild: wild)
    class Wild(IterDataPipe):
        def __init__(self, wild: bool) -> None:
            self.wild = wild

        def __iter__(self) -> Iterator[int]:
            yield 1

    with torch.utils.data.guaranteed_datapipes_determinism():
        assert list(Wild(False)) == [1]
        with pytest.raises(TypeError, match="Wild is non-deterministic"):
            Wild(True)
    assert list(Wild(True)) == [1]
