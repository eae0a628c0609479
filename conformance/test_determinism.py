"""`use_deterministic_algorithms`: what is filled, what raises or warns, what is refused."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch as reference

import flambeau
from conformance.side_by_side import attempt, compare

DTYPES = (
    "float32 float64 float16 bfloat16 complex64 complex128 uint8 int8 int16 int32 int64 bool"
).split()


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    for t in (reference, flambeau):
        t.use_deterministic_algorithms(False)
        t.utils.deterministic.fill_uninitialized_memory = True


def shown(t: Any, x: Any) -> Any:
    """A copy that NumPy can hold."""
    return (x.float() if x.dtype is t.bfloat16 else x.clone()), x.stride()


def memory_without_content(t: Any) -> Any:
    t.use_deterministic_algorithms(True)
    found = []
    for name in DTYPES:
        dtype = getattr(t, name)
        one = t.ones(2, 3, dtype=dtype)
        found += [
            t.empty(2, 3, dtype=dtype), t.empty(4, out=t.zeros(1, dtype=dtype)),
            t.empty_like(one), t.empty_like(one.t()), one.new_empty(3), one.new(2),
            t.empty_strided((2, 3), (1, 5), dtype=dtype), one.new_empty_strided((2,), (3,)),
            t.empty_permuted((2, 3, 2), (1, 0, 2), dtype=dtype),
            t.empty(1, 2, 2, 2, dtype=dtype, memory_format=t.channels_last),
        ]  # fmt: skip
    return [shown(t, x) for x in found], t.Tensor(3), t.FloatTensor(2), t.empty(0)


def memory_that_grows(t: Any) -> Any:
    t.use_deterministic_algorithms(True)
    found = []
    for name in DTYPES:
        for size in ((2, 3), (4, 3), (1, 2), (5,), (3, 2, 2)):
            x = t.zeros(2, 3, dtype=getattr(t, name))
            found += [shown(t, x.resize_(size)), shown(t, x.resize_as_(t.ones(2, 7)))]
    return found


def parameters_without_content(t: Any) -> Any:
    """Layers whose memory nobody fills."""
    t.use_deterministic_algorithms(True)
    nn = t.nn

    class Bare(nn.Linear):
        def reset_parameters(self) -> None:
            pass

    skip = nn.utils.skip_init
    made = [Bare(2, 3), nn.Linear(2, 3).to_empty(device="cpu"), skip(nn.Linear, 2, 3),
            skip(nn.Embedding, 3, 2), skip(nn.Conv2d, 1, 2, 2)]  # fmt: skip
    return [[shown(t, p.detach()) for p in module.parameters()] for module in made]


def memory_that_is_left_alone(t: Any) -> Any:
    def filled() -> bool:
        # all of many, for memory may hold NaN by chance
        grown = [t.zeros(1).resize_(20) for _ in range(50)]
        return all(bool(x[1:].isnan().all()) for x in grown)

    found = [filled()]
    t.use_deterministic_algorithms(True)
    found.append(filled())
    t.utils.deterministic.fill_uninitialized_memory = False
    found += [filled(), t.utils.deterministic.fill_uninitialized_memory]
    t.utils.deterministic.fill_uninitialized_memory = True
    t.use_deterministic_algorithms(False)
    return [*found, filled(), t.utils.deterministic.fill_uninitialized_memory]


def calls_by_chance(t: Any) -> list[Callable[[], Any]]:
    x, index, values = t.zeros(5), t.tensor([0, 0]), t.ones(2)
    pooled = [
        getattr(t.nn.functional, f"max_pool{n}d")(t.arange(4.0**n).reshape(1, 1, *[4] * n), 2,
                                                 return_indices=True)
        for n in (1, 2, 3)
    ]  # fmt: skip
    return [
        lambda: x.put(index, values), lambda: x.put_(index, values),
        lambda: x.put_(index, values, accumulate=True),
        *[
            lambda n=n, p=p: getattr(t.nn.functional, f"max_unpool{n}d")(*p, 2)
            for n, p in zip((1, 2, 3), pooled, strict=True)
        ],
        lambda: x.index_put((index,), values, accumulate=True), lambda: x.scatter(0, index, values),
        lambda: x.index_add(0, index, values), lambda: t.bincount(index, values),
        lambda: x.cumsum(0), lambda: t.histc(x, 3), lambda: x.index_copy(0, index[:1], values[:1]),
    ]  # fmt: skip


def what_raises(t: Any) -> Any:
    t.use_deterministic_algorithms(True)
    return [attempt(call) for call in calls_by_chance(t)]


def what_warns(t: Any) -> Any:
    t.use_deterministic_algorithms(True, warn_only=True)
    found = []
    for call in calls_by_chance(t):
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            call()
        found.append([str(entry.message).split(" (Trig")[0] for entry in heard])
    return found


def settings(t: Any) -> Any:
    def told() -> Any:
        return (
            t.are_deterministic_algorithms_enabled(), t.get_deterministic_debug_mode(),
            t.is_deterministic_algorithms_warn_only_enabled(),
        )  # fmt: skip

    found = [told()]
    for mode in (0, 1, 2, "default", "warn", "error"):
        t.set_deterministic_debug_mode(mode)
        found.append(told())
    wrong = (
        lambda: t.use_deterministic_algorithms(1),
        lambda: t.use_deterministic_algorithms(False, warn_only=1),
        lambda: setattr(t.utils.deterministic, "fill_uninitialized_memory", 1),
    )
    return found, [attempt(call) for call in wrong]


SCENARIOS: list[Callable[[Any], Any]] = [
    memory_without_content, memory_that_grows, memory_that_is_left_alone,
    parameters_without_content, what_raises, what_warns,
    settings,
]  # fmt: skip


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_both_do_the_same(scenario: Callable[[Any], Any]) -> None:
    compare(scenario)
