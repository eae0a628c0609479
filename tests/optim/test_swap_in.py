"""Parameters and state swapped into an optimizer, and back."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau as torch
from flambeau import optim
from flambeau.optim import swap_in_optimizer_params_and_state as swap_in


def trained(value: float, steps: int, rate: float = 0.1) -> tuple[torch.Tensor, optim.Adam]:
    parameter = torch.full((2,), value, dtype=torch.float64).requires_grad_()
    optimizer = optim.Adam([parameter], lr=rate)
    for _ in range(steps):
        descend(optimizer, parameter)
    return parameter, optimizer


def descend(optimizer: Any, parameter: Any) -> None:
    optimizer.zero_grad()
    (parameter**4).sum().backward()
    optimizer.step()


def test_a_step_on_other_parameters():
    """It is the step that the other optimizer would have made; this one does not notice."""
    mine, optimizer = trained(1.0, 3)
    twin, untouched = trained(1.0, 3)
    other, donor = trained(2.0, 5, rate=0.7)
    alone, donors_twin = trained(2.0, 6, rate=0.7)
    state = donor.state_dict()
    params = optimizer.param_groups[0]["params"]
    with swap_in(optimizer, {"weight": other}, state):
        assert optimizer.param_groups[0]["lr"] == 0.7
        assert optimizer.param_groups[0]["params"][0] is other
        descend(optimizer, other)
    assert torch.equal(other, alone)
    assert torch.equal(state["state"][0]["exp_avg"], donors_twin.state[alone]["exp_avg"])
    assert optimizer.param_groups[0]["params"] is params
    assert optimizer.param_groups[0]["lr"] == 0.1
    descend(optimizer, mine)
    descend(untouched, twin)
    assert torch.equal(mine, twin)


def test_an_error_inside_restores_too():
    parameter, optimizer = trained(1.0, 1)
    own = optimizer.state
    other, donor = trained(2.0, 1)
    with pytest.raises(ZeroDivisionError), swap_in(optimizer, {"w": other}, donor.state_dict()):
        raise ZeroDivisionError
    assert optimizer.state is own
    assert optimizer.param_groups[0]["params"][0] is parameter


WRONG = {
    "initialized optimizer state": ("start", None),
    "a DCP-style optimizer state_dict": ("state", [1]),
    "to be a dict mapping packed parameter ids": ("state", {"state": 3}),
    "a different number of parameter groups": ("state", {"state": {}, "param_groups": []}),
    "each optimizer param group to be a dictionary": ("groups", [3]),
    "entries keyed by packed parameter ids": ("groups", [{"params": ["w"]}]),
    "a different number of params": ("groups", [{"params": [0, 1]}]),
    "Keys only in live": ("groups", [{"params": [0]}]),
}


@pytest.mark.parametrize("text", WRONG)
def test_wrong_state(text: str):
    part, value = WRONG[text]
    parameter, optimizer = trained(1.0, 0 if part == "start" else 1)
    state: Any = optimizer.state_dict()
    if part == "state":
        state = value
    elif part == "groups":
        state["param_groups"] = value
    with pytest.raises(RuntimeError, match=text), swap_in(optimizer, {"w": parameter}, state):
        pass


def test_parameters_and_numbers_that_do_not_match():
    parameter, optimizer = trained(1.0, 1)
    state = optimizer.state_dict()
    with pytest.raises(RuntimeError, match="ordering"), swap_in(optimizer, {}, state):
        pass
    state["state"][7] = {}
    with (
        pytest.raises(RuntimeError, match=r"got extra keys \[7\]"),
        swap_in(optimizer, {"w": parameter}, state),
    ):
        pass
