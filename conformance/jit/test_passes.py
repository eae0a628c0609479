"""Passes, run on torch's graphs by both, give the same graphs."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from flambeau.jit import passes
from flambeau.jit.ir.check import check

from .reading import compiled_functions, read_graph, without_names

COMPILED = compiled_functions()
C = torch._C
PASSES = {
    "remove_dead_code": (C._jit_pass_dce, passes.remove_dead_code),
    "immutable_constants": (
        C._jit_pass_constant_propagation_immutable_types, passes.propagate_immutable_constants,
    ),
    "propagate_constants": (C._jit_pass_constant_propagation, passes.propagate_constants),
    "pool_constants": (C._jit_pass_constant_pooling, passes.pool_constants),
    "eliminate_common": (C._jit_pass_cse, passes.eliminate_common),
    "peephole": (C._jit_pass_peephole, passes.peephole),
    "lower_all_tuples": (C._jit_pass_lower_all_tuples, passes.lower_all_tuples),
}  # fmt: skip
DIFFERS = {
    # Ours keeps making lists and tensors that leave the graph anew: constants are shared.
    *(("propagate_constants", name) for name in (
        "dictionaries", "empty_things", "optionals", "operators", "over_lists", "lists_of_lists")),
    # A tuple constant's device is spelled differently.
    ("propagate_constants", "devices"),
    # Torch gives results of nodes that cannot be taken apart wrong types.
    *(("lower_all_tuples", name) for name in (
        "over_lists", "enums", "Recurrent.lstm.check_hidden_size")),
}  # fmt: skip


@pytest.mark.parametrize("step", PASSES)
@pytest.mark.parametrize("name", COMPILED)
def test_pass(name: str, step: str) -> None:
    """The same nodes in the same order, and a sound graph."""
    theirs_pass, our_pass = PASSES[step]
    ours, theirs = read_graph(COMPILED[name].graph), COMPILED[name].graph.copy()
    our_pass(ours)
    check(ours)
    try:
        theirs_pass(theirs)
    except RuntimeError as refused:  # torch does not lower tuples that calls and lists use
        assert "tuple" in str(refused)
        return
    if (step, name) not in DIFFERS:
        assert without_names(str(ours)) == without_names(str(theirs))


@pytest.mark.parametrize("name", COMPILED)
def test_cleaned_up(name: str) -> None:
    """A compiled graph has been cleaned up: once more changes nothing but the constants' order."""
    ours: Any = read_graph(COMPILED[name].graph)
    before = without_names(str(ours))
    passes.clean_up(ours)
    check(ours)
    assert without_names(str(ours)) == before
