"""The repr of layers whose settings were changed, to what they may not be, too."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import flambeau

LAYERS = {
    "LSTM": (3, 3), "GRU": (3, 3), "RNN": (3, 3), "Linear": (2, 2), "Conv2d": (1, 1, 1),
    "BatchNorm1d": (2,), "LayerNorm": (2,), "GroupNorm": (1, 2), "Embedding": (2, 2),
    "EmbeddingBag": (2, 2), "MaxPool2d": (2,), "AvgPool2d": (2,), "Bilinear": (2, 2, 2),
    "Upsample": (2,), "Fold": (2, 2), "Unflatten": (0, (1,)), "RMSNorm": (2,),
}  # fmt: skip
VALUES = ("text", None, 0, 1, True, False, 2.5, [1], (2, "a"))


def shown(library: Any, name: str) -> list[str]:
    """What a layer shows with each of the values in the place of each of its settings."""
    layer = getattr(library.nn, name)(*LAYERS[name])
    told = []
    for key in sorted(layer.__dict__):
        if key.startswith("_") or key == "training":
            continue
        kept = layer.__dict__[key]
        for value in VALUES:
            layer.__dict__[key] = value
            try:
                told.append(f"{key} {value!r} {layer!r}")
            except (TypeError, AttributeError) as error:
                told.append(f"{key} {value!r} {type(error).__name__}")
        layer.__dict__[key] = kept
    return told


@pytest.mark.parametrize("name", LAYERS)
def test_changed_settings(name: str) -> None:
    assert shown(flambeau, name) == shown(torch, name)
