"""cuFFT and cuSOLVER against NumPy."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from flambeau._runtime.cuda.libraries import cufft, cusolver
from scripts.gpu_check.libraries.arrays import TYPES, OnDevice, drawn, error, poisoned, wide


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
