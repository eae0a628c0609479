"""Modules in a trace: whose parameter a tensor is, and which module's forward is running.

While a module runs, its operators go to a block of their own, that of a node
`prim::TracedModuleForward`; `methods` makes methods of these blocks.
"""

from __future__ import annotations

from typing import Any

from flambeau.jit.ir import types as T
from flambeau.jit.ir.graph import Block, Node, Value


class Scope:
    """A module that is running, and the block for its operators.

    `self.layer.weight` is asked for with the path ("layer", "weight"); the nodes that get it stand
    at the beginning of the block, what is asked for last first, as in torch's traces.
    """

    def __init__(self, module: Any, block: Block) -> None:
        self.module = module
        self.block = block
        self.gets: dict[tuple[str, ...], Value] = {}
        self.tensors: dict[int, tuple[str, ...]] = {}
        self.modules: dict[int, tuple[str, ...]] = {id(module): ()}
        self._survey(module, ())
        self.self_value = block.add_input(T.ANY, "self")

    def _survey(self, module: Any, path: tuple[str, ...]) -> None:
        for name, child in module._modules.items():
            if child is not None and id(child) not in self.modules:
                self.modules[id(child)] = (*path, name)
                self._survey(child, (*path, name))
        for table in (module._parameters, module._buffers):
            for name, tensor in table.items():
                if tensor is not None:
                    self.tensors.setdefault(id(tensor), (*path, name))

    def holds(self, tensor: Any) -> bool:
        """Whether a tensor is a parameter or buffer of the module or one below it."""
        return id(tensor) in self.tensors

    def state(self, tensor: Any) -> Value | None:
        """The value of a parameter or buffer of the module or of one below it."""
        path = self.tensors.get(id(tensor))
        return None if path is None else self.get(path)

    def submodule(self, module: Any) -> Value | None:
        """The value of a module at or below this one."""
        path = self.modules.get(id(module))
        return None if path is None else self.get(path)

    def get(self, path: tuple[str, ...]) -> Value:
        """The value of an attribute of an attribute …"""
        if not path:
            return self.self_value
        value = self.gets.get(path)
        if value is None:
            value = self.gets[path] = self._chain(path)
        return value

    def _chain(self, path: tuple[str, ...]) -> Value:
        """Nodes for each step, all before what the block begins with so far."""
        value, first = self.self_value, self.block.end.after
        assert first is not None
        for name in path:
            node = Node(self.block.graph, "prim::GetAttr", [value], {"name": name})
            node.insert_before(first)
            value = node.add_output(T.ANY, name)
        return value
