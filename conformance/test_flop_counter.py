"""`torch.utils.flop_counter`: the same counts, by module and operator."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import pytest

from conformance.side_by_side import compare

pytest.importorskip("torch")


def counter_of(module: Any) -> Any:
    """The module that counts."""
    return importlib.import_module(f"{module.__name__}.utils.flop_counter")


def net_of(nn: Any) -> Any:
    """A small net with a branch in a dict."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(4, 8, 3, padding=1, stride=2, groups=2)
            self.heads = nn.ModuleDict({"q": nn.Sequential(nn.Linear(8, 16), nn.ReLU())})
            self.last = nn.Linear(16, 3)

        def forward(self, x: Any) -> Any:
            return self.last(self.heads["q"](self.conv(x).mean((2, 3))))

    return Net()


CALLS: dict[str, Callable[[Any], Any]] = {
    "mm": lambda m: m.randn(3, 4) @ m.randn(4, 5),
    "bmm": lambda m: m.einsum("bij,bjk->bik", m.randn(2, 3, 4), m.randn(2, 4, 5)),
    "folded": lambda m: m.randn(2, 3, 4) @ m.randn(4, 5),
    "baddbmm": lambda m: m.baddbmm(m.zeros(1), m.randn(2, 3, 4), m.randn(2, 4, 5)),
    "linear": lambda m: m.nn.Linear(4, 5)(m.randn(2, 3, 4)).sum().backward(),
    "conv1d": lambda m: m.nn.Conv1d(4, 6, 3, groups=2)(m.randn(2, 4, 9)),
    "conv3d": lambda m: m.nn.Conv3d(2, 4, 3)(m.randn(1, 2, 6, 6, 6)).sum().backward(),
    "transposed": lambda m: (
        m.nn.ConvTranspose2d(4, 6, 3, groups=2)(m.randn(2, 4, 5, 7, requires_grad=True))
        .sum()
        .backward()
    ),
    "multi-head": lambda m: m.nn.MultiheadAttention(8, 2)(*[m.randn(3, 2, 8)] * 3),
    "net": lambda m: net_of(m.nn)(m.randn(2, 4, 16, 16)).sum().backward(),
    "nothing": lambda m: m.exp(m.ones(3)),
}


@pytest.mark.parametrize("name", CALLS)
def test_counts(name: str) -> None:
    """Total, and counts by module and operator."""

    def scenario(module: Any) -> Any:
        with counter_of(module).FlopCounterMode(display=False) as counter:
            CALLS[name](module)
        counts = {
            where: {str(operator): count for operator, count in sorted(found.items(), key=str)}
            for where, found in sorted(counter.get_flop_counts().items())
        }
        return counter.get_total_flops(), counts

    compare(scenario)


@pytest.mark.parametrize("depth", [1, 2, 3, None])
def test_tables(depth: int | None) -> None:
    """The same text."""
    pytest.importorskip("tabulate")

    def scenario(module: Any) -> Any:
        with counter_of(module).FlopCounterMode(display=False, depth=depth) as counter:
            net_of(module.nn)(module.randn(2, 4, 16, 16)).sum().backward()
        return counter.get_table()

    compare(scenario)


def test_formulas_of_programs() -> None:
    """Formulas that a program adds."""

    def scenario(module: Any) -> Any:
        def formula(shape: Any, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
            return 10 * shape[0] + out_shape[1]

        mapping = {module.ops.aten.exp: formula}
        counting = counter_of(module).FlopCounterMode(display=False, custom_mapping=mapping)
        with counting as counter:
            module.exp(module.ones(2, 3))
        return counter.get_total_flops()

    compare(scenario)
