"""Compiled recurrent layers against the same steps made of operators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flambeau as torch
from flambeau._runtime import choice

pytest.importorskip("llvmlite")

MODES = {"LSTM": {}, "GRU": {}, "RNN": {}, "RNN relu": {"nonlinearity": "relu"}}


def results(net: Any, x: Any, state: Any, again: bool) -> list[Any]:
    """Outputs, last states, and all gradients; with `again` those of a gradient's norm."""
    output, last = net(x, state)
    states = list(last) if isinstance(last, tuple) else [last]
    loss = (output.sin() * output).sum() + sum((s * s).sum() for s in states)
    inputs = [x, *(state if isinstance(state, tuple) else (state,)), *net.parameters()]
    grads = torch.autograd.grad(loss, inputs, create_graph=again)
    if again:
        grads = torch.autograd.grad(sum((g * g).sum() for g in grads), inputs)
    return [output, *states, *grads]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("again", [False, True])
def test_layers(mode: str, bidirectional: bool, bias: bool, again: bool,
                monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    torch.manual_seed(3)
    kind = getattr(torch.nn, mode.partition(" ")[0])
    net = kind(5, 11, 2, bias=bias, bidirectional=bidirectional, dtype=torch.float64, **MODES[mode])
    x = torch.randn(4, 3, 5, dtype=torch.float64, requires_grad=True)
    state: Any = torch.randn(2 * (1 + bidirectional), 3, 11, dtype=torch.float64,
                             requires_grad=True)  # fmt: skip
    if mode == "LSTM":
        state = (state, torch.randn_like(state, requires_grad=True))
    monkeypatch.setitem(choice.LIMITS, "recurrent", 0)
    compiled = results(net, x, state, again)
    monkeypatch.setitem(choice.LIMITS, "recurrent", choice.NEVER)
    composed = results(net, x, state, again)
    for one, other in zip(compiled, composed, strict=True):
        np.testing.assert_allclose(one.detach().numpy(), other.detach().numpy(), 1e-9, 1e-9)
