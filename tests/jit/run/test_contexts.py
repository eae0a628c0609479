"""`with` blocks that an error or an early end leaves."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau as torch
from flambeau.jit.run import Limits, set_limits


class Noted:
    def __init__(self, notes: list[str], name: str) -> None:
        self.notes = notes
        self.name = name

    def __enter__(self) -> str:
        self.notes.append("in " + self.name)
        return self.name

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        self.notes.append("out " + self.name)


def left_early(n: int) -> list[str]:
    notes: list[str] = []
    for i in range(3):
        with Noted(notes, "a") as name:
            notes.append(name)
            with Noted(notes, "b"):
                if i == n:
                    break
                notes.append("rest of b")
            notes.append("rest of a")
        notes.append("round")
    with Noted(notes, "c"):
        if n == 1:
            return notes
        notes.append("rest of c")
    return notes


@pytest.mark.parametrize("n", [0, 1, 5])
def test_the_order_is_pythons(n: int) -> None:
    assert torch.jit.script(left_early)(n) == left_early(n)


def failing(x):  # type: ignore[no-untyped-def]
    with torch.no_grad():
        for i in range(2):
            with torch.no_grad():
                if i == 1:
                    x = x.view(7)
    return x


@pytest.mark.parametrize("limits", [None, Limits(steps=100, memory=10_000)])
def test_modes_are_restored_after_errors(limits: Limits | None) -> None:
    function = torch.jit.script(failing)
    set_limits(function._function.unit, limits)
    try:
        for _ in range(3):
            with pytest.raises(RuntimeError, match="invalid for input of size 3"):
                function(torch.ones(3))
            assert torch.is_grad_enabled()
    finally:
        set_limits(function._function.unit, None)


def test_deep_blocks() -> None:
    lines = ["def f(x):"]
    for level in range(1, 31):
        lines.append("  " * level + ("with torch.no_grad():" if level % 2 else "if x.sum() > 0:"))
    lines += ["  " * 31 + "x = x.view(7)", "  return x"]
    unit = torch.jit.CompilationUnit("\n".join(lines) + "\n")
    with pytest.raises(RuntimeError, match="invalid"):
        unit.f(torch.ones(3))
    assert torch.is_grad_enabled()
