"""Nested tensors: what they compute is what each row gives by itself."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import flambeau as torch
from flambeau.nested._sizes import NestedInt

F: Any = torch.nn.functional
LAYOUTS = [torch.strided, torch.jagged]
Rows = list[Any]


def rows(seed: int = 0) -> Rows:
    stream = torch.Generator().manual_seed(seed)
    return [torch.randn(n, 4, generator=stream, dtype=torch.float64) for n in (2, 5, 1)]


def equal(nested: Any, expected: Rows) -> None:
    found = nested.unbind()
    assert len(found) == len(expected)
    for row, want in zip(found, expected, strict=True):
        torch.testing.assert_close(row, want)


WEIGHT = torch.linspace(-1, 1, 12, dtype=torch.float64).reshape(3, 4)
ALIKE: dict[str, Callable[[Any], Any]] = {
    "relu": torch.relu,
    "exp": torch.exp,
    "F.gelu": F.gelu,
    "x * 2 + 1": lambda x: x * 2 + 1,
    "2 - x": lambda x: 2 - x,
    "x ** 2": lambda x: x**2,
    "x > 0": lambda x: x > 0,
    "x * x": lambda x: x * x,
    "masked_fill": lambda x: x.masked_fill(x > 0, 0.0),
    "clamp": lambda x: x.clamp(-1, 1),
    "float": lambda x: x.float(),
    "to": lambda x: x.to(torch.float32),
    "detach": lambda x: x.detach(),
    "clone": lambda x: x.clone(),
    "zeros_like": torch.zeros_like,
    "linear": lambda x: F.linear(x, WEIGHT),
    "layer_norm": lambda x: F.layer_norm(x, (4,), WEIGHT[0], WEIGHT[1]),
    "last sum": lambda x: x.sum(-1, keepdim=True),
    "softmax": lambda x: x.softmax(-1),
    "in place": lambda x: x.clone().mul_(3).add_(1),
}


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("name", ALIKE)
def test_rows_give_what_they_give_alone(name: str, layout: Any) -> None:
    run = ALIKE[name]
    nested = torch.nested.nested_tensor(rows(), layout=layout)
    equal(run(nested), [run(row) for row in rows()])


JAGGED: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "mean": (lambda x: x.mean(-1), lambda row: row.mean(-1)),
    "argmax": (lambda x: x.argmax(-1), lambda row: row.argmax(-1)),
    "softmax over the ragged dim": (lambda x: x.softmax(1), lambda row: row.softmax(0)),
    "transpose": (lambda x: x.transpose(1, 2), lambda row: row.T),
    "permute": (lambda x: x.permute(0, 2, 1), lambda row: row.T),
    "mT": (lambda x: x.mT, lambda row: row.T),
    "twice": (lambda x: x.transpose(1, 2).mT * 2, lambda row: row * 2),
    "unflatten": (lambda x: x.unflatten(-1, (2, 2)), lambda row: row.unflatten(-1, (2, 2))),
    "flatten": (lambda x: x.unflatten(-1, (2, 2)).flatten(-2), lambda row: row),
    "view": (lambda x: x.view(3, -1, 2, 2), lambda row: row.view(-1, 2, 2)),
    "view by the symbol": (lambda x: x.view(*x.shape[:2], 4, 1), lambda row: row[..., None]),
    "unsqueeze": (lambda x: x.unsqueeze(1), lambda row: row.unsqueeze(0)),
    "squeeze": (lambda x: x.unsqueeze(1).squeeze(1) + 1, lambda row: row + 1),
    "select": (lambda x: x.select(-1, 2), lambda row: row[:, 2]),
    "slice": (lambda x: x[..., 1:3], lambda row: row[:, 1:3]),
    "number": (lambda x: x[:, :, 1], lambda row: row[:, 1]),
    "chunk": (lambda x: x.chunk(2, -1)[1], lambda row: row[:, 2:]),
    "split": (lambda x: x.split([1, 3], -1)[1], lambda row: row[:, 1:]),
    "narrow": (lambda x: x.narrow(-1, 1, 2), lambda row: row[:, 1:3]),
    "cat": (lambda x: torch.cat([x, x + 1], -1), lambda row: torch.cat([row, row + 1], -1)),
    "stack": (lambda x: torch.stack([x, x], 2), lambda row: torch.stack([row, row], 1)),
    "a dim that meets all": (lambda x: x + torch.arange(4), lambda row: row + torch.arange(4)),
    "matmul": (lambda x: x @ WEIGHT.T, lambda row: row @ WEIGHT.T),
    "where": (lambda x: torch.where(x > 0, x, 0.0), lambda row: row.relu()),
    "normalize": (lambda x: F.normalize(x, dim=-1), lambda row: F.normalize(row, dim=-1)),
}


@pytest.mark.parametrize("name", JAGGED)
def test_jagged_forms(name: str) -> None:
    run, expected = JAGGED[name]
    nested = torch.nested.nested_tensor(rows(), layout=torch.jagged)
    equal(run(nested), [expected(row) for row in rows()])


def test_what_is_ordinary_meets_rows() -> None:
    x = torch.nested.nested_tensor(rows(), layout=torch.jagged)
    each = torch.arange(12.0, dtype=torch.float64).reshape(3, 1, 4)
    equal(x * each, [row * one for row, one in zip(rows(), each, strict=True)])
    long = torch.arange(60.0, dtype=torch.float64).reshape(3, 5, 4)
    pairs = list(zip(rows(), long, strict=True))
    equal(x - long, [row - one[: len(row)] for row, one in pairs])
    turned = x.mT + each.mT
    equal(turned, [row.T + one.T for row, one in zip(rows(), each, strict=True)])
    matrices = torch.arange(24.0, dtype=torch.float64).reshape(3, 4, 2)
    equal(x @ matrices, [row @ m for row, m in zip(rows(), matrices, strict=True)])
    with pytest.raises(RuntimeError, match="cannot call binary pointwise function mul.Tensor with"):
        x * torch.ones(3, 4, 4)


def test_sums_of_jagged_tensors() -> None:
    x = torch.nested.nested_tensor(rows(), layout=torch.jagged)
    alone = torch.cat(rows())
    for name in ("sum", "mean", "amax"):
        over_rows = torch.stack([getattr(row, name)(0) for row in rows()])
        torch.testing.assert_close(getattr(x, name)(1), over_rows)
        torch.testing.assert_close(getattr(x, name)((0, 1)), getattr(alone, name)(0))
    torch.testing.assert_close(x.sum(), alone.sum())
    torch.testing.assert_close(x.max(), alone.max())
    torch.testing.assert_close(x.min(), alone.min())
    assert x.sum(1, keepdim=True).shape == (3, 1, 4)
    assert x.sum((0, 1), keepdim=True).shape == (1, 1, 4)
    with pytest.raises(RuntimeError, match="reducing along the batch dimension but not the ragged"):
        x.sum(0)
    with pytest.raises(RuntimeError, match="reducing along a ragged and non-batch dimension"):
        x.sum((1, 2))
    with pytest.raises(RuntimeError, match="across the batch dimension"):
        x.softmax(0)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_padding(layout: Any) -> None:
    x = torch.nested.nested_tensor(rows(), layout=layout)
    found = torch.nested.to_padded_tensor(x, -1.0)
    assert found.shape == (3, 5, 4)
    for row, one in zip(rows(), found, strict=True):
        assert torch.equal(one[: len(row)], row)
        assert (one[len(row) :] == -1).all()
    assert x.to_padded_tensor(0.0, (3, 7, 4)).shape == (3, 7, 4)
    out = torch.empty(0, dtype=torch.float64)
    assert torch.nested.to_padded_tensor(x, 0.0, out=out.resize_(3, 5, 4)) is out


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_gradients_reach_leaves_of_either_kind(layout: Any) -> None:
    x = torch.nested.nested_tensor(rows(), layout=layout, requires_grad=True)
    assert (x.is_leaf, x.requires_grad, x.grad, x.grad_fn) == (True, True, None, None)
    y = F.linear(x, WEIGHT)
    assert not y.is_leaf
    assert y.grad_fn is not None
    y.to_padded_tensor(0.0).square().sum().backward()
    leaves = [row.requires_grad_() for row in rows()]
    sum(F.linear(leaf, WEIGHT).square().sum() for leaf in leaves).backward()
    equal(x.grad, [leaf.grad for leaf in leaves])
    x.grad = None
    assert x.grad is None
    y = x * 3
    (found,) = torch.autograd.grad(y, x, torch.ones_like(y))
    equal(found, [torch.full_like(row, 3) for row in rows()])
    y = x * x
    y.backward(torch.ones_like(y))
    equal(x.grad, [2 * row for row in rows()])
    with pytest.raises(RuntimeError, match="implicitly created only for scalar outputs"):
        y.backward()


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_gradients_reach_the_tensors_that_it_is_made_of(layout: Any) -> None:
    leaves = [row.requires_grad_() for row in rows()]
    x = torch.nested.as_nested_tensor(leaves, layout=layout)
    (x.unbind()[1] * 2).sum().backward()
    assert leaves[1].grad.eq(2).all()
    assert all(leaf.grad is None or leaf.grad.eq(0).all() for leaf in (leaves[0], leaves[2]))
    assert not torch.nested.nested_tensor(leaves, layout=layout).requires_grad


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("is_causal", [False, True])
def test_attention(layout: Any, is_causal: bool) -> None:
    sequences = [torch.randn(n, 2, 4, dtype=torch.float64) for n in (3, 5)]
    x = torch.nested.nested_tensor(sequences, layout=layout, requires_grad=True)
    q = x.transpose(1, 2)
    found = F.scaled_dot_product_attention(q, q, q, is_causal=is_causal).transpose(1, 2)
    leaves = [one.clone().requires_grad_() for one in sequences]
    expected = []
    for leaf in leaves:
        turned = leaf.transpose(0, 1)
        expected.append(
            F.scaled_dot_product_attention(turned, turned, turned, is_causal=is_causal).transpose(
                0, 1
            )
        )
    equal(found, expected)
    (found * found).to_padded_tensor(0.0).sum().backward()
    sum(one.square().sum() for one in expected).backward()
    equal(x.grad, [leaf.grad for leaf in leaves])
    with pytest.raises((ValueError, RuntimeError), match="ask"):
        F.scaled_dot_product_attention(q, q, q, attn_mask=torch.ones(5, 5))


def test_over_the_elements_of_others() -> None:
    values = torch.arange(12.0).reshape(6, 2).requires_grad_()
    offsets = torch.tensor([0, 2, 6])
    x = torch.nested.nested_tensor_from_jagged(values, offsets)
    assert x.offsets() is offsets
    assert torch.equal(x.values(), values)
    equal(x, [values[:2], values[2:]])
    by_lengths = torch.nested.nested_tensor_from_jagged(values, lengths=torch.tensor([2, 4]))
    assert by_lengths.offsets().tolist() == [0, 2, 6]
    x.sum(1).square().sum().backward()
    assert torch.equal(values.grad[:2], 2 * values[:2].detach().sum(0).expand(2, 2))
    turned = torch.nested.nested_tensor_from_jagged(values.T, offsets, jagged_dim=2)
    equal(turned, [values.T[:, :2], values.T[:, 2:]])
    with pytest.raises(RuntimeError, match="At least one of offsets or lengths is required"):
        torch.nested.nested_tensor_from_jagged(values)


def test_rows_with_holes_between_them() -> None:
    values = torch.arange(12.0).reshape(6, 2)
    x = torch.nested.nested_tensor_from_jagged(
        values, torch.tensor([0, 2, 6]), torch.tensor([1, 3])
    )
    equal(x, [values[:1], values[2:5]])
    assert (x.is_contiguous(), x.numel()) == (False, 8)
    assert x.sum() == values[:1].sum() + values[2:5].sum()
    equal(x + x, [2 * values[:1], 2 * values[2:5]])
    whole = x.contiguous()
    assert whole.values().shape == (4, 2)
    assert whole.is_contiguous()
    for run in (lambda: x.sum(1), lambda: x.to_padded_tensor(0.0)):
        with pytest.raises(RuntimeError, match="with holes"):
            run()
    with pytest.raises(ValueError, match="contiguous jagged layout"):
        F.linear(x, torch.ones(2, 2))


def test_ranges_and_choices_of_ordinary_tensors() -> None:
    x = torch.arange(20.0).reshape(2, 5, 2)
    starts, lengths = torch.tensor([0, 1]), torch.tensor([2, 3])
    found = torch.nested.narrow(x, 1, starts, lengths, layout=torch.jagged)
    equal(found, [x[0, :2], x[1, 1:4]])
    equal(torch.nested.narrow(x, 1, 1, 2, layout=torch.jagged), [x[0, 1:3], x[1, 1:3]])
    with pytest.raises(RuntimeError, match="must be integers"):
        torch.nested.narrow(x, 1, starts, lengths)
    with pytest.raises(RuntimeError, match="only supports dim=1"):
        torch.nested.narrow(x, 2, 0, lengths, layout=torch.jagged)
    plane = x[..., 0]
    equal(torch.nested.masked_select(plane, plane > 4), [plane[0, 3:], plane[1]])


def test_symbols() -> None:
    x = torch.nested.nested_tensor(rows(), layout=torch.jagged)
    other = torch.nested.nested_tensor(rows(), layout=torch.jagged)
    size = x.shape[1]
    assert isinstance(size, NestedInt)
    assert size == (x * 2).size(1) == x.size(-2)
    assert size != other.size(1)
    assert hash(size) == hash(x.size(1))
    assert (size >= 2, size < 1, size == 3) == (True, False, False)
    assert repr(3 * size) == f"3*{size}"
    with pytest.raises(ValueError, match="ge: relation is indeterminate"):
        assert size > 2
    with pytest.raises(RuntimeError, match="is not one number"):
        torch.zeros(x.shape)
    with pytest.raises(RuntimeError, match="cannot call binary pointwise function add.Tensor"):
        x + other
    equal(x + torch.nested.nested_tensor_from_jagged(other.values(), x.offsets()),
          [2 * row for row in rows()])  # fmt: skip


def test_a_strided_one_has_no_shape() -> None:
    x = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(1, 4)])
    assert (x.dim(), x.size(0), x.is_nested, type(x).__name__) == (3, 2, True, "Tensor")
    for ask in (
        lambda: x.shape,
        lambda: x.size(),
        lambda: len(x),
        lambda: list(x),
        lambda: x.stride(),
    ):
        with pytest.raises(RuntimeError, match="NestedTensorImpl doesn't support"):
            ask()
    with pytest.raises(RuntimeError, match="Given dimension 2 is irregular"):
        x.size(2)
    assert x[1, 0].tolist() == [1, 1, 1, 1]
    assert x._nested_tensor_size().tolist() == [[2, 3], [1, 4]]
    assert x._nested_tensor_strides().tolist() == [[3, 1], [4, 1]]
    assert x._nested_tensor_storage_offsets().tolist() == [0, 6]
    with pytest.raises(IndexError, match="index 2 is out of bounds"):
        x[2]
    with pytest.raises(RuntimeError, match="only be reduced across the last dimension"):
        x.sum(1, keepdim=True)
    with pytest.raises(RuntimeError, match="does not support broadcasting"):
        x + torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(2, 3)])
    with pytest.raises(RuntimeError, match="Expected both self and other to be nested"):
        x + torch.ones(3)


@pytest.mark.parametrize(
    ("given", "words", "message"),
    [
        ([], {"layout": torch.jagged}, "from an empty tensor list"),
        ([torch.ones(2), torch.ones(2, 2)], {}, "must have the same dimension"),
        ([torch.ones(2), torch.ones(2, 2)], {"layout": torch.jagged}, "have the same dim"),
        ([torch.ones(2), torch.ones(2).long()], {"layout": torch.jagged}, "have the same dtype"),
        ([torch.ones(2, 3), torch.ones(3, 4)], {"layout": torch.jagged}, "single ragged dimension"),
        ([torch.ones(())], {"layout": torch.jagged}, "zero-dim tensors"),
        ([torch.ones(1)], {"layout": torch.sparse_coo}, "layout is unsupported"),
    ],
)
def test_what_cannot_be_nested(given: Any, words: Any, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        torch.nested.nested_tensor(given, **words)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_copies(layout: Any) -> None:
    x = torch.nested.nested_tensor(rows(), layout=layout, requires_grad=True)
    for twin in (copy.deepcopy(x), pickle.loads(pickle.dumps(x.detach()))):
        assert torch.equal(twin, x)
        assert twin.layout is layout
        assert twin.unbind()[0].data_ptr() != x.unbind()[0].data_ptr()
    assert copy.deepcopy(x).requires_grad
    assert torch.equal(torch.nested.as_nested_tensor(x, layout=layout), x)


def test_functions_without_a_form_say_so() -> None:
    for layout, words in ((torch.jagged, "not supported for NestedTensor"),
                          (torch.strided, "NestedTensorCPU")):  # fmt: skip
        x = torch.nested.nested_tensor(rows(), layout=layout)
        with pytest.raises(NotImplementedError, match=words):
            torch.sort(x)


def test_embeddings() -> None:
    table = torch.nn.Embedding(10, 3)
    ids = [torch.tensor([1, 2]), torch.tensor([3, 4, 5])]
    for layout in LAYOUTS:
        equal(table(torch.nested.nested_tensor(ids, layout=layout)), [table(one) for one in ids])
