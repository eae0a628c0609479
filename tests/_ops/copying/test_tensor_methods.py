"""Small methods of Tensor whose logic is their own."""

from __future__ import annotations

import pytest

import flambeau as torch


def test_functions_of_python_write_every_element():
    base = torch.arange(6.0).view(2, 3)
    result = base.t().apply_(lambda value: value * 2)
    assert result.shape == (3, 2)
    assert base.tolist() == [[0, 2, 4], [6, 8, 10]]
    assert base._version == 1
    base.map_(torch.ones(1), lambda a, b: a + b)
    base.map2_(base, torch.zeros(2, 3), lambda a, b, c: a - b + c)
    assert base.tolist() == [[0, 0, 0], [0, 0, 0]]


def test_functions_of_python_refuse_what_requires_grad():
    with pytest.raises(RuntimeError, match="^Can't call apply_"):
        torch.zeros(2, requires_grad=True).apply_(abs)


@pytest.mark.parametrize(
    ("tensor", "order"),
    [
        (torch.zeros(2, 3, 4).permute(2, 0, 1), (1, 2, 0)),
        (torch.zeros(2, 2).expand(2, 2, 2), (0, 1, 2)),
        (torch.zeros(2, 3, 4, 4).to(memory_format=torch.channels_last), (0, 2, 3, 1)),
        (torch.zeros(1, 3, 1, 2).transpose(0, 1), (1, 0, 2, 3)),
        (torch.zeros(()), ()),
    ],
)
def test_dim_order(tensor: torch.Tensor, order: tuple[int, ...]):
    assert tensor.dim_order() == order


def test_as_subclass_keeps_history():
    named = type("Named", (torch.Tensor,), {})
    x = torch.ones(2, requires_grad=True)
    y = x.as_subclass(named)
    assert type(y) is named
    y.sum().backward()
    assert x.grad.tolist() == [1, 1]
    assert type(torch.ones(2).as_subclass(named)) is named


def test_integers_end_the_graph():
    x = torch.ones(2, requires_grad=True)
    assert not x.type_as(torch.tensor(1)).requires_grad
    assert not x.long().requires_grad
    with pytest.raises(RuntimeError, match="^Autograd not support dtype: Long$"):
        x.sum(dtype=torch.int64)


@pytest.mark.parametrize("name", ["coalesce", "values", "crow_indices", "row_indices"])
def test_sparse_only(name: str):
    with pytest.raises(RuntimeError, match=rf"^{name} expected sparse .* layout but got Strided$"):
        getattr(torch.ones(2), name)()


def test_typename():
    assert torch.typename(torch.ones(1)) == "torch.FloatTensor"
    assert torch.typename(torch.float32) == "torch.dtype"
    assert [torch.typename(value) for value in (3, len, torch.nn)] == ["int", "len", "torch.nn"]
