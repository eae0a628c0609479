"""Datasets, samplers and loaders beside PyTorch's: order, content, errors, the random stream."""

from __future__ import annotations

import random
import warnings
from collections import OrderedDict, UserDict, UserList, namedtuple
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
import torch

import flambeau
from tests.random_seeds import generator

BOTH = (torch, flambeau)
Pair = namedtuple("Pair", "left right")


def plain(value: Any) -> Any:
    """Batches of either library as what can be compared: types, dtypes, shapes, values."""
    if isinstance(value, (torch.Tensor, flambeau.Tensor)):
        return "tensor", str(value.dtype), tuple(value.shape), value.tolist()
    if isinstance(value, np.ndarray):
        return "array", value.dtype, value.tolist()
    if isinstance(value, (dict, UserDict, MappingProxyType)):
        return type(value), {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, UserList)):
        return type(value), [plain(item) for item in value]
    return value


def dataset_of(lib: Any, kind: str, count: int) -> Any:
    """`count` samples of some kind, the same for both libraries."""
    data = lib.utils.data
    numbers = lib.arange(count)
    table = lib.arange(count * 3.0).reshape(count, 3)
    if kind == "tensors":
        return data.TensorDataset(table, numbers)
    if kind == "numbers":
        return [(k, k / 2, str(k)) for k in range(count)]
    if kind == "dicts":
        return [{"x": table[k], "y": np.float32(k)} for k in range(count)]
    if kind == "stack":
        return data.StackDataset(data.TensorDataset(table), list(range(count)))
    if kind == "named stack":
        return data.StackDataset(a=data.TensorDataset(table, numbers), b=list(range(count)))
    if kind == "subset":
        return data.Subset(data.TensorDataset(table, numbers), list(range(count - 1, -1, -1)))
    if kind == "concat":
        return data.TensorDataset(table, numbers) + data.TensorDataset(table * 2, numbers)
    raise ValueError(kind)


KINDS = ("tensors", "numbers", "dicts", "stack", "named stack", "subset", "concat")


def options(rng: random.Random, count: int) -> dict[str, Any]:
    """A random configuration; `sampler` is the name and arguments of one."""
    found: dict[str, Any] = {"batch_size": rng.choice([1, 2, 5, 7, count, None])}
    if found["batch_size"] is not None:
        found["drop_last"] = rng.random() < 0.4
    way = rng.choice(["plain", "shuffle", "random", "weighted", "subset", "distributed", "batch"])
    if way == "shuffle":
        found["shuffle"] = True
    elif way == "random":
        size = rng.choice([None, 3, 40, 2 * count + 1])
        found["sampler"] = ("RandomSampler", rng.random() < 0.5, size)
    elif way != "plain":
        found["sampler"] = (way,)
    if rng.random() < 0.4:
        found["generator"] = rng.randrange(1000)
    return found


def sampler_of(lib: Any, wanted: Any, source: Any, generator: Any) -> Any:
    data = lib.utils.data
    count = len(source)
    if wanted[0] == "RandomSampler":
        return data.RandomSampler(source, wanted[1], wanted[2], generator)
    if wanted[0] == "weighted":
        return data.WeightedRandomSampler([1.0 + k for k in range(count)], count, True, generator)
    if wanted[0] == "subset":
        return data.SubsetRandomSampler(range(0, count, 2), generator)
    if wanted[0] == "distributed":
        sampler = data.DistributedSampler(source, 3, 1)
        sampler.set_epoch(2)
        return sampler
    return data.SequentialSampler(source)


def epochs(lib: Any, kind: str, count: int, wanted: dict[str, Any], seed: int) -> Any:
    """Two passes over a loader, and what the random stream gives next."""
    lib.manual_seed(seed)
    source = dataset_of(lib, kind, count)
    given = dict(wanted)
    if "generator" in given:
        given["generator"] = lib.Generator().manual_seed(given["generator"])
    if "sampler" in given:
        name = given.pop("sampler")
        sampler = sampler_of(lib, name, source, given.get("generator"))
        if name == ("batch",) and given.pop("batch_size") is not None:
            drop = given.pop("drop_last")
            given["batch_sampler"] = lib.utils.data.BatchSampler(sampler, 4, drop)
        else:
            given["sampler"] = sampler
            if name == ("batch",):
                given["batch_size"] = None
    loader = lib.utils.data.DataLoader(source, **given)
    passes = [[plain(batch) for batch in loader] for _ in range(2)]
    return len(loader), passes, lib.rand(3).tolist()


@pytest.mark.parametrize("seed", range(200))
def test_random_configurations(seed: int) -> None:
    rng = generator(seed)
    kind, count = rng.choice(KINDS), rng.choice([1, 2, 9, 20])
    wanted = options(rng, count)
    theirs, ours = (epochs(lib, kind, count, wanted, seed) for lib in BOTH)
    assert ours == theirs, (kind, count, wanted)


# ---- splitting and joining


@pytest.mark.parametrize("lengths", [(3, 5, 2), (0.5, 0.3, 0.2), (1.0,), (0.33, 0.67), (10, 0)])
def test_random_split(lengths: Any) -> None:
    found = []
    for lib in BOTH:
        lib.manual_seed(3)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            parts = lib.utils.data.random_split(range(10), lengths)
        found.append(([list(p.indices) for p in parts], [str(w.message) for w in seen]))
    assert found[0] == found[1]


def test_concatenated_indices() -> None:
    for lib in BOTH:
        joined = lib.utils.data.ConcatDataset([range(3), range(10, 14)])
        assert [joined[k] for k in range(-7, 7)] == [0, 1, 2, 10, 11, 12, 13] * 2
        assert joined.cumulative_sizes == [3, 7]


# ---- collating


def samples(lib: Any) -> list[Any]:
    """Lists of samples of all types that collating knows."""
    return [
        [lib.ones(2), lib.zeros(2)],
        [np.ones(2), np.zeros(2)],
        [np.float32(1), np.float32(2)],
        [np.bool_(True), np.bool_(False)],
        [1, 2],
        [True, False],
        [1.5, 2.5],
        ["a", "b"],
        [b"a", b"b"],
        [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}],
        [OrderedDict(a=1), OrderedDict(a=2)],
        [UserDict(a=1), UserDict(a=2)],
        [MappingProxyType({"a": 1}), MappingProxyType({"a": 2})],
        [(1, 2.0), (3, 4.0)],
        [[1, lib.ones(1)], [2, lib.zeros(1)]],
        [UserList([1, 2]), UserList([3, 4])],
        [Pair(1, "a"), Pair(2, "b")],
        [range(2), range(2)],
        [(1, {"a": [np.arange(2), 3]}), (2, {"a": [np.arange(2), 4]})],
    ]


@pytest.mark.parametrize("place", range(19))
def test_collate_and_convert(place: int) -> None:
    data = [(lib.utils.data, samples(lib)[place]) for lib in BOTH]
    theirs, ours = (plain(lib.default_collate(batch)) for lib, batch in data)
    assert ours == theirs
    theirs, ours = (plain(lib.default_convert(batch)) for lib, batch in data)
    assert ours == theirs
    theirs, ours = (plain(lib.default_convert(batch[0])) for lib, batch in data)
    assert ours == theirs


@pytest.mark.parametrize(
    "batch", [[object()], [None], [np.array(["a"])], [np.array([None])], [[1, 2], [3]], [{1}]]
)
def test_what_cannot_be_collated(batch: Any) -> None:
    with pytest.raises((TypeError, RuntimeError)) as theirs:
        torch.utils.data.default_collate(batch)
    with pytest.raises(theirs.type) as ours:
        flambeau.utils.data.default_collate(batch)
    assert str(ours.value) == str(theirs.value)


# ---- errors


class Stream:
    """Makes an iterable dataset of each library."""

    def __init__(self, count: int, told: int) -> None:
        self.count, self.told = count, told

    def of(self, lib: Any) -> Any:
        stream = self

        class Numbers(lib.utils.data.IterableDataset):  # type: ignore[misc,name-defined]
            def __iter__(self) -> Any:
                return iter(range(stream.count))

            def __len__(self) -> int:
                return stream.told

            def __repr__(self) -> str:
                return "numbers"

        return Numbers()


def outcome(function: Any) -> Any:
    """What a call gives, warnings included, or its error."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            result = function()
        except Exception as error:
            result = type(error), str(error)
    return result, [(w.category, str(w.message)) for w in seen]


WRONG: list[dict[str, Any]] = [
    {"num_workers": -1},
    {"timeout": -1},
    {"prefetch_factor": 2},
    {"num_workers": 1, "prefetch_factor": -1},
    {"persistent_workers": True},
    {"batch_size": 0},
    {"batch_size": True},
    {"batch_size": 2.0},
    {"drop_last": 1},
    {"shuffle": True, "sampler": [1]},
    {"batch_sampler": [[1]], "batch_size": 3},
    {"batch_sampler": [[1]], "shuffle": True},
    {"batch_size": None, "drop_last": True},
    {"multiprocessing_context": "fork"},
    {"num_workers": 1, "multiprocessing_context": "spoon"},
    {"num_workers": 1, "multiprocessing_context": 3},
    {"num_workers": 100},
    {"pin_memory": True},
    {"pin_memory": True, "pin_memory_device": "cuda"},
    {"pin_memory_device": "cuda"},
]


@pytest.mark.parametrize("given", WRONG, ids=str)
def test_wrong_options(given: dict[str, Any]) -> None:
    def loaded(lib: Any) -> Any:
        loader = lib.utils.data.DataLoader(list(range(4)), **given)
        return None if loader.num_workers else [plain(batch) for batch in loader]

    theirs, ours = (outcome(lambda lib=lib: loaded(lib)) for lib in BOTH)
    assert ours == theirs


@pytest.mark.parametrize(
    "given", [{"shuffle": True}, {"sampler": [1]}, {"batch_sampler": [[1]]}], ids=str
)
def test_wrong_options_of_iterable_datasets(given: dict[str, Any]) -> None:
    stream = Stream(3, 3)
    theirs, ours = (
        outcome(lambda lib=lib: lib.utils.data.DataLoader(stream.of(lib), **given)) for lib in BOTH
    )
    assert ours == theirs


@pytest.mark.parametrize("told", [3, 7])
@pytest.mark.parametrize("batch_size", [None, 2, 3])
@pytest.mark.parametrize("drop_last", [False, True])
def test_iterable_datasets(told: int, batch_size: int | None, drop_last: bool) -> None:
    stream = Stream(7, told)

    def loaded(lib: Any) -> Any:
        loader = lib.utils.data.DataLoader(
            stream.of(lib), batch_size, drop_last=drop_last and batch_size is not None
        )
        return len(loader), [plain(batch) for batch in loader]

    theirs, ours = (outcome(lambda lib=lib: loaded(lib)) for lib in BOTH)
    assert ours == theirs


def wrong_calls(lib: Any) -> list[Any]:
    """Calls that raise, of everything but loaders."""
    data = lib.utils.data
    pair = data.TensorDataset(lib.ones(2))
    return [
        lambda: data.RandomSampler(range(3), replacement=1),
        lambda: data.RandomSampler(range(3), num_samples=0),
        lambda: data.RandomSampler([]),
        lambda: data.WeightedRandomSampler([1.0], 0),
        lambda: data.WeightedRandomSampler([1.0], True),
        lambda: data.WeightedRandomSampler([1.0], 1, 1),
        lambda: data.WeightedRandomSampler([[1.0]], 1),
        lambda: data.TensorDataset(lib.ones(2), lib.ones(3)),
        lambda: data.StackDataset(),
        lambda: data.StackDataset(pair, a=pair),
        lambda: data.StackDataset(pair, range(3)),
        lambda: data.ConcatDataset([]),
        lambda: data.ConcatDataset([pair])[-3],
        lambda: data.ConcatDataset([Stream(1, 1).of(lib)]),
        lambda: list(data.ChainDataset([pair])),
        lambda: data.random_split(range(3), [1, 1]),
        lambda: data.random_split(range(3), [1.5, -0.5]),
        lambda: data.Dataset()[0],
        lambda: data.DistributedSampler(range(3), 2, 2),
        lambda: list(data.DataLoader(pair, sampler=[5])),
        lambda: data.DataLoader(pair).__setattr__("batch_size", 3),
        lambda: len(data.DataLoader(iter([]), batch_size=2)),
    ]


@pytest.mark.parametrize("place", range(22))
def test_errors(place: int) -> None:
    theirs, ours = (outcome(wrong_calls(lib)[place]) for lib in BOTH)
    assert isinstance(theirs[0][0], type)
    assert ours == theirs


class Restarting:
    """Batches of indices that begin anew with every `iter`, as Lightning's wrapper does."""

    def __init__(self) -> None:
        self.started = self.next = 0

    def __iter__(self) -> Restarting:
        self.started += 1
        self.next = 0
        return self

    def __next__(self) -> list[int]:
        if self.next == 6:
            raise StopIteration
        self.next += 2
        return [self.next - 2, self.next - 1]

    def __len__(self) -> int:
        return 3


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("lib", BOTH, ids=["torch", "flambeau"])
def test_a_batch_sampler_is_started_once(lib: Any, workers: int) -> None:
    sampler = Restarting()
    loader = lib.utils.data.DataLoader(range(6), batch_sampler=sampler, num_workers=workers)
    for passes in (1, 2):
        assert [batch.tolist() for batch in loader] == [[0, 1], [2, 3], [4, 5]]
        assert workers or sampler.started == passes  # both look at it twice to send work ahead


def test_a_pass_that_goes_on_starts_its_batch_sampler_once() -> None:
    def loader() -> Any:
        return flambeau.utils.data.DataLoader(range(6), batch_sampler=Restarting())

    first = loader()
    batches = iter(first)
    next(batches)
    rest = loader()
    rest.load_state_dict(first.state_dict())
    assert [batch.tolist() for batch in rest] == [[2, 3], [4, 5]]
    assert rest.batch_sampler.started == 1
