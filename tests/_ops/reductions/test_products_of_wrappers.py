"""Gradients of products of tensors whose numbers only their class sees."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau.utils._pytree import tree_map


class Wrapper(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(
            cls, inner.shape, strides=inner.stride(), dtype=inner.dtype
        )

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        def unwrap(value):
            return value.inner if isinstance(value, Wrapper) else value

        def wrap(value):
            return Wrapper(value.contiguous()) if type(value) is torch.Tensor else value

        found = function(*tree_map(unwrap, args), **tree_map(unwrap, kwargs or {}))
        return tree_map(wrap, found)


@pytest.mark.parametrize("first", [1.0, 0.0])
@pytest.mark.parametrize("product", [torch.prod, lambda x: x.prod(0), lambda x: x.cumprod(1)])
def test_gradients(product, first):
    plain = torch.tensor([[first, 2.0, 4.0], [3.0, 5.0, 0.5]])
    inside = Wrapper(plain.clone()).requires_grad_()
    plain.requires_grad_()
    product(plain).sum().backward()
    product(inside).sum().backward()
    assert inside.grad.inner.tolist() == plain.grad.tolist()
