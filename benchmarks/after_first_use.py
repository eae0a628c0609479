"""What plain calls cost before and after a process has used modes, transforms and classes that may
take calls over: `python benchmarks/after_first_use.py`. Times of functions that got a gate, which
stays (docs/interpreters.md), in units of a short loop of Python's, since clocks wander."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import flambeau as torch
from flambeau.utils._python_dispatch import TorchDispatchMode

ROUNDS, CALLS = 80, 300
x, number = torch.ones(3), torch.ones(())


def unit() -> int:
    total = 0
    for i in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12):
        total += i * i
    return total


FUNCTIONS: dict[str, Callable[[], Any]] = {
    "unit": unit,
    "x + x": lambda: x + x,
    "zeros": lambda: torch.zeros(3),
    "ones_like": lambda: torch.ones_like(x),
    "reshape": lambda: x.reshape(-1),
    "detach": lambda: x.detach(),
    "item": lambda: number.item(),
}


class Passing(TorchDispatchMode):
    """Lets everything through."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


class Sub(torch.Tensor):
    """A class that takes part, by the default of Tensor."""


def batches() -> None:
    torch.func.vmap(lambda row: row * 2)(x)


def mode() -> None:
    with Passing():
        torch.zeros(3)


def class_() -> None:
    x.as_subclass(Sub) + 1  # type: ignore[attr-defined]


def best() -> dict[str, float]:
    found = dict.fromkeys(FUNCTIONS, float("inf"))
    for _ in range(ROUNDS):
        for name, function in FUNCTIONS.items():
            begun = time.perf_counter()
            for _ in range(CALLS):
                function()
            found[name] = min(found[name], time.perf_counter() - begun)
    return {name: seconds / found["unit"] for name, seconds in found.items()}


def main() -> None:
    print(f"{'':16}", *[f"{name:>10}" for name in FUNCTIONS])
    for use in (None, batches, mode, class_):
        if use is not None:
            use()
        row = [f"{value:10.2f}" for value in best().values()]
        print(f"{'fresh' if use is None else use.__name__.strip('_'):16}", *row)


if __name__ == "__main__":
    main()
