"""Single steps of recurrent layers as modules."""

from __future__ import annotations

import math
from typing import Any

from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.nn import init
from flambeau.nn.module import Module
from flambeau.nn.parameter import empty_parameter


class RNNCellBase(Module):
    """What the cells share. All weights start uniform on ±1/sqrt(hidden_size).

    Shapes: input (N, I) or (I,), state (N, H) or (H,).

    >>> import flambeau as torch
    >>> issubclass(torch.nn.GRUCell, torch.nn.RNNCellBase)
    True
    >>> torch.nn.RNNCellBase(3, 4, bias=False, num_chunks=1).weight_ih.shape
    torch.Size([4, 3])
    """

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

    def _start(self, input: Tensor, hx: Tensor | None) -> Tensor:
        """A state with a batch dim: zeros if none is given."""
        if hx is None:
            count = 1 if input.dim() == 1 else input.shape[0]
            return input.new_zeros((count, self.hidden_size))
        return hx.unsqueeze(0) if input.dim() == 1 else hx


def _check_dims(what: str, value: Tensor) -> None:
    if value.dim() not in (1, 2):
        raise ValueError(f"{what} to be 1D or 2D, got {value.dim()}D instead")


class RNNCell(RNNCellBase):
    """h' = tanh(W x + b + V h + c): (N, input) or (input) to (N, hidden) or (hidden).

    >>> import flambeau as torch
    >>> torch.nn.RNNCell(3, 5)(torch.ones(2, 3)).shape
    torch.Size([2, 5])
    """

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
        _check_dims("RNNCell: Expected input", input)
        if hx is not None:
            _check_dims("RNNCell: Expected hidden", hx)
        if self.nonlinearity != "tanh" and self.nonlinearity != "relu":
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        rows = input.unsqueeze(0) if input.dim() == 1 else input
        state = self._start(input, hx)
        if self.nonlinearity == "tanh":
            state = ops.rnn_tanh_cell(
                rows, state, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh
            )
        else:
            state = ops.rnn_relu_cell(
                rows, state, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh
            )
        return state.squeeze(0) if input.dim() == 1 else state


class GRUCell(RNNCellBase):
    """One step of a GRU: (N, input) or (input) to (N, hidden) or (hidden).

    >>> import flambeau as torch
    >>> torch.nn.GRUCell(3, 5)(torch.ones(2, 3)).shape
    torch.Size([2, 5])
    """

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
        _check_dims("GRUCell: Expected input", input)
        if hx is not None:
            _check_dims("GRUCell: Expected hidden", hx)
        rows = input.unsqueeze(0) if input.dim() == 1 else input
        state = ops.gru_cell(
            rows,
            self._start(input, hx),
            self.weight_ih,
            self.weight_hh,
            self.bias_ih,
            self.bias_hh,
        )
        return state.squeeze(0) if input.dim() == 1 else state


class LSTMCell(RNNCellBase):
    """One step of an LSTM; the state, and what is returned, is (h, c).

    Shapes: input (N, I) or (I,), h and c (N, H) or (H,).

    >>> import flambeau as torch
    >>> h, c = torch.nn.LSTMCell(3, 5)(torch.ones(2, 3))
    >>> h.shape, c.shape
    (torch.Size([2, 5]), torch.Size([2, 5]))
    """

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
        _check_dims("LSTMCell: Expected input", input)
        if hx is None:
            start = (self._start(input, None), self._start(input, None))
        else:
            _check_dims("LSTMCell: Expected hx[0]", hx[0])
            _check_dims("LSTMCell: Expected hx[1]", hx[1])
            start = (self._start(input, hx[0]), self._start(input, hx[1]))
        rows = input.unsqueeze(0) if input.dim() == 1 else input
        hidden, memory = ops.lstm_cell(
            rows, start, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh
        )
        if input.dim() == 1:
            return hidden.squeeze(0), memory.squeeze(0)
        return hidden, memory
