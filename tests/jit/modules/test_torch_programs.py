"""Functions and layers of torch that are programs themselves."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import product

import pytest

import flambeau as torch
import flambeau.nn.functional as F  # noqa: N812
from flambeau import nn
from flambeau.jit.frontend.builtins import PROGRAMS
from flambeau.jit.ir.function import Function
from flambeau.jit.modules import row_programs


@pytest.fixture(autouse=True)
def _deprecated() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def variants(name: str) -> list[Function]:
    """The functions that a program is: for each choice of flags, or of types."""
    found = row_programs.program(name)
    if not isinstance(found, row_programs.Flagged):
        return list(found.functions)  # type: ignore[union-attr]
    choices = product(*[((), (flag,)) for flag in found.flags])
    chosen = [tuple(flag for part in choice for flag in part) for choice in choices]
    return [row_programs.chosen_function(found.op, flags) for flags in chosen]


COUNTS = {"cdist": 1, "lu": 2, "norm": 4, "stft": 1, "tensordot": 4, "unique": 4,
          "unique_consecutive": 4}  # fmt: skip


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_every_function_compiles(name: str) -> None:
    found = variants(name)
    assert len(found) == COUNTS[name]
    for function in found:
        function.ensure_defined()
        assert function.qualified_name.startswith("__torch__.torch.functional.")


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


def contracted(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
    return [torch.tensordot(x, y), torch.tensordot(x, y, ([0, 1], [0, 1])),
            torch.tensordot(x, y, [[0, 1], [0, 1]]),
            torch.tensordot(x, y, torch.tensor([[0, 1], [0, 1]]))]  # fmt: skip


def test_dims_of_a_contraction_have_four_types() -> None:
    x, y = torch.arange(6.0).reshape(2, 3), torch.ones(2, 3)
    found = [part.item() for part in torch.jit.script(contracted)(x, y)]
    assert found == [part.item() for part in contracted(x, y)] == [15.0] * 4


def factors(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    place, rows, infos = torch.empty(0), torch.empty(0, dtype=torch.int32), torch.ones(1).int()
    torch.lu(x, out=(place, rows))
    return torch.lu(x, get_infos=True, out=(place, rows, infos))


def test_as_many_places_as_results() -> None:
    lu, rows, info = torch.jit.script(factors)(torch.tensor([[4.0, 2.0], [2.0, 2.0]]))
    assert (lu.tolist(), rows.tolist(), info.item()) == ([[4.0, 2.0], [0.5, 1.0]], [1, 2], 0)


class Both(nn.Module):
    """Calls a layer with rows side by side, and with the same rows packed."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor, sizes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        packed = torch.nn.utils.rnn.PackedSequence(x.flatten(0, 1), sizes, None, None)
        return self.layer(x)[0], self.layer(packed)[0].data


@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
def test_a_recurrent_layer_takes_both_kinds_of_input(kind: type[nn.Module]) -> None:
    x, sizes = torch.ones(4, 2, 3), torch.full((4,), 2)
    scripted = torch.jit.script(Both(kind(3, 5)))
    side_by_side, packed = scripted(x, sizes)
    assert torch.allclose(side_by_side.flatten(0, 1), packed)
    assert packed.shape == (8, 5)
