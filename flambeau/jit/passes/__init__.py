"""What is done to graphs between the compiler, the printer and the executor.

| module | passes |
|---|---|
| `inlining` | `inline`: calls become what they call |
| `normalise` | `normalise_names`: one name for each operator |
| `control_flow` | loops and branches: `make_while_loops`, `order_results` |
| `tuples` | `lower_simple_tuples`, `lower_all_tuples` |
| `constants` | `propagate_constants`, `pool_constants` |
| `peepholes`, `common` | `peephole`, `eliminate_common`: simpler nodes, and each once |
| `dead_code` | `remove_dead_code` |
| `freezing`, `frozen` | attributes as constants, and what can be done then |
| `alias`, `effects`, `schemas` | what passes have to know: who writes to what |
"""

from __future__ import annotations

from flambeau.jit.ir.graph import Graph
from flambeau.jit.passes.common import eliminate_common
from flambeau.jit.passes.constants import (
    pool_constants,
    propagate_constants,
    propagate_immutable_constants,
)
from flambeau.jit.passes.control_flow import make_while_loops, order_results
from flambeau.jit.passes.dead_code import remove_dead_code
from flambeau.jit.passes.inlining import inline
from flambeau.jit.passes.normalise import normalise_names, number_warnings
from flambeau.jit.passes.peepholes import peephole
from flambeau.jit.passes.tuples import lower_all_tuples, lower_simple_tuples

__all__ = [
    "clean_up", "eliminate_common", "inline", "lower_all_tuples", "peephole", "pool_constants",
    "propagate_constants", "propagate_immutable_constants", "remove_dead_code",
]  # fmt: skip


def clean_up(graph: Graph) -> None:
    """What every compiled function goes through once, so that equal programs give equal graphs."""
    make_while_loops(graph)
    normalise_names(graph)
    lower_simple_tuples(graph)
    propagate_immutable_constants(graph)
    pool_constants(graph)
    order_results(graph)
    number_warnings(graph)
