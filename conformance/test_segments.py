"""`segment_reduce` against PyTorch: values, gradients, what is refused."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="conformance compares with PyTorch itself")

import flambeau  # noqa: E402

NAMES = ("sum", "mean", "prod", "max", "min", "amax")


def split(chance: random.Random, total: int, parts: int) -> list[int]:
    """So many numbers, some of them zero, with a sum."""
    cuts = sorted(chance.randint(0, total) for _ in range(parts - 1))
    return [end - begin for begin, end in zip([0, *cuts], [*cuts, total], strict=True)]


def drawn(seed: int) -> tuple[Any, ...]:
    """(values, name, lengths, options) of one call."""
    chance = random.Random(seed)
    batch = [chance.randint(1, 3) for _ in range(chance.randint(0, 2))]
    rows, parts = chance.randint(1, 9), chance.randint(1, 5)
    shape = [*batch, rows, *[chance.randint(1, 3) for _ in range(chance.randint(0, 2))]]
    values = np.random.default_rng(seed).integers(-2, 4, shape).astype(np.float64)
    if chance.random() < 0.3:
        values[values == 3] = np.nan
    outer = int(np.prod(batch, dtype=int))
    lengths = np.array([split(chance, rows, parts) for _ in range(outer)])
    initial = chance.choice([None, None, 0, 1.5, -1])
    return values, chance.choice(NAMES), lengths.reshape(*batch, parts), initial


def call(library: Any, seed: int, how: str) -> list[np.ndarray]:
    values, name, lengths, initial = drawn(seed)
    axis = lengths.ndim - 1
    x = library.tensor(values, requires_grad=True)
    table = np.concatenate([np.zeros_like(lengths[..., :1]), lengths.cumsum(-1)], -1)
    runs = {"lengths": lengths, "offsets": table, "short": lengths[..., :-1]}[how]
    given = {"offsets" if how == "offsets" else "lengths": library.tensor(runs)}
    result = library.segment_reduce(x, name, axis=axis, initial=initial, unsafe=how == "short",
                                    **given)  # fmt: skip
    weights = library.arange(1.0, result.numel() + 1, dtype=library.float64)
    (result * weights.reshape(result.shape)).sum().backward()
    assert type(result.grad_fn).__name__ == "MulBackward0" or "Segment" in str(result.grad_fn)
    return [result.detach().numpy(), x.grad.numpy()]


@pytest.mark.parametrize("how", ["lengths", "offsets", "short"])
def test_values_and_gradients(how: str) -> None:
    for seed in range(120):
        for expected, actual in zip(*(call(lib, seed, how) for lib in (torch, flambeau)),
                                    strict=True):  # fmt: skip
            np.testing.assert_allclose(actual, expected, rtol=1e-12, err_msg=f"seed {seed}")


@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16"])
def test_types(name: str) -> None:
    for library in (torch, flambeau):
        x = library.arange(12).reshape(6, 2).to(getattr(library, name))
        result = library.segment_reduce(x, "mean", lengths=library.tensor([2, 0, 4]))
        assert str(result.dtype).endswith(name)
        assert result.double()[[0, 2]].tolist() == [[1.0, 2.0], [7.0, 8.0]]


REFUSED = {
    "neither": "t.segment_reduce(x, 'sum')",
    "name": "t.segment_reduce(x, 'any', lengths=t.tensor([2, 2]))",
    "sum": "t.segment_reduce(x, 'sum', lengths=t.tensor([2, 1]))",
    "negative": "t.segment_reduce(x, 'sum', lengths=t.tensor([5, -1]))",
    "float lengths": "t.segment_reduce(x, 'sum', lengths=t.tensor([4.]))",
    "short offsets": "t.segment_reduce(x, 'sum', offsets=t.tensor([0, 4]).to(t.int16))",
    "axis": "t.segment_reduce(x, 'sum', lengths=t.tensor([2, 2]), axis=1)",
    "far axis": "t.segment_reduce(x, 'sum', lengths=t.tensor([2, 2]), axis=2)",
    "indices": "t.segment_reduce(x, 'sum', indices=t.tensor([2, 2]))",
    "int": "t.segment_reduce(x.long(), 'sum', lengths=t.tensor([4]))",
    "complex": "t.segment_reduce(x.cfloat(), 'sum', lengths=t.tensor([4]))",
    "list": "t.segment_reduce(x, 'sum', lengths=[4])",
    "text": "t.segment_reduce(x, 'sum', lengths=t.tensor([4]), initial='a')",
    "second": "t.autograd.grad(t.autograd.grad(t.segment_reduce(w := x.requires_grad_(), 'sum', "
              "lengths=t.tensor([4])).sum(), w, create_graph=True)[0].sum(), w)",
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    said = []
    for library in (torch, flambeau):
        with pytest.raises(Exception) as caught:
            eval(REFUSED[name], {"t": library, "x": library.ones(4, 2)})
        said.append((caught.type, str(caught.value).splitlines()[0]))
    assert said[0] == said[1]


@pytest.mark.parametrize("how", [{"offsets": [0, 2, 7]}, {"offsets": [-1, 2]},
                                 {"lengths": [2, 5], "unsafe": True}])  # fmt: skip
def test_runs_beyond_the_data_are_refused(how: dict[str, Any]) -> None:
    """PyTorch reads what lies there."""
    given = {name: flambeau.tensor(value) if value is not True else value
             for name, value in how.items()}  # fmt: skip
    with pytest.raises(RuntimeError, match="reach beyond the 4 rows"):
        flambeau.segment_reduce(flambeau.ones(4, 2), "sum", **given)


def test_batches_of_another_size_are_refused() -> None:
    """PyTorch reads beyond its memory."""
    with pytest.raises(RuntimeError, match="do not fit"):
        flambeau.segment_reduce(
            flambeau.ones(3, 4), "sum", lengths=flambeau.ones(2, 4).long(), axis=1
        )


def test_in_a_script() -> None:
    def reduce(x: flambeau.Tensor, lengths: flambeau.Tensor) -> flambeau.Tensor:
        return flambeau.segment_reduce(x, "max", lengths=lengths)

    x, lengths = flambeau.arange(6.0), flambeau.tensor([4, 2])
    assert flambeau.jit.script(reduce)(x, lengths).tolist() == [3.0, 5.0]
