"""Fields of a tensor: leaves, memory, versions, data."""

from __future__ import annotations

import flambeau as torch


def test_views_share_memory_and_say_so() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    view = x.t()[1]
    assert view._base is x._base
    assert view._is_view()
    assert view.storage_offset() == 1
    assert view.stride() == (3,)
    assert view.data_ptr() == x.data_ptr() + 4
    assert view.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    view.zero_()
    assert x.tolist() == [[0.0, 0.0, 2.0], [3.0, 0.0, 5.0]]


def test_leaves() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    assert (x.is_leaf, y.is_leaf, y.detach().is_leaf) == (True, False, True)
    assert x.grad_fn is None
    assert type(y.grad_fn).__name__ == "MulBackward0"
    assert [p.output_nr for p in y.split(1)] == [0, 1]


def test_data_is_the_same_memory_without_history() -> None:
    x = torch.ones(2, requires_grad=True)
    x.data.mul_(3)
    assert x.tolist() == [3.0, 3.0]
    assert x._version == 0
    x.data = torch.zeros(3)
    assert x.shape == (3,)
    assert x.requires_grad


def test_facts() -> None:
    x = torch.zeros(2, 3, dtype=torch.float64)
    assert (x.ndim, x.dim(), x.numel(), x.nelement()) == (2, 2, 6, 6)
    assert (x.element_size(), x.nbytes, len(x)) == (8, 48, 2)
    assert x.size() == (2, 3)
    assert x.size(-1) == 3
    assert x.is_contiguous()
    assert not x.t().is_contiguous()
    assert x.mT.shape == (3, 2)
    assert hash(x) == hash(x)
    assert x.is_same_size(torch.ones(2, 3))
