"""Recurrent layers: both kinds of input, and the operators that run whole sequences."""

from __future__ import annotations

from typing import overload


class RNNBase:
    _flat_weights: List[Tensor]

    def _check_dtype(self, input: Tensor) -> None:
        return  # a matter of autocast, which programs do not see


class RNN:
    @overload
    def forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]: ...

    @overload
    def forward(
        self, input: PackedSequence, hx: Optional[Tensor] = None
    ) -> Tuple[PackedSequence, Tensor]: ...

    def _over_batch(self, input: Tensor, hx: Tensor) -> Tuple[Tensor, Tensor]:
        if self.mode == "RNN_TANH":
            return torch.rnn_tanh(input, hx, self._flat_weights, self.bias, self.num_layers,
                                  self.dropout, self.training, self.bidirectional,
                                  self.batch_first)  # fmt: skip
        return torch.rnn_relu(input, hx, self._flat_weights, self.bias, self.num_layers,
                              self.dropout, self.training, self.bidirectional,
                              self.batch_first)  # fmt: skip

    def _over_packed(self, data: Tensor, hx: Tensor, batch_sizes: Tensor) -> Tuple[Tensor, Tensor]:
        if self.mode == "RNN_TANH":
            return torch.rnn_tanh(data, batch_sizes, hx, self._flat_weights, self.bias,
                                  self.num_layers, self.dropout, self.training,
                                  self.bidirectional)  # fmt: skip
        return torch.rnn_relu(data, batch_sizes, hx, self._flat_weights, self.bias,
                              self.num_layers, self.dropout, self.training,
                              self.bidirectional)  # fmt: skip


class GRU:
    @overload
    def forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]: ...

    @overload
    def forward(
        self, input: PackedSequence, hx: Optional[Tensor] = None
    ) -> Tuple[PackedSequence, Tensor]: ...

    def _over_batch(self, input: Tensor, hx: Tensor) -> Tuple[Tensor, Tensor]:
        return torch.gru(input, hx, self._flat_weights, self.bias, self.num_layers, self.dropout,
                         self.training, self.bidirectional, self.batch_first)  # fmt: skip

    def _over_packed(self, data: Tensor, hx: Tensor, batch_sizes: Tensor) -> Tuple[Tensor, Tensor]:
        return torch.gru(data, batch_sizes, hx, self._flat_weights, self.bias, self.num_layers,
                         self.dropout, self.training, self.bidirectional)  # fmt: skip


class LSTM:
    @overload
    def forward(
        self, input: Tensor, hx: Optional[Tuple[Tensor, Tensor]] = None
    ) -> Tuple[Tensor, Tuple[Tensor, Tensor]]: ...

    @overload
    def forward(
        self, input: PackedSequence, hx: Optional[Tuple[Tensor, Tensor]] = None
    ) -> Tuple[PackedSequence, Tuple[Tensor, Tensor]]: ...

    def _over_batch(
        self, input: Tensor, hx: Tuple[Tensor, Tensor]
    ) -> Tuple[Tensor, Tuple[Tensor, Tensor]]:
        output, hidden, cell = torch.lstm(
            input, hx, self._flat_weights, self.bias, self.num_layers, self.dropout,
            self.training, self.bidirectional, self.batch_first,
        )  # fmt: skip
        return output, (hidden, cell)

    def _over_packed(
        self, data: Tensor, hx: Tuple[Tensor, Tensor], batch_sizes: Tensor
    ) -> Tuple[Tensor, Tuple[Tensor, Tensor]]:
        output, hidden, cell = torch.lstm(
            data, batch_sizes, hx, self._flat_weights, self.bias, self.num_layers, self.dropout,
            self.training, self.bidirectional,
        )  # fmt: skip
        return output, (hidden, cell)
