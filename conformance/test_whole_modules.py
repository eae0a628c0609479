"""Whole modules in files: each side's pickles give the other side its own classes and numbers."""

from __future__ import annotations

import io
import warnings
from typing import Any

import pytest
import torch

import flambeau
from conformance.module_samples import MODULES, assert_near, ours, samples


def sent(value: Any, sender: Any, receiver: Any, **options: Any) -> Any:
    """Saved by one library, loaded by the other."""
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sender.save(value, file, **options)
        file.seek(0)
        return receiver.load(file, weights_only=False)


def state(module: Any) -> dict[str, Any]:
    """Names, dtypes, shapes and bytes of all that a module holds."""
    return {
        name: (str(tensor.dtype), tuple(tensor.shape), tensor.detach().double().numpy().tobytes())
        for name, tensor in module.state_dict().items()
        if not type(tensor).__name__.startswith("Uninitialized")
    }


def called(module: Any, inputs: Any, convert: Any) -> Any:
    """What a module makes of inputs; lazy and random ones draw the same numbers each time."""
    torch.manual_seed(7)
    flambeau.manual_seed(7)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return module(*convert(inputs.args), **convert(inputs.kwargs))


LEGACY = ("Linear", "BatchNorm2d", "LSTM", "TransformerEncoderLayer", "Embedding")
CASES = [*((name, True) for name in MODULES), *((name, False) for name in LEGACY)]


@pytest.mark.parametrize(("name", "zip_format"), CASES)
def test_modules_cross_over_and_back(name: str, zip_format: bool):
    # PyTorch's samples for these bring random numbers that are always double.
    dtype = torch.float64 if name.startswith("Fractional") else torch.float32
    sample = next(samples(name, dtype))
    theirs, _ = sample.both()
    theirs.eval()
    crossed = sent(theirs, torch, flambeau, _use_new_zipfile_serialization=zip_format)
    assert type(crossed) is sample.ours
    assert repr(crossed) == repr(theirs)
    assert state(crossed) == state(theirs)
    back = sent(crossed, flambeau, torch, _use_new_zipfile_serialization=zip_format)
    assert type(back) is sample.theirs
    assert repr(back) == repr(theirs)
    assert state(back) == state(theirs)
    assert not back.training
    if sample.inputs is None:
        return
    expected = called(theirs, sample.inputs, lambda value: value)
    assert_near(called(crossed, sample.inputs, ours), expected, 1e-5)
    assert_near(called(back, sample.inputs, lambda value: value), expected, 0)


@pytest.mark.parametrize("name", MODULES)
def test_our_modules_load_in_torch(name: str):
    sample = next(samples(name, torch.float32))
    _, made = sample.both()
    back = sent(made, flambeau, torch)
    assert type(back) is sample.theirs
    assert state(back) == state(made)
    assert back.training
