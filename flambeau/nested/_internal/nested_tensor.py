"""`NestedTensor` under the name that PyTorch has for it."""

from flambeau.nested._jagged import NestedTensor

__all__ = ["NestedTensor"]
