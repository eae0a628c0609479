"""The table of families, and a program of one of them."""

from __future__ import annotations

import random
from collections.abc import Callable

import torch as reference

from . import (
    activations,
    attention,
    convolution,
    images,
    losses,
    norms,
    orders,
    pooling,
    products,
    recurrent,
    scattering,
    spectra,
)
from .drawing import Drawing

Family = Callable[[Drawing], object]
FAMILIES: dict[str, tuple[Family, float]] = {
    "convolution": (convolution.drawn, 3), "pooling": (pooling.drawn, 3),
    "norms": (norms.drawn, 2), "attention": (attention.drawn, 2),
    "recurrent": (recurrent.drawn, 1.5), "images": (images.drawn, 3),
    "spectra": (spectra.drawn, 2.5), "scattering": (scattering.drawn, 3),
    "losses": (losses.drawn, 2.5), "products": (products.drawn, 2), "orders": (orders.drawn, 3),
    "activations": (activations.drawn, 1),
}  # fmt: skip
"""What is drawn, and how often."""
TRIES = 8
KEPT_ERRORS = 0.06
"""The share of programs that raise an error in PyTorch which are kept."""


def case(seed: str) -> str:
    """The program of a seed; `pooling,norms:1/7` draws only of these families."""
    drawn = random.Random(seed)
    named = seed.partition(":")[0].split(",") if ":" in seed else list(FAMILIES)
    weights = [FAMILIES[name][1] for name in named]
    for _ in range(TRIES):
        program = Drawing(drawn, reference)
        FAMILIES[drawn.choices(named, weights)[0]][0](program)
        if drawn.random() < KEPT_ERRORS or program.run():
            break
    return program.text()
