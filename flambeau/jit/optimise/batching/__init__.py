"""One batched computation in the place of a loop.

| file | what it holds |
|---|---|
| `program.py` | values with a batch dim, and the evaluation of a loop's nodes on them |
| `rules.py` | what rules are, and what they share |
| `arithmetic.py` | elementwise operators, products, reductions |
| `views.py` | parts, shapes, joins, lists |
"""

from __future__ import annotations

from flambeau.jit.optimise.batching import arithmetic, views
from flambeau.jit.optimise.batching.program import Batched, Counted, NotBatchable, Program
from flambeau.jit.optimise.batching.rules import RULES, repeated

__all__ = ["RULES", "Batched", "Counted", "NotBatchable", "Program", "arithmetic", "repeated",
           "views"]  # fmt: skip
