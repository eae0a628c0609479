"""`torch.lstm_cell` and its kin, `frobenius_norm` and `nuclear_norm`: values, gradients, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch as reference

import flambeau

pytestmark = pytest.mark.filterwarnings("ignore:at::")  # torch advises against both norms, once
GATES = {"lstm_cell": 4, "gru_cell": 3, "rnn_tanh_cell": 1, "rnn_relu_cell": 1}


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape)


def leaves(library: Any, *arrays: np.ndarray) -> list[Any]:
    return [library.tensor(array).requires_grad_() for array in arrays]


def compared(run: Any) -> None:
    """Results and gradients of both libraries are the same."""
    for mine, theirs in zip(run(flambeau), run(reference), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-12)


def with_gradients(library: Any, results: tuple[Any, ...], inputs: list[Any]) -> list[np.ndarray]:
    total = sum((r * r).sum() for r in results)
    grads = library.autograd.grad(total, inputs)
    return [t.detach().numpy() for t in (*results, *grads)]


@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("name", GATES)
def test_cells(name: str, biased: bool) -> None:
    rows = GATES[name] * 4
    arrays = [numbers(5, 3), numbers(5, 4), numbers(rows, 3), numbers(rows, 4)]
    arrays += [numbers(rows), numbers(rows, 1)[:, 0]] if biased else []

    def run(library: Any) -> list[np.ndarray]:
        given = leaves(library, *arrays)
        if name == "lstm_cell":
            given.insert(2, library.tensor(numbers(5, 4) * 2).requires_grad_())
            x, h, c, *weights = given
            return with_gradients(library, library.lstm_cell(x, (h, c), *weights), given)
        return with_gradients(library, (getattr(library, name)(*given),), given)

    compared(run)


NORMS = {
    "frobenius, all": lambda t, x: t.frobenius_norm(x, ()),
    "frobenius, a dim": lambda t, x: t.frobenius_norm(x, 1),
    "frobenius, two dims": lambda t, x: t.frobenius_norm(x, (0, 2), True),
    "nuclear, dims": lambda t, x: t.nuclear_norm(x, (0, 2)),
    "nuclear": lambda t, x: t.nuclear_norm(x[0]),
    "nuclear, kept": lambda t, x: t.nuclear_norm(x[1], keepdim=True),
}


@pytest.mark.parametrize("name", NORMS)
def test_norms(name: str) -> None:
    def run(library: Any) -> list[np.ndarray]:
        (x,) = leaves(library, numbers(3, 4, 5))
        return with_gradients(library, (NORMS[name](library, x),), [x])

    compared(run)


def test_errors() -> None:
    def text(library: Any) -> str:
        with pytest.raises(RuntimeError) as caught:
            library.frobenius_norm(library.ones(2, 2, 2), (0, 1, 2))
        return str(caught.value).split("\n")[0]

    assert text(flambeau) == text(reference)
