"""Several modules called at once, each on its device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from flambeau._core.device import device
from flambeau.nn.module import Module

__all__ = ["parallel_apply"]


def parallel_apply(
    modules: Sequence[Module],
    inputs: Sequence[Any],
    kwargs_tup: Sequence[dict[str, Any]] | None = None,
    devices: Sequence[Any] | None = None,
) -> NoReturn:
    """Call each module with its inputs on its accelerator: there is none.

    Raises:
        AssertionError: the sequences differ in length.
        RuntimeError: otherwise.
    """
    given = {"inputs": inputs, "kwargs_tup": kwargs_tup, "devices": devices}
    for name, values in given.items():
        if values is not None and len(values) != len(modules):
            raise AssertionError(
                f"The number of modules {len(modules)} is not equal to the number of {name} "
                f"{len(values)}"
            )
    for target in devices or ():
        if isinstance(target, (str, device)) and device(target).type != "cuda":
            raise ValueError(f"Expected a cuda device, but got: {target}")
    if not modules:
        raise AssertionError("No available accelerator found.")
    raise RuntimeError("Cannot access accelerator device when none is available.")
