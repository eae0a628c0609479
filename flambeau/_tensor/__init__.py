"""The Tensor and its Storage; as `torch._tensor`, where programs look for the class."""

from flambeau._tensor.tensor import Tensor

__all__ = ["Tensor"]
