"""`torch.fx`: programs as graphs, which other programs look at and change.

    traced = torch.fx.symbolic_trace(module)
    for node in traced.graph.nodes: ...
    traced.recompile()

A trace (`_symbolic_trace.py`) runs the program once with proxies (`proxy.py`); what is done with
these becomes nodes (`node.py`) of a graph (`graph.py`), from which a GraphModule writes its code
(`code_generation.py`, `graph_module.py`). An Interpreter runs a graph node by node.
"""

from __future__ import annotations

from typing import Any

import flambeau.overrides  # operators ask other classes than Tensor from now on
from flambeau._core.missing import lazily
from flambeau.fx import graph, graph_module, immutable_collections, node, proxy
from flambeau.fx._symbolic_trace import PH, ProxyableClassMeta, Tracer, symbolic_trace, wrap
from flambeau.fx.graph import CodeGen, Graph
from flambeau.fx.graph_module import GraphModule
from flambeau.fx.interpreter import Interpreter, Transformer
from flambeau.fx.node import Node, has_side_effect, map_arg
from flambeau.fx.proxy import Proxy
from flambeau.fx.subgraph_rewriter import replace_pattern

__all__ = [
    "Graph", "GraphModule", "Interpreter", "Node", "Proxy", "Tracer", "Transformer",
    "has_side_effect", "map_arg", "replace_pattern", "symbolic_trace", "wrap",
]  # fmt: skip


__getattr__ = lazily(__name__)
