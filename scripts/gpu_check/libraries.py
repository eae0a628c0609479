"""NVIDIA's libraries on a GPU: values against NumPy in double precision, then times beside PyTorch.

    python scripts/gpu_check/libraries.py --out FILE.json

Works on memory of the driver alone: neither tensors nor kernels are needed. Without a GPU the
checks run on the emulated one, and no times are taken. The file is written after every item.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import platform
import sys
import time
import traceback
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))
ELSEWHERE = "/opt/torch/.venv/lib/python{}.{}/site-packages"
"""Where PyTorch and NVIDIA's wheels may lie, besides this Python's own packages."""
SECONDS = 48


def _find_torch() -> Any:
    sys.path.append(ELSEWHERE.format(*sys.version_info[:2]))
    try:
        import torch

        return torch if torch.cuda.is_available() else None
    except Exception:
        return None


def _find_gpu() -> bool:
    from flambeau._runtime.cuda import libcuda

    return libcuda.found() is not None


if "FLAMBEAU_EMULATE_CUDA" not in os.environ and not _find_gpu():
    os.environ["FLAMBEAU_EMULATE_CUDA"] = "1"
    from flambeau._runtime.cuda import driver as played

    if hasattr(played, "play"):
        played.play()

import ml_dtypes
import numpy as np

from flambeau._runtime.cuda.driver import driver
from flambeau._runtime.cuda.libraries import (
    cublaslt,
    cudnn,
    cudnn_attention,
    cufft,
    cusolver,
    finding,
)
from flambeau._runtime.cuda.libraries import cublaslt_numbers as numbers
from flambeau._runtime.cuda.libraries.cublaslt import Kind, Plan, Unsupported
from flambeau._runtime.cuda.libraries.cudnn import Convolution, Wishes, convolution
from flambeau._runtime.cuda.libraries.cudnn_attention import Attention
from flambeau._runtime.cuda.libraries.matrices import Array, arranged, contiguous
from flambeau._runtime.cuda.libraries.workspaces import workspace
from flambeau._runtime.cuda.memory import running

TYPES = {
    "float32": (np.float32, 3e-5), "float64": (np.float64, 1e-12), "float16": (np.float16, 4e-3),
    "bfloat16": (ml_dtypes.bfloat16, 3e-2), "complex64": (np.complex64, 3e-5),
    "complex128": (np.complex128, 1e-12),
}  # fmt: skip
POISON = 0xA5
REAL = not driver().fake  # type: ignore[union-attr]


# ---- memory


class OnDevice:
    """A host array's bytes in device memory, in strides of its own."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values
        span = sum((n - 1) * s for n, s in zip(values.shape, values.strides, strict=True))
        self.nbytes = span + values.itemsize
        self.address = running().allocate(self.nbytes)
        running().to_device(self.address, values.ctypes.data, self.nbytes, 0)

    def __del__(self) -> None:
        running().free(self.address)

    @property
    def array(self) -> Array:
        steps = tuple(step // self.values.itemsize for step in self.values.strides)
        return Array(self.values.shape, steps)

    def back(self) -> np.ndarray:
        """What the device has there now."""
        memory = np.empty(self.nbytes, np.uint8)
        running().to_host(memory.ctypes.data, self.address, self.nbytes, 0)
        return np.ndarray(self.values.shape, self.values.dtype, memory.data, 0,
                          self.values.strides)  # fmt: skip


def poisoned(shape: tuple[int, ...], dtype: Any) -> OnDevice:
    """Memory for a result; what is not written to is no number."""
    made = OnDevice(np.zeros(shape, dtype))
    running().fill(made.address, POISON, 1, made.nbytes, 0)
    return made


def repeated(shape: tuple[int, ...], dtype: Any, scale: float = 1.0) -> OnDevice:
    """Random numbers, of which a million are drawn."""
    block = (np.random.default_rng(5).standard_normal(1 << 20, np.float32) * scale).astype(dtype)
    return OnDevice(np.resize(block, shape))


def wide(values: np.ndarray) -> np.ndarray:
    return values.astype(np.complex128 if values.dtype.kind == "c" else np.float64)


def error(got: np.ndarray, want: np.ndarray) -> float:
    """The greatest difference over the greatest number."""
    found = float(np.abs(wide(got) - want).max(initial=0) / max(1.0, np.abs(want).max(initial=0)))
    return float("inf") if np.isnan(found) else found


def drawn(rng: Any, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    values = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * rng.standard_normal(shape)
    return values.astype(dtype)


# ---- the report


class Report:
    """What was found, in a file after every item."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.found: dict[str, Any] = {"real": REAL}

    def run(self, name: str, item: Callable[[], Any], until: float = SECONDS) -> None:
        """Run an item, unless the time is up."""
        began = time.perf_counter()
        if began - START > until:
            self.found[name] = "left out: no time"
        else:
            try:
                self.found[name] = item()
            except Exception as failure:
                self.found[name] = {"FAILED": f"{type(failure).__name__}: {failure}",
                                    "where": traceback.format_exc(limit=-3)}  # fmt: skip
        took = time.perf_counter() - began
        print(f"[{time.perf_counter() - START:5.1f} s] {name} ({took:.1f} s): "
              f"{shown(self.found[name])}", flush=True)  # fmt: skip
        Path(self.path).write_text(json.dumps(self.found, indent=1), encoding="utf-8")


def shown(value: Any) -> str:
    """A line, or a line for each entry."""
    if isinstance(value, dict) and len(value) > 3:
        return "".join(f"\n    {key}: {entry}" for key, entry in value.items())
    return str(value)


START = time.perf_counter()


def late() -> bool:
    """Whether the time is up."""
    return time.perf_counter() - START > SECONDS


# ---- times


def timed(work: Callable[[], object], seconds: float = 0.04) -> float:
    """Microseconds of a piece of work on the device: the median of five rounds between events."""
    gpu = running()
    start, end = gpu.new_event(timing=True), gpu.new_event(timing=True)

    def once(count: int) -> float:
        gpu.record(start, 0)
        for _ in range(count):
            work()
        gpu.record(end, 0)
        gpu.synchronize_event(end)
        return gpu.elapsed(start, end) * 1e3 / count

    once(2)
    count = max(3, min(2000, int(seconds / 5 * 1e6 / max(once(3), 1))))
    return float(np.median([once(count) for _ in range(5)]))


def torch_timed(torch: Any, work: Callable[[], object], seconds: float = 0.04) -> float:
    """The same of work through PyTorch."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def once(count: int) -> float:
        start.record()
        for _ in range(count):
            work()
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end)) * 1e3 / count

    once(2)
    count = max(3, min(2000, int(seconds / 5 * 1e6 / max(once(3), 1))))
    return float(np.median([once(count) for _ in range(5)]))


def host_us(work: Callable[[], object], count: int = 2000) -> float:
    """Microseconds of host time of a call."""
    gpu = running()
    best = float("inf")
    for _ in range(3):
        gpu.synchronize()
        start = time.perf_counter()
        for _ in range(count // 10):
            work()
        best = min(best, (time.perf_counter() - start) / (count // 10) * 1e6)
    gpu.synchronize()
    return round(best, 2)


# ---- checks


def versions() -> dict[str, Any]:
    """What is here."""
    gpu = running()
    found: dict[str, Any] = {"device": gpu.device_name(0), "python": platform.python_version()}
    for name in finding.LIBRARIES:
        try:
            found[name] = next(iter(finding.candidates(name)), None) if REAL else "stand-in"
        except Exception as failure:
            found[name] = str(failure)
    return found


def strided(rng: Any, values: np.ndarray) -> np.ndarray:
    """The same elements in other strides, now and then."""
    layout = rng.integers(4)
    if layout == 1:
        return np.ascontiguousarray(values.swapaxes(-1, -2)).swapaxes(-1, -2)
    if layout == 2:
        gaps = np.zeros((*values.shape[:-1], values.shape[-1] + 3), values.dtype)
        gaps[..., : values.shape[-1]] = values
        return gaps[..., : values.shape[-1]]
    if layout == 3 and values.ndim > 3:
        return np.ascontiguousarray(values.swapaxes(0, 1)).swapaxes(0, 1)
    return values


def check_products(name: str) -> dict[str, Any]:
    """Random sizes, batches, strides, alpha and beta."""
    dtype, tolerance = TYPES[name]
    rng = np.random.default_rng(7)
    worst, bad, refused = 0.0, [], 0
    for _ in range(40):
        rows, depth, columns = (int(n) for n in rng.choice([1, 3, 8, 17, 64, 130], 3))
        batch = tuple(int(n) for n in rng.integers(1, 4, rng.integers(0, 3)))
        left = strided(rng, drawn(rng, (*batch, rows, depth), dtype))
        right = drawn(rng, (*(batch if rng.random() < 0.6 else ()), depth, columns), dtype)
        right = strided(rng, right)
        alpha, beta = [(1, 0), (2.5, 0), (1, 1), (0.5, -1.5)][rng.integers(4)]
        added = drawn(rng, (*batch, rows, columns), dtype)
        a, b, c, out = (
            OnDevice(left),
            OnDevice(right),
            OnDevice(added),
            poisoned(added.shape, dtype),
        )
        planned = arranged(a.array, b.array, out.array, c.array)
        try:
            Plan(planned, Kind(name, measured=False)).run(  # type: ignore[arg-type]
                a.address, b.address, out.address, c.address, alpha, beta)  # fmt: skip
        except Unsupported:
            refused += 1
            continue
        found = error(out.back(), alpha * np.matmul(wide(left), wide(right)) + beta * wide(added))
        worst = max(worst, found)
        if found > tolerance * max(1, depth) ** 0.5:
            bad.append([left.shape, left.strides, right.shape, right.strides, alpha, beta, found])
    return {"worst": worst, "refused": refused, "bad": bad[:5]}


def gelu(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def check_epilogues() -> dict[str, Any]:
    """Bias and activations of a linear layer, forward and backward; errors by type."""
    found: dict[str, Any] = {}
    rng = np.random.default_rng(8)
    kinds = {"bias": numbers.BIAS, "relu": numbers.RELU_BIAS, "gelu": numbers.GELU_BIAS,
             "gelu kept": numbers.GELU_AUX_BIAS, "dgelu": numbers.DGELU,
             "bgradb": numbers.BGRADB}  # fmt: skip
    for name, (title, number) in product(("float32", "float16", "bfloat16"), kinds.items()):
        dtype, tolerance = TYPES[name]
        x, weight, bias = (drawn(rng, shape, dtype) for shape in ((64, 48), (32, 48), (32,)))
        z = wide(x) @ wide(weight).T + (wide(bias) if number in numbers.WITH_BIAS else 0)
        a, w, b, out = OnDevice(x), OnDevice(weight), OnDevice(bias), poisoned((64, 32), dtype)
        aux = OnDevice(drawn(rng, (64, 32), dtype))
        kept = wide(aux.values)
        planned = arranged(a.array, w.array.mT, out.array)
        slope = (gelu(kept + 1e-5) - gelu(kept - 1e-5)) / 2e-5
        want = {"bias": z, "relu": z.clip(0), "gelu": gelu(z), "gelu kept": gelu(z),
                "dgelu": z * slope}.get(title)  # fmt: skip
        if title == "bgradb":
            g = OnDevice(drawn(rng, (64, 32), dtype))
            out, want = poisoned((32, 48), dtype), wide(g.values).T @ wide(x)
            planned = arranged(g.array.mT, a.array, out.array)
            w = a
            a = g
        try:
            Plan(planned, Kind(name, number)).run(  # type: ignore[arg-type]
                a.address, w.address, out.address, bias=b.address, aux=aux.address)  # fmt: skip
        except Unsupported as refusal:
            found[f"{name} {title}"] = f"refused: {refusal}"
            continue
        errors = [error(out.back(), want)]  # type: ignore[arg-type]
        if title == "gelu kept":
            errors.append(error(aux.back(), z))
        if title == "bgradb":
            errors.append(error(b.back(), wide(a.values).sum(0)))
        right = max(errors) < tolerance * 8
        found[f"{name} {title}"] = [*errors, "right" if right else "WRONG"]
    return found


def check_others() -> dict[str, Any]:
    """TF32, whole numbers, adjoints, memory that is hardly aligned."""
    rng = np.random.default_rng(9)
    found: dict[str, Any] = {}
    x, y = (drawn(rng, (256, 256), np.float32) for _ in range(2))
    a, b = OnDevice(x), OnDevice(y)
    for tf32 in (False, True):
        out = poisoned((256, 256), np.float32)
        Plan(arranged(a.array, b.array, out.array), Kind("float32", tf32=tf32)).run(  # type: ignore[arg-type]
            a.address, b.address, out.address)  # fmt: skip
        found[f"tf32 {tf32}"] = error(out.back(), wide(x) @ wide(y))
    i, j = (rng.integers(-128, 128, (32, 48), np.int8) for _ in range(2))
    a, b, out = OnDevice(i), OnDevice(j), poisoned((32, 32), np.int32)
    Plan(arranged(a.array, b.array.mT, out.array), Kind("int8")).run(  # type: ignore[arg-type]
        a.address, b.address, out.address)  # fmt: skip
    found["int8"] = error(out.back(), i.astype(np.float64) @ j.T.astype(np.float64))
    p, q = (drawn(rng, (3, 16, 16), np.complex64) for _ in range(2))
    a, b, out = OnDevice(p), OnDevice(q), poisoned((3, 16, 16), np.complex64)
    Plan(arranged(a.array, b.array.mT, out.array), Kind("complex64", conjugated=(False, True))).run(  # type: ignore[arg-type]
        a.address, b.address, out.address)  # fmt: skip
    found["adjoint"] = error(out.back(), wide(p) @ wide(q).conj().swapaxes(1, 2))
    v = drawn(rng, (4097,), np.float16)
    a, b, out = OnDevice(v), OnDevice(np.eye(64, dtype=np.float16)), poisoned((64, 64), np.float16)
    Plan(arranged(contiguous((64, 64)), b.array, out.array), Kind("float16", alignment=2)).run(  # type: ignore[arg-type]
        a.address + 2, b.address, out.address)  # fmt: skip
    found["two bytes"] = error(out.back(), wide(v[1:].reshape(64, 64)))
    return found


def check_wide_images() -> dict[str, Any]:
    """Products of a network of 1x1 convolutions over 512 x 512 pixels, float16: forward, gradients
    of input and weight. Each is named before it runs: a training step of these died on a GPU."""
    pixels, found = (512 * 512, {}) if REAL else (512, {})
    for channels, filters in ((2, 256), (256, 256), (256, 1)):
        w, x = (
            repeated((filters, channels), np.float16),
            repeated((1, channels, pixels), np.float16),
        )
        y = repeated((1, filters, pixels), np.float16, 0.1)
        for title, left, right, shape in (
            ("forward", w.array, x.array, (1, filters, pixels)),
            ("input", w.array.mT, y.array, (1, channels, pixels)),
            ("weight", Array(y.array.shape[1:], y.array.strides[1:]),
             Array(x.array.shape[1:], x.array.strides[1:]).mT, (filters, channels)),
        ):  # fmt: skip
            print(f"    {channels} -> {filters} {title}", flush=True)
            of_left, of_right = {"forward": (w, x), "input": (w, y), "weight": (y, x)}[title]
            out = poisoned(shape, np.float16)
            plan = Plan(arranged(left, right, contiguous(shape)), Kind("float16"))  # type: ignore[arg-type]
            for _ in range(2):
                plan.run(of_left.address, of_right.address, out.address)
            got = out.back()[..., :64] if title != "weight" else out.back()
            a, b = (wide(one.values.reshape(one.values.shape[-2:])) for one in (of_left, of_right))
            if title == "weight":
                want = a @ b.T
            else:
                want = (a if title == "forward" else a.T) @ b[:, :64]
            found[f"{channels} -> {filters} {title}"] = error(got.reshape(want.shape), want)
    return found


def check_row_order() -> dict[str, Any]:
    """Whether the library takes row-major layouts with a bias for each row: what a convolution of
    one tap over row-major images would need."""
    lt, found = cublaslt.library(0), {}
    rng = np.random.default_rng(10)
    for name in ("float16", "bfloat16", "float32"):
        dtype, tolerance = TYPES[name]
        w, x, bias = (drawn(rng, s, dtype) for s in ((64, 32), (2, 32, 128), (64,)))
        a, b, c, out = OnDevice(w), OnDevice(x), OnDevice(bias), poisoned((2, 64, 128), dtype)
        kind = Kind(name, numbers.BIAS)
        description = lt.description(kind, {"epilogue": numbers.BIAS, "bias": c.address})
        layouts = []
        for rows, columns, step in ((64, 32, 0), (32, 128, 32 * 128), (64, 128, 64 * 128)):
            made = lt._made(
                "cublasLtMatrixLayoutCreate", numbers.TYPES[name], rows, columns, columns
            )
            attributes = {"order": (1, ctypes.c_int32), **numbers.LAYOUT}
            lt._put("MatrixLayout", made, attributes, {"order": 1, "batch": 2, "step": step})
            layouts.append(made)
        one, zero = cublaslt.scalar(name, 1)[1], cublaslt.scalar(name, 0)[1]
        given = (layouts[0], layouts[1], layouts[2], layouts[2])
        try:
            algorithm = lt.algorithms(description, given, kind, 256)[0]
            space = workspace(cublaslt.WORKSPACE)
            lt.foreign.call("cublasLtMatmul", lt.handle, description, one, a.address, layouts[0],
                            b.address, layouts[1], zero, out.address, layouts[2], out.address,
                            layouts[2], cublaslt.addressof(algorithm), space, cublaslt.WORKSPACE,
                            0)  # fmt: skip
        except Exception as refusal:
            found[name] = f"refused: {refusal}"
            continue
        wrong = error(out.back(), wide(w) @ wide(x) + wide(bias)[:, None])
        found[name] = [wrong, "right" if wrong < tolerance * 8 else "WRONG"]
    return found


def windows(x: np.ndarray, w: np.ndarray, padding: Any, stride: Any, dilation: Any) -> np.ndarray:
    """A convolution by its definition, one output position after the other."""
    x, w = wide(x), wide(w)
    padded = np.pad(x, [(0, 0), (0, 0), *((pad, pad) for pad in padding)])
    sizes = [(size - gap * (taps - 1) - 1) // step + 1 for size, taps, step, gap in zip(
        padded.shape[2:], w.shape[2:], stride, dilation, strict=True)]  # fmt: skip
    groups = x.shape[1] // w.shape[1]
    result = np.zeros((len(x), len(w), *sizes))
    size = len(w) // groups
    for place in product(*map(range, sizes)):
        window = tuple(slice(p * step, p * step + gap * (taps - 1) + 1, gap) for
                       p, step, taps, gap in zip(place, stride, w.shape[2:], dilation,
                                                 strict=True))  # fmt: skip
        part = padded[(slice(None), slice(None), *window)]
        for group in range(groups):
            inputs = part[:, group * w.shape[1] : (group + 1) * w.shape[1]].reshape(len(x), -1)
            filters = slice(group * size, (group + 1) * size)
            result[(slice(None), filters, *place)] = inputs @ w[filters].reshape(size, -1).T
    return result


def channels_last(values: np.ndarray) -> np.ndarray:
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(values, 1, -1)), -1, 1)


CASES = {
    "1d": ((2, 16, 20), (24, 16, 3), (1,), (1,), (1,)),
    "2d": ((2, 16, 10, 9), (24, 16, 3, 3), (1, 1), (1, 1), (1, 1)),
    "2d strided": ((2, 16, 10, 9), (8, 16, 3, 2), (1, 0), (2, 1), (1, 2)),
    "2d groups": ((2, 16, 10, 9), (16, 4, 3, 3), (1, 1), (1, 1), (1, 1)),
    "2d depthwise": ((2, 16, 10, 9), (16, 1, 3, 3), (1, 1), (1, 1), (1, 1)),
    "3d": ((1, 8, 6, 6, 6), (8, 8, 3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1)),
}
FUSED = ("float16", "float32")
"""Types of which convolutions with a bias are checked: cuDNN compiles a kernel for each."""
TOLERANCES = {"float32": 1e-4, "float64": 1e-10, "float16": 1e-2, "bfloat16": 6e-2}


def check_convolutions(name: str) -> dict[str, Any]:
    """The three maps, both formats, bias and relu: errors; adjoints by probing."""
    found: dict[str, Any] = {}
    dtype = TYPES[name][0]
    rng = np.random.default_rng(11)
    for title, (x_shape, w_shape, *given) in CASES.items():
        x, w = drawn(rng, x_shape, dtype), drawn(rng, w_shape, dtype)
        want = windows(x, w, *given)
        grad, bias = drawn(rng, want.shape, dtype), drawn(rng, (len(w),), dtype)
        shift = wide(bias).reshape(-1, *(1,) * (x.ndim - 2))
        for form in (np.asarray, channels_last):
            if form is channels_last and x.ndim == 3:
                continue
            a, b, g, s = (OnDevice(form(v) if v.ndim > 1 else v) for v in (x, w, grad, bias))
            label = f"{title} {'last' if form is channels_last else 'rows'}"
            fused = ("bias", "bias relu") if title == "2d" and name in FUSED else ()
            for what in ("forward", *fused, "data", "filter"):
                if late():
                    return found | {"left out": "no time"}
                result = {"data": x, "filter": w}.get(what, grad)
                out = OnDevice(form(np.zeros_like(result)))
                running().fill(out.address, POISON, 1, out.nbytes, 0)
                kind = what if what in ("data", "filter") else "forward"
                asked = Convolution(kind, name, a.array, b.array, g.array, *given,
                                    biased="bias" in what, relu="relu" in what)  # fmt: skip
                try:
                    plan = convolution(asked, Wishes(tf32=False))
                except Unsupported as refusal:
                    found[f"{label} {what}"] = f"refused: {refusal}"
                    continue
                places = {"data": (out, b, g), "filter": (a, out, g)}.get(what, (a, b, out))
                extra = (s.address,) if "bias" in what else ()
                plan.run(*(one.address for one in places), *extra)
                got = out.back()
                if kind == "forward":
                    total = want + shift if extra else want
                    wrong = error(got, total.clip(0) if "relu" in what else total)
                else:
                    probe = rng.standard_normal(result.shape)
                    pair = (probe, w) if what == "data" else (x, probe)
                    expected = (windows(*pair, *given) * wide(grad)).sum()
                    wrong = abs(float((wide(got) * probe).sum() - expected))
                    wrong /= 1 + float(np.abs(wide(got)).sum())
                if not wrong < TOLERANCES[name]:
                    found[f"{label} {what}"] = f"WRONG {wrong}"
                found["checked"] = found.get("checked", 0) + 1
    return found


def check_attention() -> dict[str, Any]:
    """cuDNN's graph of attention: errors of values and of the logarithms of sums."""
    found: dict[str, Any] = {}
    rng = np.random.default_rng(12)
    for name, causal, size in product(("float16", "bfloat16"), (False, True), (64, 128)):
        dtype = TYPES[name][0]
        q, k, v = (drawn(rng, (2, 128, 3, size), dtype).transpose(0, 2, 1, 3) for _ in range(3))
        a, b, c, out = (OnDevice(one) for one in (q, k, v, np.zeros_like(q)))
        sums = poisoned((2, 3, 128, 1), np.float32)
        asked = Attention(name, a.array, b.array, c.array, out.array, causal)
        title = f"{name} {'causal ' if causal else ''}{size}"
        try:
            plan = cudnn_attention.forward(asked, Wishes())
        except Exception as refusal:
            found[title] = f"refused: {refusal}"
            continue
        plan.run(a.address, b.address, c.address, out.address, sums.address, size**-0.5)
        scores = wide(q) @ wide(k).swapaxes(2, 3) * size**-0.5
        if causal:
            scores[..., np.arange(128) > np.arange(128)[:, None]] = -np.inf
        powers = np.exp(scores)
        totals = powers.sum(3, keepdims=True)
        wrong = [error(out.back(), powers / totals @ wide(v)), error(sums.back(), np.log(totals))]
        found[title] = [*wrong, "right" if max(wrong) < 3e-2 else "WRONG"]
    return found


def check_fft() -> dict[str, Any]:
    """cuFFT: errors of transforms of one to three dims."""
    found: dict[str, Any] = {}
    rng = np.random.default_rng(13)
    for sizes, double in product(((64,), (30,), (12, 10), (8, 6, 10)), (False, True)):
        real, full = (np.float64, np.complex128) if double else (np.float32, np.complex64)
        dims = tuple(range(1, len(sizes) + 1))
        x, z = drawn(rng, (3, *sizes), real), drawn(rng, (3, *sizes), full)
        half = np.fft.rfftn(x, axes=dims).astype(full)
        count = np.prod(sizes)
        for title, given, want, forward in (
            ("c2c", z, np.fft.fftn(z, axes=dims), True),
            ("inverse", z, np.fft.ifftn(z, axes=dims) * count, False),
            ("r2c", x, np.fft.rfftn(x, axes=dims), True),
            ("c2r", half, x.astype(np.float64) * count, False),
        ):
            kind = np.dtype(full if want.dtype.kind == "c" else real)
            a, out = OnDevice(given), poisoned(want.shape, kind)
            plan = cufft.transform(0, given.dtype.name, kind.name, sizes, 3)
            plan.run(a.address, out.address, forward)
            wrong = error(out.back(), want)
            right = wrong < (1e-12 if double else 1e-5)
            found[f"{title} {sizes} {kind.name}"] = [wrong, "right" if right else "WRONG"]
    return found


def check_solver() -> dict[str, Any]:
    """cuSOLVER: errors of factors, solutions and spectra."""
    found: dict[str, Any] = {}
    rng = np.random.default_rng(14)
    for name in cusolver.REAL:
        dtype = TYPES.get(name, (np.dtype(name), 0))[0]
        limit = 1e-10 if cusolver.REAL[name] == "float64" else 1e-3
        library = cusolver.library(0)
        n = 24
        a = drawn(rng, (n, n), dtype)
        h = a @ a.conj().T + n * np.eye(n, dtype=dtype)
        info = poisoned((1,), np.int32)
        columns = lambda m: OnDevice(np.asfortranarray(m))  # noqa: E731

        held = columns(h)
        library.cholesky(name, n, held.address, False, info.address)
        lower = np.tril(wide(held.back()))
        errors = {"cholesky": error(lower @ lower.conj().T, wide(h))}

        factors, pivots, right = columns(a), poisoned((n,), np.int64), drawn(rng, (n, 3), dtype)
        library.lu(name, n, n, factors.address, pivots.address, info.address)
        b = columns(right)
        library.solve(name, n, 3, factors.address, pivots.address, b.address, info.address)
        errors["solve"] = error(wide(a) @ wide(b.back()), wide(right))

        held, values = columns(h), poisoned((n,), np.dtype(cusolver.REAL[name]))
        library.eigh(name, n, held.address, values.address, False, True, info.address)
        vectors = wide(held.back())
        errors["eigh"] = error((vectors * values.back()) @ vectors.conj().T, wide(h))

        m = drawn(rng, (n + 5, n), dtype)
        held = columns(m)
        u, v = columns(np.zeros((n + 5, n), dtype)), columns(np.zeros((n, n), dtype))
        library.svd(name, n + 5, n, held.address, values.address, u.address, v.address, False,
                    info.address)  # fmt: skip
        errors["svd"] = error((wide(u.back()) * values.back()) @ wide(v.back()), wide(m))
        for title, wrong in errors.items():
            found[f"{title} {name}"] = [wrong, "right" if wrong < limit else "WRONG"]
        found[f"info {name}"] = int(info.back()[0])
    return found


def check_measuring() -> dict[str, Any]:
    """Plans that choose among candidates give the same values; how many there were."""
    x, y = repeated((1024, 1024), np.float16), repeated((1024, 1024), np.float16)
    out = poisoned((1024, 1024), np.float16)
    plan = Plan(arranged(x.array, y.array, out.array), Kind("float16"))  # type: ignore[arg-type]
    plan.run(x.address, y.address, out.address)
    chosen = [number for number, one in enumerate(plan.found)
              if cublaslt.addressof(one) == plan.chosen]  # fmt: skip
    want = wide(x.values[:64]) @ wide(y.values)
    return {"candidates": len(plan.found), "chosen": chosen, "error": error(out.back()[:64], want)}


# ---- times beside PyTorch


def time_products(torch: Any) -> dict[str, Any]:
    """us: first candidate, best, PyTorch; TF/s of the best."""
    found: dict[str, Any] = {}
    for label, name, tf32 in (("bf16", "bfloat16", False), ("f16", "float16", False),
                              ("tf32", "float32", True), ("f32", "float32", False)):  # fmt: skip
        for n in (256, 1024, 4096, 8192):
            if late():
                return found
            if label == "f32" and n == 8192:
                continue
            dtype = TYPES[name][0]
            x, y, out = (
                repeated((n, n), dtype),
                repeated((n, n), dtype),
                poisoned((1, n * n), dtype),
            )
            plan = Plan(arranged(x.array, y.array, contiguous((n, n))), Kind(name, tf32=tf32))  # type: ignore[arg-type]
            go = lambda p=plan, a=x, b=y, o=out: p.run(a.address, b.address, o.address)  # noqa: E731
            plan.settled, waits = True, plan.settled
            first = timed(go)
            plan.settled = waits
            go()
            best = timed(go)
            theirs = None
            if torch is not None:
                torch.backends.cuda.matmul.allow_tf32 = tf32
                a, b = (torch.randn(n, n, device="cuda", dtype=getattr(torch, name))
                        for _ in range(2))  # fmt: skip
                c = torch.empty_like(a)
                work = lambda a=a, b=b, c=c: torch.mm(a, b, out=c)  # noqa: E731
                theirs = round(torch_timed(torch, work), 1)
            found[f"{label} {n}"] = [round(first, 1), round(best, 1), theirs,
                                     round(2 * n**3 / best / 1e6, 1)]  # fmt: skip
    return found


def time_linear(torch: Any) -> dict[str, Any]:
    """A transformer's linear layer 8192x768 -> 3072, bf16: us, ours and PyTorch's."""
    tokens, narrow, broad = 8192, 768, 3072
    dtype = TYPES["bfloat16"][0]
    x, w, b = (repeated(s, dtype, 0.1) for s in ((tokens, narrow), (broad, narrow), (broad,)))
    g, h, aux = (repeated((tokens, broad), dtype, 0.1) for _ in range(3))
    w2, dw = repeated((narrow, broad), dtype, 0.1), poisoned((broad, narrow), dtype)
    dy, db = repeated((tokens, narrow), dtype, 0.1), poisoned((broad,), dtype)
    forward, backward = (
        arranged(x.array, w.array.mT, h.array),
        arranged(dy.array, w2.array, h.array),
    )
    weight = arranged(g.array.mT, x.array, dw.array)
    rows = {
        "product": (forward, numbers.DEFAULT, x, w, h),
        "bias": (forward, numbers.BIAS, x, w, h),
        "gelu of bias": (forward, numbers.GELU_BIAS, x, w, h),
        "gelu of bias, kept": (forward, numbers.GELU_AUX_BIAS, x, w, h),
        "dgelu": (backward, numbers.DGELU, dy, w2, h),
        "weight": (weight, numbers.DEFAULT, g, x, dw),
        "weight and bias": (weight, numbers.BGRADB, g, x, dw),
    }
    found: dict[str, Any] = {}
    for title, (planned, epilogue, left, right, out) in rows.items():
        plan = Plan(planned, Kind("bfloat16", epilogue))  # type: ignore[arg-type]
        shift = db if epilogue == numbers.BGRADB else b
        go = lambda p=plan, i=left, j=right, o=out, s=shift: p.run(  # noqa: E731
            i.address, j.address, o.address, bias=s.address, aux=aux.address)  # fmt: skip
        go()
        found[title] = [round(timed(go), 1)]
    if torch is not None:
        _time_linear_of_torch(torch, found, (tokens, narrow, broad))
    return found


def _time_linear_of_torch(torch: Any, found: dict[str, Any], sizes: tuple[int, int, int]) -> None:
    tokens, narrow, broad = sizes
    F = torch.nn.functional
    draw = lambda *s: torch.randn(*s, device="cuda", dtype=torch.bfloat16) * 0.1  # noqa: E731
    x, w, b, g, dy, w2 = (draw(tokens, narrow), draw(broad, narrow), draw(broad),
                          draw(tokens, broad), draw(tokens, narrow),
                          draw(narrow, broad))  # fmt: skip
    z = draw(tokens, broad)
    for title, work in {
        "product": lambda: F.linear(x, w), "bias": lambda: F.linear(x, w, b),
        "gelu of bias": lambda: F.gelu(F.linear(x, w, b), approximate="tanh"),
        "dgelu": lambda: torch.ops.aten.gelu_backward(dy @ w2, z, approximate="tanh"),
        "weight": lambda: g.t() @ x, "weight and bias": lambda: (g.t() @ x, g.sum(0)),
    }.items():  # fmt: skip
        found[title].append(round(torch_timed(torch, work), 1))


SHAPES = (((32, 64, 56, 56), (64, 64, 3, 3)), ((32, 256, 28, 28), (256, 256, 3, 3)))
ENGINES = 4


def time_convolutions(torch: Any) -> dict[str, Any]:
    """us of forward, data, filter: first engine, best engine, PyTorch (benchmark on)."""
    found: dict[str, Any] = {}
    for (x_shape, w_shape), (label, name) in product(SHAPES, (("f16", "float16"),
                                                              ("tf32", "float32"))):  # fmt: skip
        dtype, pad = TYPES[name][0], w_shape[2] // 2
        y_shape = (x_shape[0], w_shape[0], *x_shape[2:])
        x, w, y = (repeated(shape, dtype, 0.1) for shape in (x_shape, w_shape, y_shape))
        for order in ("rows", "last"):
            forms = [of_format(shape, order) for shape in (x_shape, w_shape, y_shape)]
            given = (pad, pad), (1, 1), (1, 1)
            if late() or (order == "rows" and label == "tf32"):
                continue
            for kind in ("forward", "data", "filter"):
                title = f"{'x'.join(map(str, x_shape))} {w_shape[2]}x{w_shape[3]} {label} {order}"
                try:
                    plan = convolution(
                        Convolution(kind, name, *forms, *given), Wishes(limit=ENGINES)
                    )
                except Unsupported as refusal:
                    found[f"{title} {kind}"] = str(refusal)
                    continue
                out = {"forward": (2, y), "data": (0, x), "filter": (1, w)}[kind]
                at = x.address, w.address, y.address
                go = lambda p=plan, a=at, s=(out[0], out[1].nbytes): p.run(*a, scratch=s)  # noqa: E731
                plan.settled = True
                first = timed(go, 0.02)
                plan.settled = len(plan.found) == 1
                go()
                found[f"{title} {kind}"] = [round(first, 1), round(timed(go, 0.02), 1)]
            if torch is not None:
                shapes = (x_shape, w_shape, y_shape)
                _time_convolutions_of_torch(torch, found, title, shapes, name, order, pad)
    return found


def of_format(shape: tuple[int, ...], order: str) -> Array:
    if order == "rows":
        return contiguous(shape)
    n, c, h, w = shape
    return Array(shape, (h * w * c, 1, w * c, c))


def _time_convolutions_of_torch(torch: Any, found: dict[str, Any], title: str, shapes: Any,
                                name: str, order: str, pad: int) -> None:  # fmt: skip
    torch.backends.cudnn.benchmark = True
    form = torch.channels_last if order == "last" else torch.contiguous_format
    x, w, y = (torch.randn(s, device="cuda", dtype=getattr(torch, name)).to(memory_format=form)
               for s in shapes)  # fmt: skip
    back = torch.ops.aten.convolution_backward
    for kind, work in {
        "forward": lambda: torch.nn.functional.conv2d(x, w, padding=pad),
        "data": lambda: back(y, x, w, None, [1, 1], [pad, pad], [1, 1], False, [0, 0], 1,
                             [True, False, False]),
        "filter": lambda: back(y, x, w, None, [1, 1], [pad, pad], [1, 1], False, [0, 0], 1,
                               [False, True, False]),
    }.items():  # fmt: skip
        entry = found.get(f"{title} {kind}")
        if isinstance(entry, list):
            entry.append(round(torch_timed(torch, work, 0.02), 1))


def time_attention(torch: Any) -> dict[str, Any]:
    """us of attention forward, 8 x 12 heads of 512 x 64, bf16: ours through cuDNN, PyTorch's."""
    found: dict[str, Any] = {}
    dtype = TYPES["bfloat16"][0]
    shape, strides = (8, 12, 512, 64), (512 * 12 * 64, 64, 12 * 64, 1)
    q, k, v, out = (repeated((8, 512, 12, 64), dtype) for _ in range(4))
    sums = poisoned((8, 12, 512, 1), np.float32)
    array = Array(shape, strides)
    for causal in (False, True):
        title = "causal" if causal else "whole"
        try:
            plan = cudnn_attention.forward(
                Attention("bfloat16", array, array, array, array, causal), Wishes(limit=1)
            )
            go = lambda p=plan: p.run(q.address, k.address, v.address, out.address,  # noqa: E731
                                      sums.address, 0.125)  # fmt: skip
            found[title] = [round(timed(go), 1)]
        except Unsupported as refusal:
            found[title] = [f"refused: {refusal}"]
        if torch is not None:
            a, b, c = (torch.randn(8, 512, 12, 64, device="cuda", dtype=torch.bfloat16)
                       .transpose(1, 2) for _ in range(3))  # fmt: skip
            attend = torch.nn.functional.scaled_dot_product_attention
            work = lambda x=(a, b, c), f=causal, act=attend: act(*x, is_causal=f)  # noqa: E731
            found[title].append(round(torch_timed(torch, work), 1))
    return found


def time_host() -> dict[str, float]:
    """us of host time of a call with everything planned."""
    x = repeated((16, 16), np.float16)
    plan = Plan(arranged(x.array, x.array, x.array), Kind("float16"))  # type: ignore[arg-type]
    out = poisoned((16, 16), np.float16)
    found = {"product": host_us(lambda: plan.run(x.address, x.address, out.address))}
    plan = Plan(plan.product, Kind("float16", numbers.BIAS))
    found["with bias"] = host_us(
        lambda: plan.run(x.address, x.address, out.address, bias=x.address)
    )
    a, w = repeated((1, 8, 8, 8), np.float16), repeated((8, 8, 3, 3), np.float16)
    y = poisoned((1, 8, 8, 8), np.float16)
    asked = Convolution("forward", "float16", a.array, w.array, y.array, (1, 1), (1, 1), (1, 1))
    conv = convolution(asked, Wishes())
    found["convolution"] = host_us(lambda: conv.run(a.address, w.address, y.address))
    return found


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--out", default="libraries.json")
    report = Report(arguments.parse_args().out)
    report.run("versions", versions)
    report.run("cuBLASLt", lambda: str(cublaslt.library(0).handle is not None))
    for name in TYPES:
        report.run(f"products {name}", lambda name=name: check_products(name))
    report.run("epilogues", check_epilogues)
    report.run("other products", check_others)
    report.run("measuring", check_measuring)
    if REAL:
        report.run("bias by row", check_row_order)
    report.run("cuDNN", lambda: str(cudnn.library(0).handle is not None))
    for name in FUSED:
        report.run(f"convolutions {name}", lambda name=name: check_convolutions(name), 25)
    report.run("attention", check_attention, 32)
    report.run("cuFFT", check_fft, 40)
    report.run("cuSOLVER", check_solver, 40)
    if REAL:
        times(report)
    report.run("wide images", check_wide_images)
    for name in ("bfloat16", "float64"):
        report.run(f"convolutions {name}", lambda name=name: check_convolutions(name))


def times(report: Report) -> None:
    """What needs a GPU."""
    torch = _find_torch()
    report.found["torch"] = None if torch is None else torch.__version__
    report.run("host us", time_host)
    report.run("time of products", lambda: time_products(torch))
    report.run("time of a linear layer", lambda: time_linear(torch))
    report.run("time of attention", lambda: time_attention(torch))
    report.run("time of convolutions", lambda: time_convolutions(torch))


if __name__ == "__main__":
    main()
