"""Rules of operators on distributed tensors: a table for each family."""

from __future__ import annotations

from flambeau.distributed.tensor.rules import along, products, views
from flambeau.distributed.tensor.rules.call import Rule

RULES: dict[str, Rule] = {**along.RULES, **products.RULES, **views.RULES}
