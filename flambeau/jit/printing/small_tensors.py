"""Tensors as graphs show them: the number of one element, all of at most ten."""

from __future__ import annotations

from typing import Any


def tensor_text(tensor: Any) -> str:
    """`{2.5}` for one element, `<Tensor>` for more than ten."""
    if tensor.numel() != 1:
        return "<Tensor>"
    number = tensor.item()
    if isinstance(number, complex):
        return f"{{({number.real:g},{number.imag:g})}}"
    if isinstance(number, float):
        return f"{{{number:g}}}"
    return f"{{{int(number)}}}"
