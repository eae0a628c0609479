"""One batched computation in the place of a loop.

| file | what it holds |
|---|---|
| `values.py` | the tensors and the integers of all rounds |
| `program.py` | the evaluation of a loop's nodes on them |
| `likeness.py` | whether all rounds are like the first, which is run by the plain operators |
| `saved.py` | what rounds save for backward of tensors that they did not make |
| `rules.py` | what rules are, and what they share |
| `arithmetic.py` | elementwise operators, integers |
| `products.py` | products |
| `derived.py` | what follows from rows: along dims, views, joins, indices |
| `reductions.py` | reductions whose overloads are others than their rows |
| `views.py` | sizes, and shapes that differ from what `vmap` does |
| `choices.py` | parts that each round takes by its own number |
"""

from __future__ import annotations

from flambeau.jit.optimise.batching import arithmetic, choices, products, reductions, views
from flambeau.jit.optimise.batching.program import Program
from flambeau.jit.optimise.batching.rules import RULES, repeated
from flambeau.jit.optimise.batching.values import Batched, Counted, NotBatchable, Rounds

__all__ = ["RULES", "Batched", "Counted", "NotBatchable", "Program", "Rounds", "arithmetic",
           "choices", "products", "reductions", "repeated", "views"]  # fmt: skip
