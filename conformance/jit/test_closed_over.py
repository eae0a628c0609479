"""Scripts that use dataclasses and partial functions of the file around them."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import flambeau

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

DATACLASSES = """
import dataclasses
from typing import List, Optional, Tuple

@torch.jit.script
@dataclasses.dataclass
class Batch:
    images: torch.Tensor
    labels: Optional[torch.Tensor] = None
    count: int = 3
    sizes: Optional[List[int]] = None

def used(x: torch.Tensor):
    one, other = Batch(x), Batch(x, x, 4, [1, 2])
    total = one.images * one.count
    labels = other.labels
    if labels is not None:
        total = total + labels * other.count
    same = one == Batch(x), other == Batch(x, x, 4, [1, 2]), other == Batch(x, x)
    return total, one == other, same

@torch.jit.script
@dataclasses.dataclass(order=True)
class Place:
    row: int
    column: int = 1

def ordered(x: int):
    same = Place(x) == Place(3, 2), Place(x) == Place(x)
    return Place(x) < Place(3), Place(x) >= Place(3, 1), same
"""


def run_dataclasses(path: Path, patch: pytest.MonkeyPatch, scripted: bool) -> list[Any]:
    """What both functions give, compiled from a file of their own or by Python alone."""
    name = f"dataclasses_{scripted}"
    text = DATACLASSES if scripted else DATACLASSES.replace("@torch.jit.script\n", "")
    (path / f"{name}.py").write_text(text)
    module = types.ModuleType(name)
    patch.setitem(sys.modules, name, module)
    vars(module).update(torch=flambeau, __file__=str(path / f"{name}.py"))
    exec(compile(text, vars(module)["__file__"], "exec"), vars(module))  # noqa: S102
    compiled = flambeau.jit.script if scripted else lambda function: function
    used, ordered = compiled(module.used), compiled(module.ordered)
    found = used(flambeau.tensor([2.0]))
    return [found[0].tolist(), found[1:], [ordered(number) for number in (2, 3, 4)]]


def test_dataclasses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Python's; PyTorch compares no optional tensors."""
    scripted = run_dataclasses(tmp_path, monkeypatch, scripted=True)
    assert scripted == run_dataclasses(tmp_path, monkeypatch, scripted=False)


def scaled(x: flambeau.Tensor, by: int, more: float = 1.0) -> flambeau.Tensor:
    return x * by + more


PARTIALS: dict[str, Callable[..., Any]] = {
    "by a name": functools.partial(scaled, by=2),
    "with a default": functools.partial(scaled, by=2, more=0.5),
    "an operator": functools.partial(flambeau.mul, other=3),
    "of the library": functools.partial(flambeau.nn.functional.leaky_relu, negative_slope=0.5),
    "of a partial": functools.partial(functools.partial(scaled, more=2.0), by=3),
}


@pytest.mark.parametrize("name", PARTIALS)
def test_partial_functions(name: str) -> None:
    """PyTorch compiles only those of operators without a name."""
    known = PARTIALS[name]

    def closes_over(x: flambeau.Tensor):
        return known(x)

    x = flambeau.tensor([1.0, -2.0])
    flambeau.testing.assert_close(flambeau.jit.script(closes_over)(x), known(x))


def test_names_of_a_call_replace_those_of_the_partial() -> None:
    known = functools.partial(scaled, by=2, more=5.0)

    def closes_over(x: flambeau.Tensor):
        return known(x, by=3)

    assert flambeau.jit.script(closes_over)(flambeau.ones(1)).item() == 8.0
