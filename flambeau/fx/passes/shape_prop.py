"""`torch.fx.passes.shape_prop`: run a graph once, and note shape and type at each node."""

from __future__ import annotations

from typing import Any, NamedTuple

from flambeau._core.dtype import dtype
from flambeau._core.layout import Size, channels_last, channels_last_3d, contiguous_format
from flambeau._core.layout import memory_format as MemoryFormat
from flambeau._tensor.tensor import Tensor
from flambeau.fx.interpreter import Interpreter
from flambeau.fx.node import Node, map_aggregate

__all__ = ["ShapeProp", "TensorMetadata"]


class TensorMetadata(NamedTuple):
    """What is known of a tensor without its numbers."""

    shape: Size
    dtype: dtype
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: MemoryFormat | None
    is_quantized: bool
    qparams: dict[str, Any]


def _extract_tensor_metadata(result: Tensor, include_contiguity: bool = True) -> TensorMetadata:
    """What a node notes of a tensor."""
    formats = (contiguous_format, channels_last, channels_last_3d)
    found = None
    for candidate in formats if include_contiguity else ():
        ranks = {channels_last: 4, channels_last_3d: 5}.get(candidate, result.dim())
        if ranks == result.dim() and result.is_contiguous(memory_format=candidate):
            found = candidate
            break
    return TensorMetadata(
        result.shape, result.dtype, result.requires_grad, result.stride(), found, False, {}
    )


class ShapeProp(Interpreter):
    """Runs a graph; each node's `meta` has `tensor_meta` and `type` of its value afterwards."""

    def run_node(self, n: Node) -> Any:
        """Run one node, and note what its value is."""
        result = super().run_node(n)
        seen = False

        def note(leaf: Any) -> Any:
            nonlocal seen
            if not isinstance(leaf, Tensor):
                return leaf
            seen = True
            return _extract_tensor_metadata(leaf)

        noted = map_aggregate(result, note)
        if seen:
            n.meta["tensor_meta"] = noted
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Run the graph with these inputs."""
        return super().run(*args)
