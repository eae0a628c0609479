"""Reading, writing and moving by position: small tensors, where NumPy does it, and larger ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flambeau as torch
from flambeau._ops.arranging import joining

SIZES = [(3, 5), (40, 70)]
"""Few elements, and more than the compiled kernels begin with."""


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    """Small whole numbers, whose sums are exact."""
    return np.random.default_rng(seed).integers(-9, 9, shape).astype(np.float32)


def places(size: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(1).integers(0, size, shape)


def scattered(data: np.ndarray, dim: int, index: np.ndarray, source: np.ndarray, add: bool) -> Any:
    """One value after the other."""
    result = data.copy()
    for where in np.ndindex(*index.shape):
        target = list(where)
        target[dim] = index[where]
        result[tuple(target)] = source[where] + (result[tuple(target)] if add else 0)
    return result


@pytest.mark.parametrize("shape", SIZES)
@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("part", [0, 1])
def test_scatter_and_gather(shape: tuple[int, int], dim: int, part: int) -> None:
    """An index may be smaller than the tensor in other dims; the last of several values stays."""
    counts = [shape[0] - part, shape[1] - part]
    counts[dim] = 7
    data, source = numbers(*shape), numbers(*counts, seed=2)
    index = places(shape[dim], *counts)
    x, i, s = (torch.from_numpy(array) for array in (data, index, source))
    wide = torch.from_numpy(numbers(counts[0] + 2, counts[1] + 1, seed=2))
    assert x.scatter(dim, i, s).tolist() == scattered(data, dim, index, source, False).tolist()
    assert x.scatter_add(dim, i, s).tolist() == scattered(data, dim, index, source, True).tolist()
    cut = wide.numpy()[: counts[0], : counts[1]]
    assert x.scatter(dim, i, wide).tolist() == scattered(data, dim, index, cut, False).tolist()
    ones = np.full(index.shape, 1.5)
    assert x.scatter(dim, i, 1.5).tolist() == scattered(data, dim, index, ones, False).tolist()
    window = data[:, : counts[1]] if dim == 0 else data[: counts[0]]
    assert x.gather(dim, i).tolist() == np.take_along_axis(window, index, dim).tolist()


@pytest.mark.parametrize("width", [4, 500])
@pytest.mark.parametrize("wrong", [-1, 3, 1 << 62])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_wrong_position_changes_nothing(width: int, wrong: int, threads: int) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        x, rows = torch.zeros(3, width), torch.ones(40, width)
        line = torch.arange(40) % 3
        line[-1] = wrong
        each = line[:, None].expand(40, width).contiguous()
        for write in (
            lambda: x.index_add_(0, line, rows),
            lambda: x.index_copy_(0, line, rows),
            lambda: x.scatter_add_(0, each, rows),
            lambda: x.scatter_(0, each, rows),
            lambda: x.scatter_(0, each, 2.0),
        ):
            with pytest.raises((RuntimeError, IndexError), match=f"index {wrong} is out of bounds"):
                write()
        with pytest.raises(RuntimeError, match=f"index {wrong} is out of bounds"):
            x.gather(0, each)
    finally:
        torch.set_num_threads(before)
    assert not x.any()
    assert x._version == 0


@pytest.mark.parametrize("shape", [(7,), (3, 4), (2, 5, 3)])
@pytest.mark.parametrize("shift", [-9, 0, 1, 5])
def test_roll(shape: tuple[int, ...], shift: int) -> None:
    data = numbers(*shape)
    x = torch.from_numpy(data)
    assert x.roll(shift).tolist() == np.roll(data, shift).tolist()
    for dims in [(0,), (-1,), (0, -1), (-1, 0, 0)]:
        shifts = (shift, 2, -1)[: len(dims)]
        assert x.roll(shifts, dims).tolist() == np.roll(data, shifts, dims).tolist()


@pytest.mark.parametrize("shape", [(7,), (3, 4), (2, 5, 3), (0, 3)])
def test_positions_of_what_is_not_zero(shape: tuple[int, ...]) -> None:
    data = numbers(*shape) % 3
    data.reshape(-1)[:1] = np.nan
    for array in (data, data > 0, data.T, data.astype(np.complex64)):
        found = torch.from_numpy(array).nonzero()
        assert found.tolist() == np.argwhere(array).tolist()
        assert not len(found) or found.stride() == (1, len(found))


def test_new_dims_have_the_strides_of_unsqueeze() -> None:
    x = torch.zeros(3, 4)
    for base in (x, x.t(), x[:, 1:], torch.zeros(1, 4), torch.zeros(0, 4)):
        for index, dims in [
            (None, [0]), ((slice(None), None), [1]), ((..., None), [2]),
            ((None, ..., None), [0, 3]), ((..., None, slice(None)), [1]),
            ((slice(None), None, None, ...), [1, 2]),
        ]:  # fmt: skip
            want = base
            for dim in dims:
                want = want.unsqueeze(dim)
            got = base[index]
            assert (got.shape, got.stride()) == (want.shape, want.stride())
            assert got.data_ptr() == base.data_ptr()
    with pytest.raises(IndexError, match="too many indices for tensor of dimension 1"):
        torch.zeros(3)[..., :, :, None]


def test_new_dims_are_recorded() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    result = x[:, None]
    assert result.grad_fn.name() == "UnsqueezeBackward0"
    (result * 2).sum().backward()
    assert x.grad.tolist() == [[2.0] * 3] * 2


def test_writing_back_a_part_counts_as_a_write() -> None:
    """`x[1:3] += 1` is an addition in place, then a write of the part to itself."""
    x = torch.zeros(4, 2)
    x[1:3] += 1
    assert x.sum().item() == 4.0
    assert x._version == 2
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        x[1:3] = x[0:2]
    assert x[:, 0].tolist() == [0.0, 1.0, 1.0, 0.0]


def test_writes_in_place_to_what_may_not_be_written() -> None:
    """The short way is for tensors of their own memory without history."""
    leaf = torch.ones(3, requires_grad=True)
    spread = torch.ones(1).expand(3)
    for write in (
        lambda x: x.zero_(),
        lambda x: x.fill_(2.0),
        lambda x: x.copy_(torch.zeros(3)),
        lambda x: x.masked_fill_(torch.tensor([True, False, True]), 2.0),
        lambda x: x.index_add_(0, torch.tensor([0]), torch.ones(1)),
    ):
        with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
            write(leaf)
    with pytest.raises(RuntimeError, match="more than one element"):
        spread.copy_(torch.zeros(3))
    with pytest.raises(RuntimeError, match="more than one element"):
        spread.index_add_(0, torch.tensor([0]), torch.ones(1))
    x = torch.zeros(3)
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        x.index_add_(0, torch.tensor([0]), x[:1])
    base = leaf * 1
    part = base[:2]
    part.fill_(5.0)
    base.sum().backward()
    assert leaf.grad.tolist() == [0.0, 0.0, 1.0]


@pytest.mark.parametrize("dtype", [np.float32, np.int16, np.bool_, np.complex64])
@pytest.mark.parametrize(
    "shape, of_mask",
    [((3, 5), (5,)), ((40, 2, 70), (70,)), ((2, 1, 70), (40, 1)), ((40, 70), (3, 40, 70))],
)
def test_a_mask_broadcasts_with_what_it_fills(shape: Any, of_mask: Any, dtype: Any) -> None:
    data, mask = (numbers(*shape) > 0).astype(dtype), numbers(*of_mask, seed=1) > 0
    given = torch.from_numpy(data)
    filled = given.masked_fill(torch.from_numpy(mask), 1)
    np.testing.assert_array_equal(filled.numpy(), np.where(mask, np.ones((), dtype), data))
    assert filled.is_contiguous()
    np.testing.assert_array_equal(given.numpy(), (numbers(*shape) > 0).astype(dtype))
    across = torch.from_numpy(np.asfortranarray(data)).masked_fill(torch.from_numpy(mask), 1)
    np.testing.assert_array_equal(across.numpy(), filled.numpy())
    assert across.is_contiguous()


@pytest.mark.parametrize("small", [0, 1 << 22])
def test_cat_one_by_one_and_all_at_once(monkeypatch: Any, small: int) -> None:
    monkeypatch.setattr(joining, "SMALL", small)
    for dim in (0, 1, -1):
        shapes = [(20, 30, 4), (20, 30, 4), (20, 30, 4)]
        shapes[1] = tuple(7 if d == dim % 3 else n for d, n in enumerate(shapes[1]))
        parts = [numbers(*shape, seed=k) for k, shape in enumerate(shapes)]
        parts[2] = parts[2].astype(np.int32)
        joined = torch.cat([torch.from_numpy(part) for part in parts], dim)
        np.testing.assert_array_equal(joined.numpy(), np.concatenate(parts, dim))
        assert joined.dtype == torch.float32
    images = [torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last) for _ in range(2)]
    both = torch.cat(images, 1)
    assert both.is_contiguous(memory_format=torch.channels_last)
    np.testing.assert_array_equal(both.numpy(), np.concatenate([i.numpy() for i in images], 1))
    with pytest.raises(RuntimeError, match="Expected size 3 but got size 2"):
        torch.cat([torch.ones(2, 3), torch.ones(2, 2)], 0)
