"""What PyTorch has no deterministic kernel for on GPUs, as rows say (`nondeterministic=`): under
`use_deterministic_algorithms(True)` such a call raises or warns, here too, though the kernels here
give the same bits each time. The names are those that PyTorch's errors give its kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau._core.settings import Determinism, alert_not_deterministic
from flambeau._ops.table.op import Op

Alert = Callable[[tuple[Any, ...]], None]


def alert_of(op: Op) -> Alert | None:
    """What is to be asked before a row's call, if something is."""
    if not op.nondeterministic:
        return None
    name, concerned = _name_and_condition(op)

    def alert(given: tuple[Any, ...]) -> None:
        if Determinism.enabled and concerned(given):
            alert_not_deterministic(name)

    return alert


def _name_and_condition(op: Op) -> tuple[str, Callable[[tuple[Any, ...]], bool]]:
    if isinstance(op.nondeterministic, str):
        return op.nondeterministic, lambda given: True
    return op.nondeterministic
