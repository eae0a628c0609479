"""Fourier transforms."""

from __future__ import annotations

from typing import Any

from .drawing import Drawing, called

ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
TWO = ("fft2", "ifft2", "rfft2", "irfft2", "hfft2", "ihfft2")
MANY = ("fftn", "ifftn", "rfftn", "irfftn", "hfftn", "ihfftn")
OF_REAL = ("rfft", "ihfft")
NORMS = ("forward", "backward", "ortho", None)


def drawn(p: Drawing) -> None:
    p.dtype = p.one("float32", "float64", "float32")
    p.one(_one, _one, _two, _many, _many, _shift, _stft, _istft)(p)


def _type(p: Drawing, name: str) -> str:
    real = p.one(p.dtype, p.dtype, p.dtype, "int64")
    complex_one = "complex64" if p.dtype == "float32" else "complex128"
    return real if name.startswith(OF_REAL) else p.one(real, complex_one, complex_one)


def _one(p: Drawing) -> None:
    name = p.one(*ONE)
    shape = p.sizes(p.size(1, 4), 1 if p.chance(0.2) else 2, 7)
    x = p.tensor(shape, _type(p, name))
    options = p.some(0.5, dim=p.dim(len(shape)), norm=p.one(*NORMS))
    options.update(p.some(0.3, n=p.size(1, 9)))
    p.gradients(p.result(called(f"torch.fft.{name}", x, **options)))


def _two(p: Drawing) -> None:
    name = p.one(*TWO)
    dims = p.size(2, 4)
    x = p.tensor(p.sizes(dims, 2, 6), _type(p, name))
    over = p.random.sample(range(dims), 2)
    options = p.some(0.4, dim=p.one(tuple(over), [over[0], over[1] - dims]), norm=p.one(*NORMS))
    options.update(p.some(0.3, s=p.sizes(2, 1, 7)))
    p.gradients(p.result(called(f"torch.fft.{name}", x, **options)))


def _many(p: Drawing) -> None:
    name = p.one(*MANY)
    dims = p.size(1, 4)
    x = p.tensor(p.sizes(dims, 2, 6), _type(p, name))
    count = p.size(1, dims)
    over = p.random.sample(range(dims), count)
    options: dict[str, Any] = p.some(0.6, dim=tuple(over), norm=p.one(*NORMS))
    options.update(p.some(0.3, s=p.sizes(count, 1, 7)))
    p.gradients(p.result(called(f"torch.fft.{name}", x, **options)))


def _shift(p: Drawing) -> None:
    dims = p.size(1, 3)
    x = p.tensor(p.sizes(dims, 1, 6), _type(p, "fft"))
    options = p.some(0.5, dim=p.one(p.dim(dims), tuple(p.random.sample(range(dims), 1))))
    name = p.one("fftshift", "ifftshift")
    p.gradients(p.result(called(f"torch.fft.{name}", x, **options)))


def _stft(p: Drawing) -> None:
    n = p.one(4, 6, 8, 5)
    x = p.tensor((*p.one((), (2,), (1,)), p.size(8, 24)), _type(p, "rfft" if p.chance(0.7) else ""))
    options: dict[str, Any] = p.some(
        0.4, hop_length=p.size(1, 4), center=p.one(True, False), normalized=p.one(True, False),
        onesided=p.one(True, False), pad_mode=p.one("constant", "reflect", "replicate")
    )  # fmt: skip
    if p.chance(0.5):
        length = options["win_length"] = p.size(1, n)
        options["window"] = p.tensor((length,), p.dtype)
    text = called("torch.stft", x, n, **options, return_complex=True)
    p.gradients(p.result(text))


def _istft(p: Drawing) -> None:
    n = p.one(4, 6, 8)
    kind = "complex64" if p.dtype == "float32" else "complex128"
    onesided = p.chance(0.7)
    bins = n // 2 + 1 if onesided else n
    x = p.tensor((*p.one((), (2,), (1,)), bins, p.size(2, 7)), kind)
    options: dict[str, Any] = p.some(
        0.4, hop_length=p.size(1, max(n // 2, 1)), normalized=p.one(True, False),
        length=p.size(4, 20), return_complex=not onesided, center=p.one(True, True, False)
    )  # fmt: skip
    options["onesided"] = onesided
    options["window"] = p.let("w", f"make({p.seed()}, ({n},), {p.dtype!r}).abs() + 0.5")
    p.gradients(p.result(called("torch.istft", x, n, **options)))
