"""Single steps of recurrent layers as modules."""

from __future__ import annotations

import math
from typing import Any

from flambeau._ops.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.nn import init
from flambeau.nn.layers.rnn_steps import State
from flambeau.nn.module import Module
from flambeau.nn.parameter import empty_parameter

CELLS = {"GRU": "gru_cell", "RNN_TANH": "rnn_tanh_cell", "RNN_RELU": "rnn_relu_cell"}
"""The functions of the cells with a single state."""


class RNNCellBase(Module):
    """What the cells share. All weights start uniform on ±1/sqrt(hidden_size)."""

    __constants__ = ["input_size", "hidden_size", "bias"]
    input_size: int
    hidden_size: int
    bias: bool
    weight_ih: Tensor
    weight_hh: Tensor

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        gates = num_chunks * hidden_size
        self.weight_ih = empty_parameter((gates, input_size), dtype, device)
        self.weight_hh = empty_parameter((gates, hidden_size), dtype, device)
        for name in ("bias_ih", "bias_hh"):
            value = empty_parameter((gates,), dtype, device) if bias else None
            self.register_parameter(name, value)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all weights again."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            text += f", nonlinearity={self.nonlinearity}"
        return text

    def _check_dims(self, what: str, value: Tensor) -> None:
        if value.ndim not in (1, 2):
            raise ValueError(
                f"{self._get_name()}: Expected {what} to be 1D or 2D, got {value.ndim}D instead"
            )

    def _advance(self, mode: str, input: Tensor, state: State) -> State:
        """One step; inputs and states without a batch dim are given one."""
        unbatched = input.ndim == 1
        if unbatched:
            input = input.unsqueeze(0)
            state = tuple(value.unsqueeze(0) for value in state)
        self._check_sizes(input, state)
        weights = (self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        if mode == "LSTM":
            result = ops.lstm_cell(input, state, *weights)
        else:
            result = (getattr(ops, CELLS[mode])(input, state[0], *weights),)
        return tuple(value.squeeze(0) for value in result) if unbatched else result

    def _check_sizes(self, input: Tensor, state: State) -> None:
        if input.shape[1] != self.input_size:
            raise RuntimeError(
                f"input has inconsistent input_size: got {input.shape[1]} expected "
                f"{self.input_size}"
            )
        for place, value in enumerate(state):
            if value.ndim == 2 and value.shape[0] != input.shape[0]:
                raise RuntimeError(
                    f"Input batch size {input.shape[0]} doesn't match hidden{place} batch size "
                    f"{value.shape[0]}"
                )
            if value.shape[-1] != self.hidden_size:
                raise RuntimeError(
                    f"hidden{place} has inconsistent hidden_size: got {value.shape[-1]}, "
                    f"expected {self.hidden_size}"
                )

    def _zeros(self, input: Tensor) -> Tensor:
        shape = (*input.shape[:-1], self.hidden_size)
        return input.new_zeros(shape)


class RNNCell(RNNCellBase):
    """h' = tanh(W x + b + V h + c): (N, input) or (input) to (N, hidden) or (hidden)."""

    __constants__ = ["input_size", "hidden_size", "bias", "nonlinearity"]
    nonlinearity: str

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        self._check_dims("input", input)
        if hx is not None:
            self._check_dims("hidden", hx)
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        state = (self._zeros(input) if hx is None else hx,)
        return self._advance(f"RNN_{self.nonlinearity.upper()}", input, state)[0]


class GRUCell(RNNCellBase):
    """One step of a GRU: (N, input) or (input) to (N, hidden) or (hidden)."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        self._check_dims("input", input)
        if hx is not None:
            self._check_dims("hidden", hx)
        return self._advance("GRU", input, (self._zeros(input) if hx is None else hx,))[0]


class LSTMCell(RNNCellBase):
    """One step of an LSTM; the state, and what is returned, is (h, c)."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(
        self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        self._check_dims("input", input)
        for place, value in enumerate(hx or ()):
            self._check_dims(f"hx[{place}]", value)
        if hx is None:
            hx = (self._zeros(input), self._zeros(input))
        return self._advance("LSTM", input, tuple(hx))  # type: ignore[return-value]
