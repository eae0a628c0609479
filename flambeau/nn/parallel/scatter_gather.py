"""Nested containers split over devices, and put together again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau.nn.parallel import comm

__all__ = ["gather", "scatter", "scatter_kwargs"]


def _is_namedtuple(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_asdict") and hasattr(value, "_fields")


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> Any:
    """One of `inputs` per device: tensors split along `dim`, all else repeated.

    Raises:
        NotImplementedInFlambeau: there are tensors in `inputs`.
    """
    if isinstance(inputs, Tensor):
        return comm.scatter(inputs, target_gpus, None, dim)
    if not (isinstance(inputs, (tuple, list, dict)) and inputs):
        return [inputs for _ in target_gpus]
    members = inputs.items() if isinstance(inputs, dict) else inputs
    per_device = zip(*[scatter(member, target_gpus, dim) for member in members], strict=False)
    if _is_namedtuple(inputs):
        return [type(inputs)(*chunk) for chunk in per_device]
    if isinstance(inputs, tuple):
        return list(per_device)
    kind = list if isinstance(inputs, list) else type(inputs)
    return [kind(chunk) for chunk in per_device]


def scatter_kwargs(
    inputs: tuple[Any, ...],
    kwargs: dict[str, Any] | None,
    target_gpus: Sequence[Any],
    dim: int = 0,
) -> tuple[tuple[Any, ...], tuple[dict[str, Any], ...]]:
    """(arguments, keyword arguments) per device, as many of each."""
    arguments = scatter(inputs, target_gpus, dim) if inputs else []
    keywords = scatter(kwargs, target_gpus, dim) if kwargs else []
    count = max(len(arguments), len(keywords))
    arguments = [*arguments, *[()] * (count - len(arguments))]
    keywords = [*keywords, *[{} for _ in range(count - len(keywords))]]
    return tuple(arguments), tuple(keywords)


def gather(outputs: Any, target_device: Any, dim: int = 0) -> Any:
    """The outputs of all devices as one: tensors concatenated along `dim`.

    Raises:
        AssertionError: there are tensors, which are all on the CPU, in `outputs`.
    """
    first = outputs[0]
    if isinstance(first, Tensor):
        raise AssertionError("Gather function not implemented for CPU tensors")
    if first is None:
        return None
    if isinstance(first, dict):
        if not all(len(first) == len(output) for output in outputs):
            raise ValueError("All dicts must have the same number of keys")
        return type(first)(
            (key, gather([output[key] for output in outputs], target_device, dim)) for key in first
        )
    members = [gather(group, target_device, dim) for group in zip(*outputs, strict=True)]
    return type(first)._make(members) if _is_namedtuple(first) else type(first)(members)
