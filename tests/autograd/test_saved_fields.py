"""`grad_fn._saved_*`: what nodes keep beside what their formulas need, and what is left of it."""

from __future__ import annotations

import pytest

import flambeau as torch


def test_parts_of_complex_numbers_are_saved():
    imag = torch.tensor([2.0, 3.0], requires_grad=True)
    result = torch.complex(torch.tensor([0.5, 1.0]), imag)
    assert result.grad_fn._saved_imag.tolist() == [2.0, 3.0]
    with torch.no_grad():
        imag.floor_()
    with pytest.raises(RuntimeError, match=r"FloatTensor \[2\]\] is at version 1; expected"):
        result.abs().sum().backward()


def test_a_source_is_saved_while_its_gradient_is_wanted():
    learning = torch.ones(3, requires_grad=True)
    index = torch.tensor([0, 2])
    added = torch.index_add(learning, 0, index, torch.ones(2))
    assert added.grad_fn._saved_source is None
    source = torch.ones(2, requires_grad=True)
    added = torch.index_add(learning, 0, index, source)
    assert added.grad_fn._saved_source is source
    assert added.grad_fn._saved_source_dim == 1


def test_what_was_none_is_none_once_all_is_freed():
    x, y = torch.ones(2, requires_grad=True), torch.ones(2)
    product = x * y
    product.sum().backward()
    assert product.grad_fn._saved_self is None
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        product.grad_fn._saved_other  # noqa: B018


def test_steps_that_end_in_a_shape_show_it():
    x = torch.ones(2, 3, 4, requires_grad=True)
    node = (x @ torch.ones(4, 5)).grad_fn
    assert node.name() == "UnsafeViewBackward0"
    assert node._saved_self_sym_sizes == (6, 5)
    assert not hasattr(node, "_saved_self")
