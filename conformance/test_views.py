"""Shapes, strides, offsets and sharing of views and rearrangements, against PyTorch."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch

import flambeau
from tests.random_seeds import generator

SIZES = (0, 1, 1, 2, 3, 4)


def twin(rng: random.Random, ndim: int) -> tuple[Any, Any]:
    """The same tensor in both libraries: plain, transposed, sliced, expanded or channels-last."""
    shape = [rng.choice(SIZES) for _ in range(ndim)]
    count = 1
    for size in shape:
        count *= size
    pair = [lib.arange(count).reshape(shape) for lib in (torch, flambeau)]
    for _ in range(rng.randrange(3)):
        change = rng.choice(CHANGES)
        seed = rng.random()
        pair = [change(random.Random(seed), tensor) for tensor in pair]
    return pair[0], pair[1]


def permuted(rng: random.Random, x: Any) -> Any:
    return x.permute(rng.sample(range(x.ndim), x.ndim)) if x.ndim else x


def halved(rng: random.Random, x: Any) -> Any:
    dim = rng.randrange(x.ndim) if x.ndim else 0
    return x.narrow(dim, x.shape[dim] // 2, x.shape[dim] - x.shape[dim] // 2) if x.ndim else x


def widened(rng: random.Random, x: Any) -> Any:
    return x.expand([n if n != 1 else 3 for n in x.shape]) if rng.random() < 0.5 else x


def last(rng: random.Random, x: Any) -> Any:
    if x.ndim != 4:
        return x
    library = torch if isinstance(x, torch.Tensor) else flambeau
    return x.contiguous(memory_format=library.channels_last)


CHANGES = (permuted, halved, widened, last)


def dim(rng: random.Random, x: Any, extra: int = 0) -> int:
    length = max(x.ndim + extra, 1)
    return rng.randrange(-length, length)


def other_shape(rng: random.Random, x: Any) -> list[int]:
    shape = [n for n in x.shape if n != 1 or rng.random() < 0.5]
    for _ in range(rng.randrange(3)):
        shape.insert(rng.randrange(len(shape) + 1), 1)
    if len(shape) > 1 and rng.random() < 0.5:
        place = rng.randrange(len(shape) - 1)
        shape[place : place + 2] = [shape[place] * shape[place + 1]]
    return shape


CALLS: dict[str, Callable[[random.Random, Any], Any]] = {
    "view": lambda rng, x: x.view(other_shape(rng, x)),
    "reshape": lambda rng, x: x.reshape(other_shape(rng, x)),
    "reshape_flat": lambda rng, x: x.reshape(-1),
    "flatten": lambda rng, x: x.flatten(),
    "ravel": lambda rng, x: x.ravel(),
    "unsqueeze": lambda rng, x: x.unsqueeze(dim(rng, x, 1)),
    "squeeze": lambda rng, x: x.squeeze(),
    "squeeze_dim": lambda rng, x: x.squeeze(dim(rng, x)),
    "transpose": lambda rng, x: x.transpose(dim(rng, x), dim(rng, x)),
    "movedim": lambda rng, x: x.movedim(dim(rng, x), dim(rng, x)),
    "expand": lambda rng, x: x.expand(2, 1, *[n if n != 1 else 2 for n in x.shape]),
    "expand_one": lambda rng, x: x.expand(1, *x.shape),
    "select": lambda rng, x: x.select(dim(rng, x), 0),
    "narrow": lambda rng, x: x.narrow(dim(rng, x), 0, 1),
    "diagonal": lambda rng, x: x.diagonal(rng.randrange(-2, 3), 0, -1),
    "unfold": lambda rng, x: x.unfold(dim(rng, x), rng.randrange(3), 1 + rng.randrange(2)),
    "split": lambda rng, x: x.split(1 + rng.randrange(3), dim(rng, x)),
    "chunk": lambda rng, x: x.chunk(1 + rng.randrange(3), dim(rng, x)),
    "tensor_split": lambda rng, x: x.tensor_split(1 + rng.randrange(3), dim(rng, x)),
    "unbind": lambda rng, x: x.unbind(dim(rng, x)),
    "contiguous": lambda rng, x: x.contiguous(),
    "clone": lambda rng, x: x.clone(),
    "flip": lambda rng, x: x.flip(dim(rng, x)),
    "roll": lambda rng, x: x.roll(1, dim(rng, x)),
    "roll_flat": lambda rng, x: x.roll(2),
    "rot90": lambda rng, x: x.rot90(rng.randrange(-2, 5), (0, -1)),
    "repeat": lambda rng, x: x.repeat([1 + rng.randrange(2) for _ in range(x.ndim + 1)]),
    "tril": lambda rng, x: x.tril(rng.randrange(-1, 2)),
    "diag_embed": lambda rng, x: x.diag_embed(rng.randrange(-1, 2)),
    "cat": lambda rng, x: library_of(x).cat([x, x], dim(rng, x)),
    "stack": lambda rng, x: library_of(x).stack([x, x], dim(rng, x, 1)),
    "atleast_3d": lambda rng, x: library_of(x).atleast_3d(x),
    "pad": lambda rng, x: library_of(x).constant_pad_nd(x, [1, rng.randrange(-1, 2)], 7),
}


COPIES = frozenset(("clone", "flip", "roll", "rot90"))
"""Not compared for empty inputs: torch derives the strides of such copies from strides of 0."""


LOOSE = frozenset(("unfold", "tensor_split", "stack", "diagonal"))
"""Here strides that no element needs are not compared: those of dims of size 1, and all of results
without elements. NumPy gives new arrays without elements strides of 0, so that an expanded one
cannot be told from them; and torch's format of two stacked tensors is not written down."""


def needed_strides(told: Any) -> Any:
    """What `described` gives, without those strides and what follows from them."""
    if isinstance(told, list):
        return [needed_strides(part) for part in told]
    if not isinstance(told[0], tuple):
        return told
    (shape, strides, *rest), _, values = told
    kept = [] if 0 in shape else [n for size, n in zip(shape, strides, strict=True) if size != 1]
    return (shape, kept, *rest), values


def library_of(x: Any) -> Any:
    return torch if isinstance(x, torch.Tensor) else flambeau


def described(result: Any, source: Any) -> Any:
    """What has to agree: geometry, sharing, values; or the error."""
    if isinstance(result, tuple):
        return [described(part, source) for part in result]
    shares = result.untyped_storage().data_ptr() == source.untyped_storage().data_ptr()
    shares = shares and source.numel() > 0 and result.numel() > 0
    offset = result.storage_offset() if shares else 0
    geometry = (tuple(result.shape), result.stride(), offset, shares, result is source)
    formats = [library_of(result).contiguous_format]
    if result.ndim == 4:
        formats.append(library_of(result).channels_last)
    contiguity = [result.is_contiguous(memory_format=f) for f in formats]
    return geometry, contiguity, result.tolist()


def outcome(call: Callable[..., Any], seed: float, x: Any) -> Any:
    try:
        return described(call(random.Random(seed), x), x)
    except (RuntimeError, IndexError, ValueError) as error:
        return type(error).__name__, str(error).split("\n")[0]


@pytest.mark.parametrize("name", CALLS)
def test_geometry(name: str) -> None:
    """Random shapes with sizes 0 and 1, over transposed, sliced and expanded inputs."""
    rng = generator(name)
    for _ in range(120):
        expected_input, found_input = twin(rng, rng.randrange(5))
        assert tuple(expected_input.shape) == tuple(found_input.shape)
        assert expected_input.stride() == found_input.stride()
        if name in COPIES and not expected_input.numel():
            continue
        seed = rng.random()
        expected = outcome(CALLS[name], seed, expected_input)
        found = outcome(CALLS[name], seed, found_input)
        if name in LOOSE:
            expected, found = needed_strides(expected), needed_strides(found)
        assert found == expected, (expected_input.shape, expected_input.stride())


# ---- as_strided_scatter: places are counted in the memory of the tensor

SOURCES: dict[str, Callable[[Any, Any], Any]] = {
    "whole": lambda t, x: x, "matrix": lambda t, x: x.reshape(3, 4), "later": lambda t, x: x[2:8],
    "transposed": lambda t, x: x.reshape(3, 4).t(), "part": lambda t, x: x.reshape(3, 4)[:, 1:3],
    "every other": lambda t, x: x[::2], "corner": lambda t, x: x.reshape(3, 4)[1:, ::2],
    "conjugate": lambda t, x: t.complex(x, x).conj()[1:7],
    "negative": lambda t, x: t._neg_view(x)[1:7],
}  # fmt: skip


def scattered(t: Any, source: Callable[[Any, Any], Any]) -> list[Any]:
    """What is seen at every offset, and how it lies."""
    x = source(t, t.arange(12.0, dtype=t.float64))
    written = t.tensor([-1, -2], dtype=x.dtype)
    found: list[Any] = []
    for offset in (None, 0, 1, 2, 3, 5, 20):
        try:
            made = t.as_strided_scatter(x, written, (2,), (2,), offset)
        except RuntimeError as error:
            found.append(str(error).partition("\n")[0])
            continue
        found.append([made.tolist(), made.stride(), made.storage_offset(), made._is_view(),
                      made.untyped_storage().nbytes()])  # fmt: skip
    return found


@pytest.mark.parametrize("name", SOURCES)
def test_scattering_into_memory(name: str) -> None:
    assert scattered(flambeau, SOURCES[name]) == scattered(torch, SOURCES[name])


@pytest.mark.parametrize("start", [0, 2])
def test_gradients_of_scattering_into_memory(start: int) -> None:
    """By finite differences: torch's are the other way round."""
    x = flambeau.arange(8.0, dtype=flambeau.float64).requires_grad_()
    written = flambeau.ones(2, dtype=flambeau.float64, requires_grad=True)

    def scatter(x: Any, written: Any) -> Any:
        return flambeau.as_strided_scatter(x[start:], written, (2,), (2,), 3)

    assert flambeau.autograd.gradcheck(scatter, (x, written))
    assert flambeau.autograd.gradgradcheck(scatter, (x, written))
    with pytest.raises(RuntimeError, match="only supported for contiguous inputs"):
        scatter(x.reshape(2, 4).t(), written)


def base(lib: Any, kind: int) -> Any:
    """A tensor that owns its memory; `kind`: in which order, and of what."""
    if kind == 0:
        return lib.arange(24.0).reshape(4, 6)
    if kind == 1:
        return lib.arange(48.0).reshape(2, 3, 2, 4).to(memory_format=lib.channels_last)
    return lib.arange(24.0, requires_grad=True).reshape(3, 4, 2)


def without_elements(rng: random.Random, ndim: int) -> Callable[[Any, Any], Any]:
    """A view in which one dim has the size 0."""
    dim, start = rng.randrange(ndim), rng.randrange(3)
    before = (slice(None),) * dim
    return rng.choice(
        [
            lambda lib, x: x[(*before, slice(start, start))],
            lambda lib, x: x[(*before, slice(start, 0, 2))],
            lambda lib, x: x.narrow(dim, start, 0),
            lambda lib, x: x.split([x.shape[dim] - 1, 0, 1], dim)[1],
            lambda lib, x: x.tensor_split([1, 1], dim)[1],
        ]
    )


LATER: tuple[Callable[[Any, Any], Any], ...] = (
    lambda lib, x: x.transpose(0, -1),
    lambda lib, x: x[1:1],
    lambda lib, x: x[..., 1:],
    lambda lib, x: x.unsqueeze(1),
    lambda lib, x: x.diagonal(1),
    lambda lib, x: x.detach().view(lib.int16),
    lambda lib, x: lib.view_as_complex(x),
    lambda lib, x: lib.view_as_complex(x).imag,
    lambda lib, x: x.expand(2, *x.shape),
)


def test_views_without_elements_know_their_place() -> None:
    """Where they start in the storage, and what `as_strided` shows from there."""
    rng = generator("empty views")
    for _ in range(300):
        kind = rng.randrange(3)
        cut = without_elements(rng, base(torch, kind).dim())
        changes = [rng.choice(LATER) for _ in range(rng.randrange(3))]
        seen = []
        for lib in (torch, flambeau):
            try:
                view = cut(lib, base(lib, kind))
                for change in changes:
                    view = change(lib, view)
            except (RuntimeError, IndexError) as error:
                seen.append(type(error).__name__)
                continue
            place = view.storage_offset()
            if place * view.element_size() >= view.untyped_storage().nbytes():
                place = 0  # memory ends there
            shown = view.as_strided((1,), (1,)).detach() if place else place
            seen.append((tuple(view.shape), view.stride(), place, str(shown).split(", grad")[0]))
        assert seen[0] == seen[1]


def test_roll_takes_none_for_no_dims() -> None:
    for shift in (1, (2,), -7):
        wanted = torch.arange(6).reshape(2, 3).roll(shift, None)
        assert flambeau.arange(6).reshape(2, 3).roll(shift, dims=None).tolist() == wanted.tolist()


INTO: dict[str, Callable[[Any, Any, Any], Any]] = {
    "add": lambda lib, x, out: lib.add(x, x, out=out),
    "mul by a number": lambda lib, x, out: lib.mul(x, 2, out=out),
    "exp": lambda lib, x, out: lib.exp(x, out=out),
    "clamp": lambda lib, x, out: lib.clamp(x, 0, out=out),
    "where": lambda lib, x, out: lib.where(x > 0, x, x, out=out),
    "lerp": lambda lib, x, out: lib.lerp(x, x, 0.5, out=out),
    "div": lambda lib, x, out: lib.div(x, 2, rounding_mode="floor", out=out),
    "sum": lambda lib, x, out: lib.sum(x, -1, keepdim=True, out=out),
    "cumsum": lambda lib, x, out: lib.cumsum(x, 0, out=out),
    "tril": lambda lib, x, out: lib.tril(x, out=out),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", INTO)
def test_out_takes_the_strides_of_results_where_it_grows_or_shrinks(name: str) -> None:
    inputs: tuple[Callable[[Any], Any], ...] = (
        lambda lib: lib.ones(2, 3, 4).permute(0, 2, 1),
        lambda lib: lib.ones(2, 3, 4, 4).to(memory_format=lib.channels_last),
        lambda lib: lib.ones(4, 6, 4)[:, ::2].transpose(0, 1),
        lambda lib: lib.ones(4, 3).expand(2, 4, 3),
    )
    for make in inputs:
        for size in (0, 2, 1000, None):
            seen = []
            for lib in (torch, flambeau):
                x = make(lib)
                out = lib.empty(x.shape if size is None else size)
                result = INTO[name](lib, x, out)
                assert lib.equal(result, INTO[name](lib, x, None))
                seen.append((tuple(result.shape), result.stride(), result is out))
            assert seen[0] == seen[1]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["add", "exp", "lerp", "sum"])
def test_out_without_memory_is_resized(name: str) -> None:
    for size in (0, 2, 1000):
        seen = []
        for lib in (torch, flambeau):
            x = lib.ones(2, 3, 4, device="meta").permute(0, 2, 1)
            result = INTO[name](lib, x, lib.empty(size, device="meta"))
            seen.append((tuple(result.shape), result.stride(), str(result.device)))
        assert seen[0] == seen[1]
