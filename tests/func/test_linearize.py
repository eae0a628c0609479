"""`linearize` gives what `jvp` gives, where inner derivatives are made in `no_grad`, too."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau as torch
from flambeau.func import jvp, linearize, vmap


def unseen(x: Any) -> Any:
    with torch.no_grad():
        return x.exp()


@pytest.mark.parametrize("dims", [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_forward_derivatives_inside_of_vmap(dims: tuple[int, int]) -> None:
    def along(a: Any, b: Any) -> Any:
        return jvp(unseen, (a,), (b,))[1]

    def function(x: Any, y: Any) -> Any:
        return vmap(along, dims)(x, y)

    shapes = [(3, 2) if dim else (2, 3) for dim in dims]
    given = [torch.rand(shape, dtype=torch.float64) + 0.1 for shape in shapes]
    towards = tuple(torch.rand(shape, dtype=torch.float64) for shape in shapes)
    expected = jvp(function, tuple(given), towards)[1]
    assert expected.abs().min() > 0
    torch.testing.assert_close(linearize(function, *given)[1](*towards), expected)
