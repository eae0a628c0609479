"""Calls that inline caches do again: the same bits, types, layouts and errors as the first time."""

from __future__ import annotations

import gc
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import flambeau as torch
from flambeau._compiler import language, native
from flambeau._core.settings import Warnings, warn_once
from flambeau._runtime import choice, launch, observed, observed_calls, warming
from tests.random_seeds import generator

pytest.importorskip("llvmlite")

if not warming.possible():
    pytest.skip("no inline caches with these settings", allow_module_level=True)

from flambeau._ops.table.pointwise_calls import loop_of
from flambeau._runtime.inline_cache import InlineCache
from flambeau._runtime.inline_cache_kernels import MISSES

F = torch.nn.functional
FLOATS = (torch.float32, torch.float64)
TYPES = (*FLOATS, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.uint8, torch.bool)


def warm(call: Callable[[], Any], times: int = warming.CALLS + 50) -> Any:
    """The result of a call that has been made often."""
    for _ in range(times):
        result = call()
    return result


def misses() -> int:
    """How often calls have not been found, in all caches."""
    return sum(int(cache.table[MISSES]) for cache in InlineCache.caches)


def is_found(call: Callable[[], Any]) -> bool:
    """Whether a warm call is done again by machine code."""
    warm(call)
    before = misses()
    for _ in range(10):
        call()
    return misses() == before


def same_bits(a: Any, b: Any) -> bool:
    """Whether results are equal to the last bit (nan is nan), and lie alike."""
    if isinstance(a, tuple):
        return all(map(same_bits, a, b))
    if (a.dtype, a.shape, a.stride()) != (b.dtype, b.shape, b.stride()):
        return False
    x, y = a.double(), b.double()
    equal = (x == y) & (torch.signbit(x) == torch.signbit(y))
    return bool((equal | (torch.isnan(x) & torch.isnan(y))).all())


def test_ufunc_loops_are_ufuncs() -> None:
    assert loop_of(np.add, np.dtype(np.float32)) is not None
    assert loop_of(np.power, np.dtype(np.int64)) is None
    assert loop_of(np.matmul, np.dtype(np.float32)) is None


CALLS: dict[str, Callable[..., Any]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: torch.sub(x, y),
    "row": lambda x, y: x * y[:1],
    "number": lambda x, y: x * 3,
    "greater": lambda x, y: x > y,
    "zero": lambda x, y: x > 0,
    "neg": lambda x, y: -x,
    "abs": lambda x, y: x.abs(),
    "exp": lambda x, y: x.exp(),
    "relu": lambda x, y: F.relu(x),
    "sigmoid": lambda x, y: x.sigmoid(),
    "square": lambda x, y: x**2,
    "cube": lambda x, y: x**3,
    "addcmul": lambda x, y: torch.addcmul(x, x, y),
    "lerp": lambda x, y: torch.lerp(x, y, 0.25),
    "where": lambda x, y: torch.where(x > y, x, y),
    "clone": lambda x, y: x.clone(),
    "half": lambda x, y: x.half(),
    "to int": lambda x, y: x.to(torch.int32),
    "softmax": lambda x, y: F.softmax(x, -1),
    "log_softmax": lambda x, y: F.log_softmax(x, 0),
    "logsumexp": lambda x, y: x.logsumexp(-1),
    "layer_norm": lambda x, y: F.layer_norm(x, x.shape[-1:]),
    "amax": lambda x, y: x.amax(-1),
    "max": lambda x, y: x.max(-1),
    "greatest": lambda x, y: x.max(),
    "any": lambda x, y: x.any(-1),
    "all": lambda x, y: x.all(),
    "cumsum": lambda x, y: x.cumsum(-1),
    "sum": lambda x, y: x.sum(-1),
    "transposed": lambda x, y: x.t() + y.t(),
    "steps": lambda x, y: x[:, ::2] + y[:, ::2],
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_have_the_same_bits_again(name: str) -> None:
    draws = generator()
    call = CALLS[name]
    for dtype in draws.sample(TYPES, 4):
        shape = (draws.randint(1, 40), draws.randint(1, 70))
        x, y = [(torch.randn(shape) * 4).abs().to(dtype) for _ in range(2)]
        try:
            first = call(x, y)
        except (RuntimeError, NotImplementedError):
            continue
        assert same_bits(warm(lambda x=x, y=y: call(x, y)), first)
        x.copy_(y)  # other numbers than those that were there when the call was described
        again = call(x, y)
        InlineCache.forget_all()
        assert same_bits(again, call(x, y))


@pytest.mark.parametrize("name", ["add", "exp", "relu", "softmax", "where", "half", "square",
                                  "amax", "layer_norm", "cumsum", "clone", "addcmul"])  # fmt: skip
def test_warm_calls_are_found(name: str) -> None:
    x, y = torch.randn(32, 64), torch.randn(32, 64)
    shape = x.shape[-1:]
    calls = {**CALLS, "layer_norm": lambda x, y: F.layer_norm(x, shape)}
    assert is_found(lambda: calls[name](x, y))


def test_more_kinds_of_calls_than_places() -> None:
    tensors = [torch.randn(n) for n in range(1, 30)]
    for x in tensors:
        warm(lambda x=x: x + x, 60)
    for x in tensors:
        assert torch.equal(x + x, x * 2)


def test_numbers_are_told_apart() -> None:
    x = torch.randn(8, 8).abs()
    warm(lambda: (x**2, x**3, x * 2, x * 3))
    assert torch.equal(x**2, x * x)
    torch.testing.assert_close(x**3, x * x * x)
    assert torch.equal(x * 3, x + x + x) or torch.allclose(x * 3, x + x + x)


def test_dims_are_told_apart() -> None:
    x = torch.randn(6, 6)
    warm(lambda: (F.softmax(x, 0), F.softmax(x, 1), x.amax(0), x.amax(1, True)))
    torch.testing.assert_close(F.softmax(x, 0).sum(0), torch.ones(6))
    torch.testing.assert_close(F.softmax(x, 1).sum(1), torch.ones(6))
    assert x.amax(0).shape == (6,)
    assert x.amax(1, True).shape == (6, 1)


@pytest.mark.parametrize("call", [
    lambda x, i: x.gather(1, i), lambda x, i: x.index_select(0, i[0]),
    lambda x, i: F.embedding(i, x),
])  # fmt: skip
def test_positions_are_checked_each_time(call: Callable[..., Any]) -> None:
    x, index = torch.randn(8, 5), torch.randint(0, 5, (8, 3))
    assert is_found(lambda: call(x, index))
    index[0, 0] = 99
    with pytest.raises((IndexError, RuntimeError), match="out of"):
        call(x, index)


def test_likelihood_of_small_batches() -> None:
    scores, target = torch.randn(20, 7), torch.randint(0, 7, (20,))
    target[3] = -100

    def by_hand(reduction: str) -> torch.Tensor:
        kept = target != -100
        chosen = -scores[kept].gather(1, target[kept][:, None])
        return chosen.mean() if reduction == "mean" else chosen.sum()

    for reduction in ("mean", "sum"):
        loss = warm(lambda r=reduction: F.nll_loss(scores, target, reduction=r))
        torch.testing.assert_close(loss, by_hand(reduction))
    scores.mul_(2)
    torch.testing.assert_close(F.nll_loss(scores, target), by_hand("mean"))
    target[0] = 7
    with pytest.raises(IndexError, match=r"Target 7 is out of bounds\."):
        F.nll_loss(scores, target)


def test_writes() -> None:
    x, y = torch.zeros(4, 5), torch.ones(4, 5)
    warm(lambda: x.add_(y), 400)
    assert torch.equal(x, torch.full((4, 5), 400.0))
    assert x._version == 400
    z = torch.arange(8.0)
    warm(lambda: z[1:].mul_(1.0))
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        z[1:].mul_(z[:-1])
    assert z.tolist() == list(map(float, range(8)))


def test_errors_are_those_of_before() -> None:
    x, y, z = torch.ones(2, 3), torch.ones(2, 3), torch.ones(4)
    warm(lambda: x + y)
    for a, b in ((x, z), (x[:, :2], z), (x.exp(), torch.ones(2, 2))):
        for _ in range(3):
            with pytest.raises(RuntimeError, match="must match the size of tensor b"):
                a + b
    with pytest.raises(RuntimeError, match="result type Float"):
        torch.ones(3, dtype=torch.int64).add_(torch.ones(3))


def test_recorded_calls() -> None:
    x = torch.randn(3, 4, requires_grad=True)
    y = warm(lambda: (x * x).relu())
    y.sum().backward()
    torch.testing.assert_close(x.grad, 2 * x.detach())
    with torch.inference_mode():
        assert warm(lambda: x.detach() + 1).is_inference()


@pytest.fixture
def default_type() -> Iterator[None]:
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.usefixtures("default_type")
def test_another_default_type() -> None:
    x = torch.arange(1, 5)
    assert warm(lambda: x.sqrt()).dtype is torch.float32
    torch.set_default_dtype(torch.float64)
    assert x.sqrt().dtype is torch.float64
    assert (x / x).dtype is torch.float64


def test_nothing_is_kept_or_lost() -> None:
    x, y, index = torch.randn(16, 8), torch.randn(16, 8), torch.randint(0, 8, (16, 2))

    def calls() -> None:
        _ = x + y, F.softmax(x, 1), x.max(1), x.gather(1, index), F.layer_norm(x, (8,)), x.half()

    warm(calls)
    objects = [x._data, index._data, np.dtype(np.float32), np.dtype(np.int64), None]
    gc.collect()
    before = [sys.getrefcount(value) for value in objects]
    warm(calls, 500)
    gc.collect()
    after = [sys.getrefcount(value) for value in objects]
    assert all(abs(a - b) < 20 for a, b in zip(after, before, strict=True))


def test_threads() -> None:
    errors: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            x = torch.full((seed + 1, 7), float(seed))
            for _ in range(2000):
                assert torch.equal(x + x, x * 2)
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_observers_stand_in_each_other() -> None:
    with observed.observed() as outer:
        with observed.observed() as inner:
            torch.ones(64, 64).softmax(1)
        torch.ones(64, 64).logsumexp(1)
    assert not observed.observers
    assert len(inner.launches) == len(outer.launches) == 1


def test_what_is_learned_as_alike_is_over_at_once() -> None:
    x = torch.randn(5, 5)
    warm(lambda: x.amax(1))
    assert choice.Learning.thread == 0


class Interrupted(list):  # type: ignore[type-arg]
    """A list in which nothing can be put: a signal's error comes first."""

    def __setitem__(self, place: Any, value: Any) -> None:
        raise KeyboardInterrupt


def test_an_interruption_leaves_no_address_of_freed_memory() -> None:
    cache = InlineCache(lambda cache, *arguments: None)
    assert cache.function() is not None
    for _ in range(2 * len(cache.kept)):  # the second round takes places that are taken
        cache.keep([np.zeros(3)], [(np.dtype(float), (3,))], [], 0)
    cache.kept = Interrupted(cache.kept)
    with pytest.raises(KeyboardInterrupt):
        cache.keep([np.zeros(3)], [(np.dtype(float), (3,))], [], 0)
    known = {0, *[words.ctypes.data for words, *_ in cache.kept]}
    assert set(cache.table[: len(cache.kept)].tolist()) <= known


def ring(*_: Any) -> None:
    raise TimeoutError("it rings")


def test_what_a_signal_raises_goes_on() -> None:
    def interrupted(x: np.ndarray) -> np.ndarray:
        signal.raise_signal(signal.SIGALRM)
        return x

    learn = observed_calls.observer(interrupted, False)
    before = signal.signal(signal.SIGALRM, ring)
    try:
        with pytest.raises(TimeoutError, match="it rings"):
            learn(InlineCache(learn), np.ones(3))
    finally:
        signal.signal(signal.SIGALRM, before)
    assert not observed.observers


def test_what_a_call_raises_is_left_to_the_call() -> None:
    for fails in (np.concatenate, np.linalg.inv):  # which take no vector
        learn = observed_calls.observer(fails, False)
        learn(InlineCache(learn), np.ones(3))


def test_what_is_not_confirmed_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "def negated(x: pointer(f64), y: pointer(f64), n: i64):\n" + (
        "    for i in range(n):\n        y[i] = -x[i]\n"
    )
    run = launch.kernel(native.from_source("negated", text, dict(vars(language))))

    def launched(x: np.ndarray) -> np.ndarray:
        found = np.empty_like(x)
        run.once(x, found, x.size)
        return found

    cache: Any = InlineCache(observed_calls.observer(launched, False))
    call = cache.function()
    assert call(np.ones(3)) is None
    assert cache.table[: len(cache.kept)].any()
    cache.forget()
    monkeypatch.setattr(InlineCache, "confirm", ring)
    with pytest.raises(TimeoutError):
        cache.learn(np.ones(3))
    assert not cache.table[: len(cache.kept)].any()


def test_a_call_that_warns_is_not_kept_and_its_warning_not_lost() -> None:
    text = "once in a process, by a test of inline caches"
    told: list[str] = []

    def warns(x: np.ndarray) -> np.ndarray:
        warn_once(text)
        told.append(text)
        return x

    cache: Any = InlineCache(observed_calls.observer(warns, False))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            cache.learn(np.ones(3))
        assert told
        assert not cache.table[: len(cache.kept)].any()
        with pytest.warns(UserWarning, match=text):
            warn_once(text)
    finally:
        Warnings.given.discard(text)
    assert not Warnings.withheld
