"""cuBLASLt against NumPy."""

from __future__ import annotations

import ctypes
from itertools import product
from typing import Any

import numpy as np

from flambeau._runtime.cuda.libraries import cublaslt
from flambeau._runtime.cuda.libraries import cublaslt_numbers as numbers
from flambeau._runtime.cuda.libraries.cublaslt import Kind, Plan, Unsupported
from flambeau._runtime.cuda.libraries.matrices import Array, arranged, contiguous
from flambeau._runtime.cuda.libraries.workspaces import workspace
from scripts.gpu_check.libraries.arrays import (
    REAL,
    TYPES,
    OnDevice,
    drawn,
    error,
    poisoned,
    repeated,
    wide,
)


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
