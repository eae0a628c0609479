"""What a drawn program is: its text, how it is called, and what is done with its results.

A case is plain data, so that it can be written down, read again and made smaller.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class TensorArgument:
    """A tensor that is made anew for each call."""

    shape: tuple[int, ...] = (2, 3)
    dtype: str = "float32"
    seed: int = 0
    layout: str = "rows"
    """How it lies: rows, transposed, sliced, expanded or offset."""
    learns: str = "no"
    """no, leaf, or computed: a leaf times one, which may be written to."""
    fill: str = "normal"
    """normal, special (zeros of both signs, NaN, infinities among others), small (whole numbers
    that may be indices), ones or zeros."""
    same_as: int = -1
    """The position of the argument that is given once more, if it is not negative."""


@dataclass(frozen=True, slots=True)
class Write:
    """A write after the call: into a result or an argument, by its place among all tensors."""

    place: int
    form: str = "zero_"


@dataclass(frozen=True, slots=True)
class After:
    """What is done once the program has returned."""

    writes: tuple[Write, ...] = ()
    """Into results and arguments, before gradients are asked for."""
    gradients: str = "no"
    """no, grad, backward or double."""
    picks: int = -1
    """Which results take part: bits, lowest first."""
    seed: int = 0
    """Of the weights that the results get."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call: arguments, the mode it stands in, and what follows."""

    arguments: tuple[Any, ...] = ()
    mode: str = "grad"
    """grad, no_grad or inference."""
    after: After = After()


@dataclass(frozen=True, slots=True)
class Case:
    """A program with its calls. It defines a function `f`, or a module class `M`."""

    text: str
    calls: tuple[Call, ...]
    small_kernels: bool = True
    """Whether fused kernels run for small tensors, too."""
    seed: str = ""
    notes: dict[str, Any] = field(default_factory=dict, compare=False)
