"""What `fully_shard` may be told: types of numbers, and where parts are kept."""

from __future__ import annotations

from dataclasses import dataclass

from flambeau._core.dtype import dtype


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """Types of numbers while a module computes.

    Attributes:
        param_dtype: of gathered parameters, and of inputs; that of the parameters by default.
        reduce_dtype: in which gradients are averaged; `param_dtype` by default.
        output_dtype: of the module's outputs.
        cast_forward_inputs: whether inputs are cast to `param_dtype`.
    """

    param_dtype: dtype | None = None
    reduce_dtype: dtype | None = None
    output_dtype: dtype | None = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Parts of parameters stay on the device."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Parts of parameters are kept on the CPU, where they are in any case here.

    Attributes:
        pin_memory: for copies to GPUs; without meaning here.
    """

    pin_memory: bool = True
