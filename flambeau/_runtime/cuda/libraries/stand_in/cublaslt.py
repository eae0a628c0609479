"""cuBLASLt's functions: column-major matrices, distances of columns, batches, epilogues."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from flambeau._runtime.cuda.libraries import cublaslt_numbers as numbers
from flambeau._runtime.cuda.libraries.cublaslt_numbers import Found
from flambeau._runtime.cuda.libraries.stand_in.memory import (
    Handles,
    Refusal,
    device_array,
    guarded,
    host_value,
    numpy_type,
    put,
    tf32,
)

INTERNAL_ERROR = 14
NAMES = {number: name for name, number in numbers.TYPES.items()}
SCALES = {
    numbers.COMPUTE_32F: ("float32", "complex64"), numbers.COMPUTE_TF32: ("float32", "complex64"),
    numbers.COMPUTE_64F: ("float64", "complex128"), numbers.COMPUTE_32I: ("int32",),
}  # fmt: skip
PROPOSED = 3
"""Algorithms that the heuristic proposes."""
function = guarded(INTERNAL_ERROR)


@dataclass
class Description:
    """`cublasLtMatmulDesc_t`."""

    compute: int
    scale: str
    values: dict[int, int] = field(default_factory=dict)

    def __getitem__(self, name: str) -> int:
        start = numbers.DEFAULT if name == "epilogue" else 0
        return self.values.get(numbers.DESCRIPTION[name][0], start)


@dataclass
class Layout:
    """`cublasLtMatrixLayout_t`."""

    dtype: str
    rows: int
    columns: int
    ld: int
    values: dict[int, int] = field(default_factory=dict)

    def view(self, address: int) -> Any:
        """The matrices at an address: [batch, rows, columns]."""
        batch = self.values.get(numbers.LAYOUT["batch"][0], 1)
        step = self.values.get(numbers.LAYOUT["step"][0], 0)
        shape = batch, self.rows, self.columns
        return device_array(address, shape, (step, 1, self.ld), numpy_type(self.dtype))


@dataclass
class Preference:
    """`cublasLtMatmulPreference_t`."""

    values: dict[int, int] = field(default_factory=dict)

    def __getitem__(self, name: str) -> int:
        start = 256 if name.startswith("alignment") else 0
        return self.values.get(numbers.PREFERENCE[name][0], start)


class StandIn:
    """The library."""

    def __init__(self) -> None:
        self.handles = Handles()
        self.launches: list[tuple[int, ...]] = []  # (algorithm, epilogue) of each product

    def _write(self, attributes: Any, target: int, number: int, source: int, size: int) -> None:
        kinds = dict(attributes.values())
        if number not in kinds or ctypes.sizeof(kinds[number]) != size:
            raise Refusal(numbers.INVALID_VALUE)
        self.handles[target].values[number] = kinds[number].from_address(source).value

    @function
    def cublasLtCreate(self, target: int) -> None:
        self.handles.give(target, self)

    @function
    def cublasLtMatmulDescCreate(self, target: int, compute: int, scale: int) -> None:
        if NAMES.get(scale) not in SCALES.get(compute, ()):
            raise Refusal(numbers.INVALID_VALUE)
        self.handles.give(target, Description(compute, NAMES[scale]))

    @function
    def cublasLtMatmulDescSetAttribute(self, *arguments: int) -> None:
        self._write(numbers.DESCRIPTION, *arguments)

    @function
    def cublasLtMatrixLayoutCreate(self, target: int, dtype: int, rows: int, columns: int,
                                   ld: int) -> None:  # fmt: skip
        self.handles.give(target, Layout(NAMES[dtype], rows, columns, ld))

    @function
    def cublasLtMatrixLayoutSetAttribute(self, *arguments: int) -> None:
        self._write(numbers.LAYOUT, *arguments)

    @function
    def cublasLtMatmulPreferenceCreate(self, target: int) -> None:
        self.handles.give(target, Preference())

    @function
    def cublasLtMatmulPreferenceSetAttribute(self, *arguments: int) -> None:
        self._write(numbers.PREFERENCE, *arguments)

    @function
    def cublasLtMatmulAlgoGetHeuristic(self, handle: int, description: int, a: int, b: int, c: int,
                                       d: int, wish: int, wanted: int, found: int,
                                       count: int) -> None:  # fmt: skip
        held = self.handles
        _check(held[description], *(held[layout] for layout in (a, b, c, d)))
        alignment = held[wish]["alignment_a"]
        given = min(wanted, PROPOSED)
        results = (Found * given).from_address(found)
        for number, result in enumerate(results):
            result.algorithm[0], result.algorithm[1] = number + 1, alignment
            result.workspace, result.state, result.waves = held[wish]["workspace"], 0, 1.0
        ctypes.c_int.from_address(count).value = given

    @function
    def cublasLtMatmul(self, handle: int, description: int, alpha: int, a: int, of_a: int, b: int,
                       of_b: int, beta: int, c: int, of_c: int, d: int, of_d: int, algorithm: int,
                       workspace: int, size: int, stream: int | None) -> None:  # fmt: skip
        held = self.handles
        how = held[description]
        layouts = [held[layout] for layout in (of_a, of_b, of_c, of_d)]
        _check(how, *layouts)
        number, alignment = (ctypes.c_uint64 * 2).from_address(algorithm)
        if not 1 <= number <= PROPOSED or not workspace:
            raise Refusal(numbers.INVALID_VALUE)
        if any(address % alignment for address in (a, b, c, d)):
            raise Refusal(numbers.NOT_SUPPORTED)
        scale = numpy_type(how.scale)
        factors = host_value(alpha, scale), host_value(beta, scale)
        values = dict(how.values)
        self.launches.append((number, how["epilogue"]))
        settled = Description(how.compute, how.scale, values)
        reads, writes = [a, b, workspace], [d]
        reads += [c] if factors[1] != 0 else []
        epilogue = how["epilogue"]
        if epilogue in numbers.WITH_BIAS:
            (writes if epilogue == numbers.BGRADB else reads).append(how["bias"])
        if epilogue in numbers.WITH_AUX:
            (reads if epilogue == numbers.DGELU else writes).append(how["aux"])
        work = lambda: _multiply(settled, layouts, (a, b, c, d), factors)  # noqa: E731
        put(stream, work, reads, writes)


def _check(how: Description, a: Layout, b: Layout, c: Layout, d: Layout) -> None:
    """Refuse what does not fit together, and what no algorithm serves."""
    shapes = []
    for layout, name in ((a, "transa"), (b, "transb")):
        sizes = layout.rows, layout.columns
        shapes.append(sizes[::-1] if how[name] else sizes)
    if shapes[0][1] != shapes[1][0] or (d.rows, d.columns) != (shapes[0][0], shapes[1][1]):
        raise Refusal(numbers.INVALID_VALUE)
    if (c.rows, c.columns) != (d.rows, d.columns):
        raise Refusal(numbers.INVALID_VALUE)
    for layout in (a, b, c, d):
        if layout.ld < max(layout.rows, 1) or not layout.rows * layout.columns:
            raise Refusal(numbers.INVALID_VALUE)
    expected = {numbers.RESULTS.get(a.dtype, a.dtype)}
    if a.dtype in ("float16", "bfloat16"):
        expected.add("float32")
    if a.dtype != b.dtype or c.dtype != d.dtype or d.dtype not in expected:
        raise Refusal(numbers.NOT_SUPPORTED)
    if a.dtype == "int8" and (how["transa"] != 1 or how["transb"] or a.ld % 4 or b.ld % 4):
        raise Refusal(numbers.NOT_SUPPORTED)
    if how["epilogue"] != numbers.DEFAULT:
        _check_epilogue(how, a.dtype)


def _check_epilogue(how: Description, dtype: str) -> None:
    with_bias, with_aux = how["bias"] != 0, how["aux"] != 0
    if with_bias != (how["epilogue"] in numbers.WITH_BIAS):
        raise Refusal(numbers.NOT_SUPPORTED)
    if with_aux != (how["epilogue"] in numbers.WITH_AUX):
        raise Refusal(numbers.NOT_SUPPORTED)
    halves = dtype in ("float16", "bfloat16")
    if dtype in ("complex64", "complex128", "float64", "int8"):
        raise Refusal(numbers.NOT_SUPPORTED)
    if how["epilogue"] == numbers.BGRADB and not halves:
        raise Refusal(numbers.NOT_SUPPORTED)


def _multiply(how: Description, layouts: list[Layout], addresses: tuple[int, ...],
              factors: tuple[Any, Any]) -> None:  # fmt: skip
    a, b, c, d = (layout.view(address) for layout, address in zip(layouts, addresses, strict=True))
    epilogue = how["epilogue"]
    left, right = (_factor(how, one, name) for one, name in ((a, "transa"), (b, "transb")))
    total = factors[0] * np.matmul(left, right)
    if factors[1] != 0:
        total = total + factors[1] * c.astype(total.dtype)
    kind = numpy_type(layouts[3].dtype)
    if epilogue == numbers.BGRADB:
        sums = np.add.reduce(right, (0, 1))
        device_array(how["bias"], sums.shape, (1,), kind)[...] = sums.astype(kind)
    elif epilogue in numbers.WITH_BIAS:
        bias = device_array(how["bias"], (d.shape[1],), (1,), kind)
        total = total + bias.astype(total.dtype)[:, None]
    with np.errstate(over="ignore"):  # too much for a half type is inf
        d[...] = _finished(how, total, kind, d.shape).astype(kind)


def _finished(how: Description, total: Any, kind: Any, shape: tuple[int, ...]) -> Any:
    """The sums after their activation; what goes in is read or kept beside."""
    epilogue = how["epilogue"]
    if epilogue in numbers.WITH_AUX:
        steps = (how["aux_ld"] * shape[2], 1, how["aux_ld"])
        beside = device_array(how["aux"], shape, steps, kind)
        if epilogue == numbers.DGELU:
            return total * gelu_slope(beside.astype(total.dtype))
        beside[...] = total.astype(kind)
    if epilogue in (numbers.RELU, numbers.RELU_BIAS):
        return np.maximum(total, 0)
    if epilogue & numbers.GELU:
        return gelu(total)
    return total


def _factor(how: Description, values: Any, name: str) -> Any:
    """A factor in the type that is computed in, as its operation has it."""
    if values.dtype.itemsize == 2:
        values = values.astype(np.float32)
    if values.dtype.kind == "i":
        values = values.astype(np.int32)
    if how.compute == numbers.COMPUTE_TF32 and values.dtype.itemsize in (4, 8):
        values = tf32(values)
    if how[name] == numbers.ADJOINT:
        values = values.conj()
    return values.swapaxes(1, 2) if how[name] else values


def gelu(x: Any) -> Any:
    """The tanh form, which is cuBLASLt's."""
    return 0.5 * x * (1 + np.tanh(0.7978845608028654 * (x + 0.044715 * x**3)))


def gelu_slope(x: Any) -> Any:
    """The derivative of `gelu`."""
    inner = np.tanh(0.7978845608028654 * (x + 0.044715 * x**3))
    slope = 0.7978845608028654 * (1 + 3 * 0.044715 * x**2)
    return 0.5 * (1 + inner) + 0.5 * x * (1 - inner**2) * slope
