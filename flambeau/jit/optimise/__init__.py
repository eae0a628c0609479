"""The optimiser: graphs as they are run.

`optimised(function)` works on a copy of a function's graph; the graph that is printed and saved
stays as it was compiled. In order:

1. calls of small functions are inlined, constants folded, equal computations shared, unused ones
   left out (`passes/`);
2. loops that collect become one batched computation (`batched_loops.py`); those whose rounds need
   each other get what does not computed ahead (`recurrences.py`), and with any recurrent cell
   become one kernel (`scans/`);
3. convolutions take normalisation, residual and activation with them (`images.py`);
4. pointwise operators and normalisation become groups, which run as kernels (`fusion/`);
5. chains of views become the subscripts that they came from (`subscripts.py`).

What is put in is a `flambeau::Call` node with a Python callable that decides for itself, call by
call, whether its quick way holds for the arguments (types, shapes, gradients), and has the
operators that it replaces to fall back to. So nothing has to be assumed about a function as a
whole. `settings.py` says how each is switched off.
"""

from __future__ import annotations

from flambeau.jit.ir.function import Function
from flambeau.jit.ir.graph import Graph
from flambeau.jit.optimise import settings

LARGEST_CALLEE = 400
"""Nodes of a function that is put in the place of its calls; larger ones are compiled once and
called, which costs nothing beside what they do.
"""


def optimised(function: Function) -> Graph:
    """The graph that is run in the place of a function's own."""
    graph = function.graph.copy()
    optimise(graph)
    return graph


def optimise(graph: Graph) -> None:
    """Rewrite a graph that nobody else holds."""
    switches = settings.current
    if switches.clean_up:
        clean_up(graph)
    has_loops = any(node.kind == "prim::Loop" for node in graph.walk())
    if has_loops and (switches.loop_batching or switches.hoisting):
        from flambeau.jit.optimise import batched_loops

        batched_loops.rewrite(graph.block)
    if switches.images:
        from flambeau.jit.optimise import images

        images.rewrite(graph.block)
    fuse_body(graph)


def fuse_body(graph: Graph) -> None:
    """Groups and subscripts, for graphs that have been through the rest."""
    if settings.current.fusion:
        from flambeau.jit.optimise.fusion import groups

        groups.rewrite(graph.block)
    if settings.current.subscripts:
        from flambeau.jit.optimise import subscripts

        subscripts.rewrite(graph.block)


def clean_up(graph: Graph) -> None:
    """Inline, fold, share, leave out."""
    from flambeau.jit import passes
    from flambeau.jit.passes.tuples import lower_carried_tuples

    passes.inline(graph, LARGEST_CALLEE)
    lower_carried_tuples(graph)
    passes.propagate_constants(graph, in_every_mode=True)
    passes.peephole(graph)
    passes.eliminate_common(graph, within=True)
    passes.remove_dead_code(graph)
