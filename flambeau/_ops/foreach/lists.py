"""What operators over lists of tensors ask of their lists."""

from __future__ import annotations

from typing import Any

from flambeau._core.layout import Size


def check_filled(tensors: Any) -> None:
    """There has to be a tensor to work on."""
    if not len(tensors):
        raise RuntimeError("Tensor list must have at least one tensor.")


def check_alike(tensors: Any, *others: Any) -> None:
    """Further lists have a tensor for each tensor of the first."""
    check_filled(tensors)
    for other in others:
        if len(other) != len(tensors):
            raise RuntimeError(
                "Tensor lists must have the same number of tensors, "
                f"got {len(tensors)} and {len(other)}"
            )


def check_numbers(tensors: Any, numbers: Any) -> None:
    """There is a number for each tensor."""
    check_filled(tensors)
    if len(numbers) != len(tensors):
        raise RuntimeError("Tensor list must have same number of elements as scalar list.")


def check_single(tensor: Any) -> None:
    """A tensor that all tensors of a list meet has no dims."""
    if tensor.dim():
        raise RuntimeError(
            f"scalar tensor expected to be 0 dim but it has {tensor.dim()} dimensions and "
            f"{tensor.numel()} elements."
        )


def unpacked(tensors: Any, packed: Any) -> list[Any]:
    """The numbers of a tensor of one dim, one for each tensor."""
    if packed.dim() != 1:
        raise RuntimeError(
            f"Expected packed scalar Tensor to be of dimension 1. Got {packed.dim()} instead."
        )
    if packed.shape != Size([len(tensors)]):
        raise RuntimeError(
            f"Expected length of scalars to match input of length {len(tensors)} but got "
            f"{packed.numel()} instead."
        )
    return list(packed.tolist())
