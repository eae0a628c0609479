"""Single steps of recurrent layers as functions: `torch.lstm_cell` and its kin.

Inputs are (N, input) and states (N, hidden); weights (gates * hidden, input) and
(gates * hidden, hidden).
"""

from __future__ import annotations

from typing import Any

from flambeau._ops.namespace import ops
from flambeau._ops.op import composite
from flambeau._ops.recurrent import STEPS

WEIGHTS = "Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None"
ROW: dict[str, Any] = {"autocast": "cuda=lower", "method": False}


def _step(mode: str, input: Any, state: tuple[Any, ...], w_ih: Any, w_hh: Any, b_ih: Any,
          b_hh: Any) -> Any:  # fmt: skip
    from_input = ops.nn.functional.linear(input, w_ih, b_ih)
    return STEPS[mode](from_input, ops.nn.functional.linear(state[0], w_hh, b_hh), state)


@composite(f"lstm_cell(Tensor input, Tensor[] hx, {WEIGHTS}) -> (Tensor, Tensor)", **ROW)
def lstm_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None,
              b_hh: Any = None) -> Any:  # fmt: skip
    """The state (h, c) after one step of an LSTM."""
    if len(hx) != 2:
        raise RuntimeError("lstm_cell expects two hidden states")
    return _step("LSTM", input, tuple(hx), w_ih, w_hh, b_ih, b_hh)


@composite(f"gru_cell(Tensor input, Tensor hx, {WEIGHTS}) -> Tensor", **ROW)
def gru_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None,
             b_hh: Any = None) -> Any:  # fmt: skip
    """The state after one step of a GRU."""
    return _step("GRU", input, (hx,), w_ih, w_hh, b_ih, b_hh)[0]


@composite(f"rnn_tanh_cell(Tensor input, Tensor hx, {WEIGHTS}) -> Tensor", **ROW)
def rnn_tanh_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None,
                  b_hh: Any = None) -> Any:  # fmt: skip
    """tanh(W x + b + V h + c)."""
    return _step("RNN_TANH", input, (hx,), w_ih, w_hh, b_ih, b_hh)[0]


@composite(f"rnn_relu_cell(Tensor input, Tensor hx, {WEIGHTS}) -> Tensor", **ROW)
def rnn_relu_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None,
                  b_hh: Any = None) -> Any:  # fmt: skip
    """relu(W x + b + V h + c)."""
    return _step("RNN_RELU", input, (hx,), w_ih, w_hh, b_ih, b_hh)[0]
