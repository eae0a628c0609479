"""Loaders with worker processes beside PyTorch's: order, content, seeds, errors."""

from __future__ import annotations

import itertools
import random
import warnings
from typing import Any

import numpy as np
import pytest
import torch

import flambeau
from conformance.test_data_loading import BOTH, KINDS, dataset_of, options, plain, sampler_of
from tests.random_seeds import generator

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*multi-threaded, use of fork:DeprecationWarning", "ignore:This DataLoader will create"
)


def seeded(lib: Any, worker: int) -> None:
    """A `worker_init_fn` that changes what follows."""
    lib.utils.data.get_worker_info().dataset.offset = 100 * worker


def observed_by(lib: Any, count: int) -> Any:
    """A map-style dataset that tells what it sees in its worker."""

    class Observed(lib.utils.data.Dataset):  # type: ignore[misc,name-defined]
        offset = 0

        def __len__(self) -> int:
            return count

        def __getitem__(self, index: int) -> Any:
            info = lib.utils.data.get_worker_info()
            return (
                index + self.offset, info.id, info.num_workers, info.seed,
                random.random(), np.random.rand(2), lib.rand(2),
            )  # fmt: skip

    return Observed()


def stream_of(lib: Any, sizes: list[int]) -> Any:
    """An iterable dataset of which worker k gives `sizes[k]` samples."""

    class Sizes(lib.utils.data.IterableDataset):  # type: ignore[misc,name-defined]
        offset = 0

        def __iter__(self) -> Any:
            info = lib.utils.data.get_worker_info()
            start = info.id * 1000 + self.offset
            for k in range(sizes[info.id % len(sizes)]):
                yield start + k, lib.rand(1), np.random.rand()

    return Sizes()


def workers_of(rng: random.Random) -> dict[str, Any]:
    return {
        "num_workers": rng.choice([1, 2, 2, 3]),
        "prefetch_factor": rng.choice([1, 2, 3]),
        "persistent_workers": rng.random() < 0.4,
        "multiprocessing_context": "fork",
        "in_order": rng.random() < 0.75,
    }


def passes_of(loader: Any, count: int) -> list[Any]:
    """`count` passes; without an order that is kept, as sorted batches."""
    found = [[plain(batch) for batch in loader] for _ in range(count)]
    return found if loader.in_order else [sorted(batches, key=repr) for batches in found]


def map_style(lib: Any, kind: str, count: int, wanted: dict[str, Any], seed: int) -> Any:
    lib.manual_seed(seed)
    source = dataset_of(lib, kind, count) if kind != "observed" else observed_by(lib, count)
    given = dict(wanted)
    if "generator" in given:
        given["generator"] = lib.Generator().manual_seed(given["generator"])
    if "sampler" in given:
        given["sampler"] = sampler_of(lib, given["sampler"], source, given.get("generator"))
    if given.pop("init", False):
        given["worker_init_fn"] = lambda worker: seeded(lib, worker)
    return passes_of(lib.utils.data.DataLoader(source, **given), 2), lib.rand(2).tolist()


@pytest.mark.parametrize("seed", range(140))
def test_random_map_style_configurations(seed: int) -> None:
    rng = generator(seed)
    kind, count = rng.choice([*KINDS, *["observed"] * 4]), rng.choice([1, 2, 9, 20])
    wanted = {**options(rng, count), **workers_of(rng)}
    if kind == "observed":
        wanted["init"] = rng.random() < 0.5
        wanted["in_order"] = True  # without, what a worker draws depends on its speed
    theirs, ours = (map_style(lib, kind, count, wanted, seed) for lib in BOTH)
    assert ours == theirs, (kind, count, wanted)


def iterable(lib: Any, sizes: list[int], wanted: dict[str, Any], seed: int) -> Any:
    lib.manual_seed(seed)
    given = dict(wanted)
    if given.pop("init"):
        given["worker_init_fn"] = lambda worker: seeded(lib, worker)
    return passes_of(lib.utils.data.DataLoader(stream_of(lib, sizes), **given), 2)


@pytest.mark.parametrize("seed", range(60))
def test_random_iterable_configurations(seed: int) -> None:
    rng = generator(seed)
    wanted = {**workers_of(rng), "batch_size": rng.choice([None, 1, 2, 5])}
    wanted["drop_last"] = wanted["batch_size"] is not None and rng.random() < 0.5
    wanted["init"] = rng.random() < 0.5
    sizes = [rng.choice([0, 1, 2, 5, 9, 14]) for _ in range(wanted["num_workers"])]
    theirs, ours = (iterable(lib, sizes, wanted, seed) for lib in BOTH)
    assert ours == theirs, (sizes, wanted)


# ---- errors


class TwoWords(Exception):
    """Can't be made from a message alone."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(first, second)


class WithMessage(Exception):
    """Has a `message`, like some libraries' exceptions."""

    message = "?"

    def __init__(self, message: str) -> None:
        super().__init__(message)


def raising(kind: type[BaseException]) -> Any:
    if kind is TwoWords:
        raise TwoWords("a", "b")
    raise kind("gone wrong")


def wrong_at(lib: Any, place: str, kind: type[BaseException]) -> Any:
    """A loader of which something raises."""
    data = lib.utils.data

    class Wrong(data.Dataset):  # type: ignore[misc,name-defined]
        def __len__(self) -> int:
            return 8

        def __getitem__(self, index: int) -> int:
            return raising(kind) if place == "sample" and index == 3 else index

    class WrongStream(data.IterableDataset):  # type: ignore[misc,name-defined]
        def __iter__(self) -> Any:
            if place == "start of iteration":
                raising(kind)
            return itertools.chain([1, 2, 3], (raising(kind) for _ in range(1)))

    def collate(samples: Any) -> Any:
        return raising(kind) if place == "collate" else samples

    def init(worker: int) -> None:
        if place == "init":
            raising(kind)

    source = WrongStream() if place in {"start of iteration", "iteration"} else Wrong()
    return data.DataLoader(source, 2, num_workers=2, multiprocessing_context="fork",
                           collate_fn=collate, worker_init_fn=init)  # fmt: skip


def until_error(loader: Any) -> Any:
    """The batches before an error, and the error: its type, and its lines but for the stack;
    StopIteration is none, but the end."""
    found: list[Any] = []
    try:
        found.extend(loader)  # a list keeps what came before an error
    except Exception as error:
        lines = str(error).splitlines()
        about = [line for line in lines if not line.startswith(("  ", "It was raised"))]
        return found, type(error), about
    return found, None, []


PLACES = ("sample", "start of iteration", "iteration", "collate", "init")


KINDS_OF_ERRORS = (KeyError, WithMessage, StopIteration)


@pytest.mark.parametrize(
    ("place", "kind"),
    [*itertools.product(PLACES, (ValueError, TwoWords)),
     *itertools.product(["sample"], KINDS_OF_ERRORS)],
)  # fmt: skip
def test_errors_in_workers(place: str, kind: type[BaseException]) -> None:
    theirs, ours = (until_error(wrong_at(lib, place, kind)) for lib in BOTH)
    assert ours == theirs


def test_iteration_goes_on_after_an_error() -> None:
    found = []
    for lib in BOTH:
        batches = iter(wrong_at(lib, "sample", ValueError))
        first = next(batches)
        with pytest.raises(ValueError, match="Caught ValueError in DataLoader worker process 1"):
            next(batches)
        found.append([first, *batches])
    assert found[0] == found[1] == [[0, 1], [4, 5], [6, 7]]


def test_texts_of_timeout_and_death() -> None:
    import os
    import time

    class Slow(list):  # type: ignore[type-arg]
        def __getitem__(self, index: Any) -> Any:
            time.sleep(20)

    class Leaving(list):  # type: ignore[type-arg]
        def __getitem__(self, index: Any) -> Any:
            os._exit(3)

    found = []
    for lib in BOTH:
        for source, given in ((Slow([1]), {"timeout": 0.2}), (Leaving([1]), {})):
            loader = lib.utils.data.DataLoader(
                source, num_workers=1, multiprocessing_context="fork", **given
            )
            with pytest.raises(RuntimeError) as caught:
                next(iter(loader))
            found.append(str(caught.value))
    assert found[0] == found[2] == "DataLoader timed out after 0.2 seconds"
    theirs, ours = found[1], found[3]
    assert "DataLoader worker (pid(s) " in theirs
    assert theirs.endswith("exited unexpectedly")
    assert ours.startswith("DataLoader worker (pid(s) ")
    assert "exited unexpectedly" in ours


def test_told_lengths_that_are_wrong() -> None:
    found = []
    for lib in BOTH:

        class Told(lib.utils.data.IterableDataset):  # type: ignore[misc,name-defined]
            def __iter__(self) -> Any:
                return iter([1.5] * 4)

            def __len__(self) -> int:
                return 3

            def __repr__(self) -> str:
                return "told"

        loader = lib.utils.data.DataLoader(
            Told(), None, num_workers=2, multiprocessing_context="fork"
        )
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            assert len(loader) == 3
            assert len(list(loader)) == 8
        found.append([str(w.message) for w in seen if "Length of" in str(w.message)])
    assert found[0] == found[1]
    assert len(found[0]) == 5


def test_flambeau_is_the_other_library() -> None:
    assert flambeau.utils.data.DataLoader is not torch.utils.data.DataLoader
