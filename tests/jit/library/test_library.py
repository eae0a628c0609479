"""Functions and layers of torch that are programs themselves."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

import flambeau as torch
import flambeau.nn.functional as F  # noqa: N812
from flambeau import nn
from flambeau.jit.library import reader, scope


@pytest.fixture(autouse=True)
def _deprecated() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def every_function() -> list[tuple[str, str]]:
    """The functions of the library, with the modules of torch that they stand in."""
    found = []
    for place, pattern in reader.PLACES.items():
        for name, path in reader.files_of(pattern).items():
            nodes = reader.parsed(Path(path))[1][name]
            if reader.definitions(place, name) and len(nodes) >= 1:
                found.append((place, name))
    return found


@pytest.mark.parametrize(("place", "name"), every_function())
def test_every_function_compiles(place: str, name: str) -> None:
    variants = scope.functions(place, name)
    assert variants
    for function in variants:
        function.ensure_defined()
        assert function.qualified_name.startswith(f"__torch__.{place}.")
        assert function.name == name


def flagged(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    values, _ = F.max_pool1d(x, 2, return_indices=True)
    return values, F.max_pool1d(x, 2)


def test_a_flag_chooses_the_function() -> None:
    one, other = torch.jit.script(flagged)(torch.arange(6.0).reshape(1, 1, 6))
    assert one.tolist() == other.tolist() == [[[1.0, 3.0, 5.0]]]


def flag_by_chance(x: torch.Tensor, flag: bool) -> torch.Tensor:
    return F.max_pool1d(x, 2, return_indices=flag)


def test_a_flag_has_to_be_known() -> None:
    with pytest.raises(RuntimeError, match="argument for boolean dispatch was not constant"):
        torch.jit.script(flag_by_chance)


def traced(x: int) -> int:
    return 1 if torch.jit.is_tracing() else x


def test_programs_are_not_being_traced() -> None:
    assert torch.jit.script(traced)(5) == 5


def norms(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return torch.norm(x), torch.norm(x, 1, [0, 1]), torch.norm(x, p=2.0, dim=1)


def test_norms_by_name_and_number() -> None:
    by_name, sums, rows = torch.jit.script(norms)(torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
    assert (by_name.item(), sums.item(), rows.tolist()) == (5.0, 7.0, [5.0, 0.0])


def asserted(x: torch.Tensor) -> torch.Tensor:
    torch._assert(x.sum() > 0, "should be positive")
    return x


def test_assertions_raise() -> None:
    scripted = torch.jit.script(asserted)
    assert scripted(torch.ones(1)).item() == 1
    with pytest.raises(RuntimeError, match="AssertionError: should be positive"):
        scripted(-torch.ones(1))


def test_an_lstm_is_a_program() -> None:
    layer = nn.LSTM(2, 3)

    class Holder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = layer

        def forward(self, x):
            return self.layer(x)[0]

    x = torch.ones(4, 1, 2)
    assert torch.jit.script(Holder())(x).tolist() == layer(x)[0].tolist()
