"""Single steps of recurrent layers as functions: `torch.lstm_cell` and its kin.

Inputs are (N, input) and states (N, hidden); weights (gates * hidden, input) and
(gates * hidden, hidden).
"""

from __future__ import annotations

from typing import Any

from flambeau._ops.recurrent.layers import STEPS
from flambeau._ops.table.dims import size_at
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import composite

WEIGHTS = "Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None"
ROW: dict[str, Any] = {"autocast": "cuda=lower", "method": False}


GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def _check_cell(mode: str, input: Any, states: list[Any], w_ih: Any, w_hh: Any) -> None:
    """Torch's errors about sizes, in its order, in which weights have another place each time."""
    if mode == "LSTM":
        size_at(w_hh, 1)
        size_at(w_ih, 1)
    if mode.startswith("RNN"):
        _check_weights(mode, w_ih, w_hh)
    _check_input(input, w_ih)
    if mode == "LSTM":
        _check_weights(mode, w_ih, w_hh)
    _check_states(input, states, w_hh)
    if mode == "GRU":
        _check_weights(mode, w_ih, w_hh)
    for weight in (w_ih, w_hh):
        if weight.ndim > 2:
            raise RuntimeError("t() expects a tensor with <= 2 dimensions, but self is "
                               f"{weight.ndim}D")  # fmt: skip


def _check_weights(mode: str, w_ih: Any, w_hh: Any) -> None:
    hidden, gates = size_at(w_hh, 1), GATES[mode]
    for name, weight in (("weight_ih", w_ih), ("weight_hh", w_hh)):
        rows = size_at(weight, 0)
        if rows != gates * hidden:
            raise RuntimeError(f"{name} first dim must be {gates} * hidden_size = "
                               f"{gates * hidden}, but got {rows}")  # fmt: skip


def _check_input(input: Any, w_ih: Any) -> None:
    wanted = size_at(w_ih, 1)
    have = size_at(input, 1)
    if have != wanted:
        raise RuntimeError(f"input has inconsistent input_size: got {have} expected {wanted}")


def _check_states(input: Any, states: list[Any], w_hh: Any) -> None:
    hidden = size_at(w_hh, 1)
    for number, state in enumerate(states):
        count = size_at(state, 0)
        if count != input.shape[0]:
            raise RuntimeError(f"Input batch size {input.shape[0]} doesn't match hidden{number} "
                               f"batch size {count}")  # fmt: skip
        if size_at(state, 1) != hidden:
            raise RuntimeError(f"hidden{number} has inconsistent hidden_size: got "
                               f"{state.shape[1]}, expected {hidden}")  # fmt: skip


def step(mode: str, input: Any, state: tuple[Any, ...], w_ih: Any, w_hh: Any, b_ih: Any,
         b_hh: Any) -> Any:  # fmt: skip
    """The state after one step."""
    _check_cell(mode, input._data, [part._data for part in state], w_ih._data, w_hh._data)
    from_input = ops.nn.functional.linear(input, w_ih, b_ih)
    return STEPS[mode](from_input, ops.nn.functional.linear(state[0], w_hh, b_hh), state)


@composite(f"lstm_cell(Tensor input, Tensor[] hx, {WEIGHTS}) -> (Tensor, Tensor)", **ROW)
def lstm_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None,
              b_hh: Any = None) -> Any:  # fmt: skip
    """The state (h, c) after one step of an LSTM.

    Shapes: input [N, I], h and c [N, H], w_ih [4 H, I], w_hh [4 H, H].

    >>> import flambeau as torch
    >>> x, h = torch.ones(1, 3), torch.zeros(1, 2)
    >>> torch.lstm_cell(x, (h, h), torch.zeros(8, 3), torch.zeros(8, 2))
    (tensor([[0., 0.]]), tensor([[0., 0.]]))
    """
    if len(hx) != 2:
        raise RuntimeError("lstm_cell expects two hidden states")
    return step("LSTM", input, tuple(hx), w_ih, w_hh, b_ih, b_hh)


@composite(f"gru_cell(Tensor input, Tensor hx, {WEIGHTS}) -> Tensor", **ROW)
def gru_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None,
             b_hh: Any = None) -> Any:  # fmt: skip
    """The state after one step of a GRU.

    Shapes: input [N, I], hx [N, H], w_ih [3 H, I], w_hh [3 H, H], result [N, H].

    >>> import flambeau as torch
    >>> x, h = torch.ones(1, 3), torch.zeros(1, 2)
    >>> torch.gru_cell(x, h, torch.zeros(6, 3), torch.zeros(6, 2))
    tensor([[0., 0.]])
    """
    return step("GRU", input, (hx,), w_ih, w_hh, b_ih, b_hh)[0]


@composite(f"rnn_tanh_cell(Tensor input, Tensor hx, {WEIGHTS}) -> Tensor", **ROW)
def rnn_tanh_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None,
                  b_hh: Any = None) -> Any:  # fmt: skip
    """tanh(W x + b + V h + c).

    >>> import flambeau as torch
    >>> x, h = torch.ones(1, 3), torch.zeros(1, 2)
    >>> torch.rnn_tanh_cell(x, h, torch.ones(2, 3), torch.zeros(2, 2))
    tensor([[0.9951, 0.9951]])
    """
    return step("RNN_TANH", input, (hx,), w_ih, w_hh, b_ih, b_hh)[0]


@composite(f"rnn_relu_cell(Tensor input, Tensor hx, {WEIGHTS}) -> Tensor", **ROW)
def rnn_relu_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None,
                  b_hh: Any = None) -> Any:  # fmt: skip
    """relu(W x + b + V h + c).

    >>> import flambeau as torch
    >>> x, h = torch.ones(1, 3), torch.zeros(1, 2)
    >>> torch.rnn_relu_cell(x, h, torch.ones(2, 3), torch.zeros(2, 2))
    tensor([[3., 3.]])
    """
    return step("RNN_RELU", input, (hx,), w_ih, w_hh, b_ih, b_hh)[0]
