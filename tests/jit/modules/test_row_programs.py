"""Bodies of rows as programs."""

from __future__ import annotations

import pytest

import flambeau as torch
import flambeau.nn.functional as F  # noqa: N812
from flambeau._core import programs
from flambeau.jit.frontend.builtins import is_functional
from flambeau.jit.modules import row_programs

PYTHON_ONLY = {"gaussian_nll_loss", "grouped_mm", "linear_cross_entropy",
               "triplet_margin_with_distance_loss"}  # fmt: skip
"""Functions that take what programs have not, or work on arrays."""
NAMES = [name for name in dir(F) if not (is_functional(name) or name in PYTHON_ONLY)]


@pytest.mark.parametrize("name", NAMES)
def test_every_function_compiles(name: str) -> None:
    found = row_programs.program(f"nn.functional.{name}")
    if isinstance(found, row_programs.Flagged):
        choices = [(), *((flag,) for flag in found.flags)]
        functions = [row_programs.chosen_function(found.op, chosen) for chosen in choices]
    elif found is not None:
        functions = list(found.functions)  # type: ignore[attr-defined]
    else:
        functions = []
    for function in functions:
        function.ensure_defined()
        assert function.qualified_name.startswith("__torch__.torch.nn.functional.")


def test_most_functions_are_programs() -> None:
    assert sum(row_programs.program(f"nn.functional.{name}") is not None for name in NAMES) > 70


def renormed(x: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    return F.embedding(x, table, max_norm=1.0)


def test_programs_leave_out_what_is_eager() -> None:
    table = torch.full((2, 2), 3.0)
    index = torch.tensor([0])
    assert torch.jit.script(renormed)(index, table).tolist() == [[3.0, 3.0]]
    assert renormed(index, table).norm().item() == pytest.approx(1.0)


def test_products_of_sizes() -> None:
    assert programs.product([2, 3, 4]) == 24
    assert programs.product([]) == 1


def pooled(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return F.max_pool2d(x, 2), F.max_pool2d(x, 2, return_indices=True)[1]


def test_a_flag_leaves_one_branch() -> None:
    scripted = torch.jit.script(pooled)
    scripted(torch.ones(1, 1, 4, 4))
    text = str(scripted.inlined_graph)
    assert text.count("aten::max_pool2d(") == 1
    assert text.count("aten::max_pool2d_with_indices(") == 1
