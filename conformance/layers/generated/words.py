"""What drawn programs of layers may use beside the library."""

from __future__ import annotations

from typing import Any

from conformance.autograd.generated.words import Words, noise
from conformance.jit.generated.cases import TensorArgument
from conformance.jit.generated.making import laid
from conformance.modules.generated.words import ModuleWords


class LayerWords(Words):
    """The words of a program that calls a layer."""

    listening = ModuleWords.listening
    apart = ModuleWords.apart

    def names(self) -> dict[str, Any]:
        torch = self.torch
        return {
            "torch": torch, "nn": torch.nn, "F": torch.nn.functional, "rnn": torch.nn.utils.rnn,
            "make": self.make, "bits": self.bits, "filled": self.filled, "slopes": self.slopes,
            "state": self.state,
        }  # fmt: skip

    def bits(self, seed: int, shape: tuple[int, ...]) -> Any:
        """A mask."""
        return laid(TensorArgument(shape, "bool", seed), self.torch)

    def filled(self, module: Any, seed: int, dtype: str = "float32") -> Any:
        """A module with drawn weights."""
        module.to(getattr(self.torch, dtype))
        for number, weight in enumerate(module.parameters()):
            weight.data.copy_(self.make(seed + number, tuple(weight.shape), dtype))
        return module

    def slopes(self, results: Any, leaves: Any, seed: int = 0) -> Any:
        """Gradients of results, each with weights of its own."""
        ends = [value for value in _tensors(results) if value.requires_grad]
        if not ends:
            return None
        weights = [self._weights(value, seed + place) for place, value in enumerate(ends)]
        return list(self.torch.autograd.grad(ends, list(leaves), weights, allow_unused=True))

    def _weights(self, value: Any, seed: int) -> Any:
        drawn = self.torch.from_numpy(noise(seed, tuple(value.shape)))
        return drawn.to(value.dtype)

    def state(self, module: Any) -> Any:
        """What a module has counted."""
        return list(module.buffers())


def _tensors(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list)):
        return [tensor for item in value for tensor in _tensors(item)]
    return [value] if hasattr(type(value), "storage_offset") else []
