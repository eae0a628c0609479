"""How row-major arrays are told to column-major libraries."""

from __future__ import annotations

import numpy as np
import pytest

from flambeau._runtime.cuda.libraries.matrices import Array, Stored, arranged, contiguous, stored


@pytest.mark.parametrize(
    ("shape", "strides", "expected"),
    [
        ((3, 4), (4, 1), Stored(4, False)),
        ((3, 4), (9, 1), Stored(9, False)),
        ((3, 4), (1, 3), Stored(3, True)),
        ((3, 4), (1, 8), Stored(8, True)),
        ((1, 4), (77, 1), Stored(4, False)),
        ((4, 1), (1, 55), Stored(1, False)),
        ((1, 4), (1, 6), Stored(6, True)),
        ((1, 1), (0, 0), Stored(1, False)),
        ((3, 4), (8, 2), None),
        ((3, 4), (0, 1), None),
        ((3, 4), (1, 0), None),
        ((3, 4), (3, 1), None),
    ],
)
def test_matrix_as_columns(shape, strides, expected):
    assert stored(Array(shape, strides)) == expected


def test_batches_that_go_on_evenly_are_one():
    product = arranged(contiguous((2, 3, 4, 5)), contiguous((2, 3, 5, 6)), contiguous((2, 3, 4, 6)))
    assert (product.batch, len(product.outer)) == (6, 1)
    assert (product.left.step, product.right.step, product.out.step) == (20, 30, 24)


def test_a_shared_matrix_makes_the_batch_rows():
    product = arranged(contiguous((2, 3, 4, 5)), contiguous((5, 6)), contiguous((2, 3, 4, 6)))
    assert (product.batch, product.rows, product.outer) == (1, 24, ((0, 0, 0, 0),))


def test_heads_behind_tokens_take_one_call_for_each_image():
    """[B, L, H, E] read as [B, H, L, E]: the heads are evenly apart, images are calls."""
    heads = np.empty((2, 7, 3, 4)).transpose(0, 2, 1, 3)
    array = Array(heads.shape, tuple(step // 8 for step in heads.strides))
    product = arranged(array, array.mT, contiguous((2, 3, 7, 7)))
    assert (product.batch, product.left.step) == (3, 4)
    assert product.outer == ((0, 0, 0, 0), (84, 84, 147, 147))


def test_results_are_written_in_rows():
    turned = contiguous((4, 3)).mT
    assert arranged(contiguous((3, 5)), contiguous((5, 4)), turned) is None
