"""Products through cuBLASLt's interface, computed by the stand-in, against NumPy."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("llvmlite")  # which compiles the kernels of the stand-in

from flambeau._runtime.cuda.libraries import cublaslt, timing, workspaces
from flambeau._runtime.cuda.libraries import cublaslt_numbers as numbers
from flambeau._runtime.cuda.libraries.cublaslt import Kind, Plan, Unsupported
from flambeau._runtime.cuda.libraries.matrices import arranged, contiguous
from tests._runtime.cuda.libraries.conftest import OnDevice, close, drawn, random, wide

TYPES = {
    "float32": (np.float32, 2e-5), "float64": (np.float64, 1e-12), "float16": (np.float16, 4e-3),
    "bfloat16": (ml_dtypes.bfloat16, 3e-2), "complex64": (np.complex64, 2e-5),
    "complex128": (np.complex128, 1e-12),
}  # fmt: skip
"""NumPy's types, and how far results may lie from those in double precision."""


def strided(rng: Any, values: np.ndarray, batch_broadcasts: bool) -> np.ndarray:
    """The same elements, now and then transposed in memory, with gaps, or with other strides of
    the batch; a batch that broadcasts may have strides of 0."""
    layout = rng.integers(4)
    ndim = values.ndim
    if layout == 1:
        values = np.ascontiguousarray(values.swapaxes(-1, -2)).swapaxes(-1, -2)
    if layout == 2:
        wide = np.zeros((*values.shape[:-1], values.shape[-1] + 3), values.dtype)
        wide[..., : values.shape[-1]] = values
        values = wide[..., : values.shape[-1]]
    if layout == 3 and ndim > 2:
        order = [*range(ndim - 2)][::-1]
        turned = np.ascontiguousarray(values.transpose(*order, ndim - 2, ndim - 1))
        values = turned.transpose(*np.argsort(order), ndim - 2, ndim - 1)
    if batch_broadcasts and ndim > 2:
        values = np.broadcast_to(values[:1], values.shape)
    return values


def sizes(rng: Any) -> tuple[int, int, int]:
    return tuple(int(n) for n in rng.choice([1, 2, 3, 5, 8, 17], 3))  # type: ignore[return-value]


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("round", range(25))
def test_every_layout_is_multiplied_in_place(device, name, round):
    """Random sizes, batches, transposes, gaps, strides of 0, alpha and beta."""
    rng = random("test_every_layout_is_multiplied_in_place", name, round)
    dtype, tolerance = TYPES[name]
    rows, depth, columns = sizes(rng)
    batch = tuple(int(n) for n in rng.integers(1, 4, rng.integers(0, 4)))
    of_left = batch if rng.random() < 0.7 else batch[len(batch) // 2 :]
    of_right = batch if rng.random() < 0.5 else ()
    left = strided(rng, drawn(rng, (*of_left, rows, depth), dtype), rng.random() < 0.2)
    right = strided(rng, drawn(rng, (*of_right, depth, columns), dtype), rng.random() < 0.2)
    alpha, beta = [(1, 0), (2.5, 0), (1, 1), (0.5, -1.5)][rng.integers(4)]
    shape = (*np.broadcast_shapes(of_left, of_right), rows, columns)
    added = drawn(rng, shape, dtype)
    a, b, c = OnDevice(left), OnDevice(right), OnDevice(added)
    out = OnDevice(np.full(shape, 7, dtype))
    product = arranged(a.array, b.array, out.array, c.array)
    assert product is not None
    Plan(product, Kind(name, alignment=1)).run(
        a.address, b.address, out.address, c.address, alpha, beta)  # fmt: skip
    want = alpha * np.matmul(wide(left), wide(right)) + beta * wide(added)
    close(out.back(), want, tolerance * max(1, depth) ** 0.5)


@pytest.mark.parametrize("side", [0, 1])
def test_adjoint_factors(device, side):
    rng = random("test_adjoint_factors", side)
    left, right = (drawn(rng, (3, 4, 4), np.complex64) for _ in range(2))
    chosen = [left, right]
    chosen[side] = chosen[side].swapaxes(1, 2)
    a, b = OnDevice(chosen[0]), OnDevice(chosen[1])
    out = OnDevice(np.zeros((3, 4, 4), np.complex64))
    adjoint = (side == 0, side == 1)
    product = arranged(a.array, b.array, out.array, None, adjoint)
    Plan(product, Kind("complex64", conjugated=adjoint)).run(
        a.address, b.address, out.address)  # fmt: skip
    chosen[side] = chosen[side].conj()
    close(out.back(), np.matmul(wide(chosen[0]), wide(chosen[1])), 1e-5)


def test_a_conjugated_factor_that_lies_in_rows_is_refused(device):
    product = arranged(contiguous((2, 3)), contiguous((3, 4)), contiguous((2, 4)))
    with pytest.raises(Unsupported):
        Plan(product, Kind("complex64", conjugated=(True, False)))


def gelu(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def slope(x: np.ndarray) -> np.ndarray:
    """By finite differences."""
    return (gelu(x + 1e-5) - gelu(x - 1e-5)) / 2e-5


@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("epilogue", ["bias", "relu", "gelu", "kept"])
def test_epilogues_of_linear_layers(device, name, epilogue):
    rng = random("test_epilogues_of_linear_layers", name, epilogue)
    dtype, tolerance = TYPES[name]
    x, weight, bias = (drawn(rng, shape, dtype) for shape in ((6, 5), (7, 5), (7,)))
    a, w, b = OnDevice(x), OnDevice(weight), OnDevice(bias)
    out, kept = (OnDevice(np.zeros((6, 7), dtype)) for _ in range(2))
    number, function = {
        "bias": (numbers.BIAS, lambda z: z), "relu": (numbers.RELU_BIAS, lambda z: z.clip(0)),
        "gelu": (numbers.GELU_BIAS, gelu), "kept": (numbers.GELU_AUX_BIAS, gelu),
    }[epilogue]  # fmt: skip
    product = arranged(a.array, w.array.mT, out.array)
    plan = Plan(product, Kind(name, number))
    plan.run(a.address, w.address, out.address, bias=b.address, aux=kept.address)
    z = wide(x) @ wide(weight).T + wide(bias)
    close(out.back(), function(z), tolerance * 4)
    if epilogue == "kept":
        close(kept.back(), z, tolerance * 4)


def test_gradients_through_gelu(device):
    rng = random("test_gradients_through_gelu")
    dtype, tolerance = TYPES["float16"]
    grad, weight, z = (drawn(rng, shape, dtype) for shape in ((6, 5), (5, 7), (6, 7)))
    a, w, aux = OnDevice(grad), OnDevice(weight), OnDevice(z)
    out = OnDevice(np.zeros((6, 7), dtype))
    plan = Plan(arranged(a.array, w.array, out.array), Kind("float16", numbers.DGELU))
    plan.run(a.address, w.address, out.address, aux=aux.address)
    close(out.back(), wide(grad) @ wide(weight) * slope(wide(z)), tolerance * 8)


def test_gradients_of_weight_and_bias_at_once(device):
    rng = random("test_gradients_of_weight_and_bias_at_once")
    dtype, tolerance = TYPES["bfloat16"]
    grad, x = drawn(rng, (6, 5), dtype), drawn(rng, (6, 3), dtype)
    g, a = OnDevice(grad), OnDevice(x)
    out, sums = OnDevice(np.zeros((5, 3), dtype)), OnDevice(np.zeros(5, dtype))
    plan = Plan(arranged(g.array.mT, a.array, out.array), Kind("bfloat16", numbers.BGRADB))
    plan.run(g.address, a.address, out.address, bias=sums.address)
    close(out.back(), wide(grad).T @ wide(x), tolerance * 4)
    close(sums.back(), wide(grad).sum(0), tolerance * 4)


def test_tf32_is_a_choice_of_the_plan(device):
    rng = random("test_tf32_is_a_choice_of_the_plan")
    x, y = (drawn(rng, (16, 16), np.float32) for _ in range(2))
    a, b, out = OnDevice(x), OnDevice(y), OnDevice(np.zeros((16, 16), np.float32))
    errors = {}
    for tf32 in (False, True):
        Plan(arranged(a.array, b.array, out.array), Kind("float32", tf32=tf32)).run(
            a.address, b.address, out.address)  # fmt: skip
        errors[tf32] = np.abs(out.back() - wide(x) @ wide(y)).max()
    assert errors[False] < 1e-5 < 1e-4 < errors[True] < 2e-2


def test_whole_numbers(device):
    rng = random("test_whole_numbers")
    x, y = (rng.integers(-128, 128, (8, 12), np.int8) for _ in range(2))
    a, b, out = OnDevice(x), OnDevice(y), OnDevice(np.zeros((8, 8), np.int32))
    Plan(arranged(a.array, b.array.mT, out.array), Kind("int8")).run(
        a.address, b.address, out.address)  # fmt: skip
    assert (out.back() == x.astype(np.int32) @ y.T.astype(np.int32)).all()
    with pytest.raises(Unsupported):
        Plan(arranged(a.array.mT, b.array, contiguous((12, 12))), Kind("int8"))


def test_measuring_writes_nothing_that_is_the_callers(device, monkeypatch):
    """The result is what it would be without, added memory stays, and the fastest is kept."""
    monkeypatch.setattr(cublaslt, "MEASURED", 1)
    seen = []

    def second(ways: Any) -> int:
        for way in ways:
            way()
        seen.append(len(ways))
        assert (out.back() == 7).all()
        assert (sums.back() == 7).all()
        return 1

    monkeypatch.setattr(cublaslt, "fastest", second)
    grad, x = np.ones((6, 5), np.float16), np.ones((6, 3), np.float16)
    g, a = OnDevice(grad), OnDevice(x)
    out, sums = OnDevice(np.full((5, 3), 7, np.float16)), OnDevice(np.full(5, 7, np.float16))
    plan = Plan(arranged(g.array.mT, a.array, out.array), Kind("float16", numbers.BGRADB))
    for _ in range(3):
        plan.run(g.address, a.address, out.address, bias=sums.address)
    assert seen == [3]
    assert (out.back() == 6).all()
    assert (sums.back() == 6).all()
    assert plan.chosen == cublaslt.addressof(plan.found[1])


def test_noise_does_not_choose(device, monkeypatch):
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(timing.time, "perf_counter", lambda: clock.now)

    def taking(seconds: float) -> Any:
        def work() -> None:
            clock.now += seconds

        return work

    assert timing.fastest([taking(1.0), taking(0.98)]) == 0
    assert timing.fastest([taking(1.0), taking(0.9)]) == 1


def test_a_way_that_fails_is_not_chosen(device):
    def failing() -> None:
        raise RuntimeError("not supported")

    assert timing.fastest([failing, lambda: None]) == 1


def test_less_alignment_is_told(device):
    """A view that begins at an odd element."""
    values = np.arange(40, dtype=np.float16)
    a, b, out = OnDevice(values), OnDevice(np.eye(4, dtype=np.float16)), OnDevice(
        np.zeros((4, 4), np.float16))  # fmt: skip
    product = arranged(contiguous((4, 4)), b.array, out.array)
    with pytest.raises(RuntimeError, match="CUBLAS_STATUS_NOT_SUPPORTED when calling"):
        Plan(product, Kind("float16")).run(a.address + 2, b.address, out.address)
    Plan(product, Kind("float16", alignment=2)).run(a.address + 2, b.address, out.address)
    assert (out.back() == values[1:17].reshape(4, 4)).all()


def test_calls_of_an_outer_batch_are_less_aligned(device):
    """The second image begins behind 5 x 3 x 3 numbers."""
    values = np.arange(90, dtype=np.float32).reshape(2, 5, 3, 3).transpose(0, 2, 1, 3)
    a, out = OnDevice(values), OnDevice(np.zeros((2, 3, 5, 5), np.float32))
    product = arranged(a.array, a.array.mT, out.array)
    assert len(product.outer) == 2
    Plan(product, Kind("float32")).run(a.address, a.address, out.address)
    close(out.back(), wide(values) @ wide(values).swapaxes(2, 3), 1e-5)


def test_more_addresses_than_calls(device, monkeypatch):
    """Biases beyond those that have a description of their own share one."""
    monkeypatch.setattr(cublaslt, "CALLS", 3)
    x = OnDevice(np.eye(4, dtype=np.float16))
    plan = Plan(arranged(x.array, x.array, x.array), Kind("float16", numbers.BIAS))
    biases = [OnDevice(np.full(4, n, np.float16)) for n in range(6)]
    for _ in range(2):
        for number, bias in enumerate(biases):
            out = OnDevice(np.zeros((4, 4), np.float16))
            plan.run(x.address, x.address, out.address, bias=bias.address)
            assert (out.back() == np.eye(4) + number).all()
    assert len(plan.calls) == 3


def test_workspaces_grow_and_stay(device):
    """Graphs hold the addresses of those that they were captured with."""
    first = workspaces.workspace(1000)
    assert workspaces.workspace(500) == first
    second = workspaces.workspace(1001)
    assert second != first
    assert workspaces.workspace(2000) == second
