"""PyTorch's own samples for modules, as arguments for both libraries."""

from __future__ import annotations

import inspect
import io
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.testing._internal.common_modules import module_db

import flambeau

MODULES = {info.name.removeprefix("nn."): info for info in module_db}
"""The 114 entries of PyTorch's ModuleInfo database."""


def ours(value: Any) -> Any:
    """An argument for PyTorch as one for flambeau: tensors, dtypes, modules, functions."""
    if isinstance(value, torch.nn.Parameter):
        return flambeau.nn.Parameter(ours(value.data), value.requires_grad)
    if isinstance(value, torch.Tensor):
        exact = value.detach().double() if value.dtype is torch.bfloat16 else value.detach().clone()
        found = flambeau.from_numpy(exact.numpy()).to(ours(value.dtype))
        return found.requires_grad_(value.requires_grad)
    if isinstance(value, torch.dtype):
        return getattr(flambeau, str(value).removeprefix("torch."))
    if isinstance(value, torch.nn.Module):
        return _carried(value)
    if isinstance(value, list | tuple):
        return type(value)(ours(entry) for entry in value)
    if isinstance(value, dict):
        return {key: ours(entry) for key, entry in value.items()}
    if callable(value) and (value.__module__ or "").startswith("torch"):
        return getattr(flambeau.nn.functional, value.__name__)
    return value


def _carried(module: torch.nn.Module) -> Any:
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    return flambeau.load(file, weights_only=False)


def bits(tensor: Any) -> tuple[str, tuple[int, ...], bytes]:
    """A tensor of either library as something to compare: dtype, strides and bytes."""
    if type(tensor).__name__.startswith("Uninitialized"):
        return type(tensor).__name__, (), b""
    plain = tensor.detach()
    exact = plain.double() if "bfloat16" in str(tensor.dtype) else plain
    return str(tensor.dtype), tuple(plain.stride()), exact.contiguous().numpy().tobytes()


def assert_near(found: Any, expected: Any, tolerance: float) -> None:
    """Outputs of modules: tensors, and tuples of them."""
    if isinstance(expected, list | tuple):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_near(one, other, tolerance)
    elif isinstance(expected, torch.Tensor):
        assert str(found.dtype) == str(expected.dtype)
        theirs = expected.detach().to_dense().numpy()
        np.testing.assert_allclose(
            found.detach().numpy(), theirs, rtol=tolerance, atol=tolerance, equal_nan=True
        )
    else:
        assert found is None
        assert expected is None


@dataclass(frozen=True)
class Sample:
    """What to construct a module of, and what to call it with (None: it is not called)."""

    theirs: type
    ours: type
    arguments: tuple[Any, ...]
    options: dict[str, Any]
    inputs: Any

    def both(self, seed: int = 3) -> tuple[Any, Any]:
        """The module in both libraries, from one seed."""
        torch.manual_seed(seed)
        flambeau.manual_seed(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = self.theirs(*self.arguments, **self.options)
            return theirs, self.ours(*ours(self.arguments), **ours(self.options))


def samples(name: str, dtype: torch.dtype) -> Iterator[Sample]:
    """PyTorch's samples for one module, with parameters of a dtype."""
    info = MODULES[name]
    kind = info.module_cls
    has_dtype = "dtype" in inspect.signature(kind).parameters
    made = info.module_inputs_func(
        info, device="cpu", dtype=dtype, requires_grad=False, training=True
    )
    for sample in made:
        options = dict(sample.constructor_input.kwargs)
        if has_dtype:
            options["dtype"] = dtype
        arguments = tuple(sample.constructor_input.args)
        counterpart = getattr(flambeau.nn, kind.__name__)
        yield Sample(kind, counterpart, arguments, options, sample.forward_input)
