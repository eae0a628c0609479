"""What calls may use beside the library, and how they are listened to."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from conformance.autograd.generated.observing import Line
from conformance.jit.generated.cases import TensorArgument
from conformance.jit.generated.making import numbers
from conformance.modules.generated.words import ModuleWords

BINDING = re.compile(
    r"missing \d+ required|unexpected keyword|takes no keyword|takes \d+ positional|"
    r"takes no arguments|takes from|"
    r"invalid combination|multiple values|unrecognized|must be .*, not |takes at most|"
    r"must be .*, but found|expected Tensor as element"
)
"""What Python and PyTorch say, each in its words, of arguments that fit no signature."""
NUMPY_TYPES = {"bfloat16": "float32"}


class CallWords(ModuleWords):
    """The words of a program of calls."""

    def names(self) -> dict[str, Any]:
        return {**super().names(), "np": np, "array": self.array, "Tensor": self.torch.Tensor}

    def array(self, seed: int, shape: tuple[int, ...], dtype: str) -> np.ndarray:
        """An array of drawn numbers."""
        drawn = numbers(TensorArgument(shape, dtype, seed), shape)
        return np.array(drawn).astype(NUMPY_TYPES.get(dtype, dtype))

    @contextlib.contextmanager
    def listening(self, line: Line) -> Iterator[None]:
        """Warnings and errors are weighed in words, without what calls are made of inside."""
        with super().listening(line):
            yield
        line.warned = [(kind, _in_public(said)) for kind, said in line.warned]
        if line.error == "TypeError" and BINDING.search(line.said):
            line.said = "the arguments do not fit"


def _in_public(said: str) -> str:
    return re.sub(r"\bflambeau\b", "torch", said)
