"""What is drawn from a generator of a CUDA device: `PhiloxGenerator.numbers`."""

from __future__ import annotations

from flambeau._core.random_numbers import __all__ as __all__
