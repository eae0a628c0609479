"""Every argument of every optimizer acts as in PyTorch: other values than the default, good ones
and bad ones; parameters, state, text, warnings and errors after some steps."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch as reference

from conformance.side_by_side import assert_same, attempt
from conformance.test_sparse import LIBRARIES

FLAGS = ("amsgrad", "capturable", "centered", "decoupled_weight_decay", "differentiable", "foreach",
         "fused", "maximize", "nesterov")  # fmt: skip
OPTIMIZERS = [
    name for name in reference.optim.__all__
    if inspect.isclass(getattr(reference.optim, name)) and name != "Optimizer"
]  # fmt: skip


def values(name: str, default: Any) -> list[Any]:
    """Values to try for an argument."""
    if name in FLAGS:
        return [True, False, None]
    if isinstance(default, float):
        return [default * 2 + 0.1, 0.0, -1.0, 1]
    if isinstance(default, int):
        return [default + 1, 0, -1]
    if isinstance(default, tuple):
        return [tuple((part or 1) / 2 for part in default), (-1,) * len(default)]
    return [None, 0.1, 5, "strong_wolfe", "match_rms_adamw"]


def choices(name: str) -> Iterator[dict[str, Any]]:
    """Arguments, one of them changed; some beside others that they act with."""
    known = inspect.signature(getattr(reference.optim, name)).parameters
    for argument, parameter in known.items():
        for value in values(argument, parameter.default) if argument != "params" else ():
            for other in ({}, {"momentum": 0.9}, {"foreach": True}):
                if all(key in known and key != argument for key in other):
                    yield {argument: value, **other}


def loss_of(library: Any, name: str, parameters: list[Any]) -> Any:
    if name == "SparseAdam":
        rows = library.nn.functional.embedding(library.tensor([0, 1]), parameters[0], sparse=True)
        return rows.pow(3).sum()
    return sum((p * p * p).sum() for p in parameters)


def trained(library: Any, name: str, options: dict[str, Any]) -> Any:
    """What four steps leave."""
    parameters = [library.nn.Parameter(library.arange(6.0).view(2, 3) / 3 + 0.1)]
    if name not in ("Muon", "SparseAdam"):
        parameters.append(library.nn.Parameter(library.ones(3)))
    optimizer = getattr(library.optim, name)(parameters, **options)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = loss_of(library, name, parameters)
        loss.backward()
        return loss

    for _ in range(4):
        if name == "LBFGS":
            optimizer.step(closure)
            continue
        closure()
        optimizer.step()
    return [plain(parameters), plain(optimizer.state_dict()), repr(optimizer)]


def plain(value: Any) -> Any:
    """Tensors as arrays."""
    if hasattr(value, "detach"):
        return value.detach().double().numpy()
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    return [plain(entry) for entry in value] if isinstance(value, list | tuple) else value


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_arguments(name: str) -> None:
    for options in choices(name):
        ours, theirs = (attempt(trained, library, name, options) for library in LIBRARIES)
        if hasattr(theirs, "kind"):
            assert hasattr(ours, "kind"), (options, theirs)
            told = [(e.kind, e.text.partition("\n")[0]) for e in (ours, theirs)]
            assert told[0] == told[1], options
            continue
        assert not hasattr(ours, "kind"), (options, ours)
        with np.errstate(all="ignore"):
            assert_same(ours, theirs, 1e-4, 1e-6, f"{name}({options})")
