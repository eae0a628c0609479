"""Tables of functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau._core.tables import entering


def test_functions_are_found_under_all_their_names() -> None:
    table: dict[str, Callable[..., Any]] = {}
    plain, spelled = entering(table), entering(table, str.upper)

    @plain("a", "b")
    @spelled("c")
    def found() -> int:
        return 1

    assert found() == 1
    assert table == {"a": found, "b": found, "C": found}
