"""Recurrent layers as operators: all layers, directions and steps of `torch.lstm` and its kin.

Each has two forms: over a batch (T, N, features), and over the rows of a packed sequence. `params`
are the weights of each layer and direction in turn: those of the input, those of the state, their
biases if `has_biases`, and a projection where the state of an LSTM is smaller than its cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flambeau._core.device import Defaults
from flambeau._core.settings import warn_once
from flambeau._ops.recurrent.directions import Direction
from flambeau._ops.recurrent.layers import State, is_one_operator
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import composite
from flambeau._tensor.tensor import Tensor

OPTIONS = ("Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, "
           "bool bidirectional")  # fmt: skip
PROJECTED = "LSTM with projections is not supported with oneDNN. Using default implementation."


def _layers(mode: str, input: Tensor, state: State, batch_sizes: list[int] | None,
            params: Sequence[Tensor], biased: bool, num_layers: int, dropout: float, train: bool,
            bidirectional: bool) -> tuple[Tensor, ...]:  # fmt: skip
    """All layers over (T, N, features) or packed rows: the outputs of the last, and the last states
    of all."""
    single = is_one_operator(mode, input)
    projected = mode == "LSTM" and state[0].shape[2] != state[1].shape[2]
    if projected and single and batch_sizes is None:
        warn_once(PROJECTED, 7)
    count = 2 + 2 * biased + projected
    directions = num_layers * (1 + bidirectional)
    if single and batch_sizes is None and not projected:
        _check_blocks(len(params), count, directions)
    else:
        _check_params(len(params), len(state[0]), count, directions)
    last: list[State] = []
    for layer in range(num_layers):
        outputs = []
        for backwards in (False, True)[: 1 + bidirectional]:
            index = len(last)
            weights = params[index * count : (index + 1) * count]
            direction = Direction(mode, weights, biased, projected, single)
            start = tuple([value[index] for value in state])
            if Defaults.elsewhere:
                direction.check_places(input, start)
            if batch_sizes is None:
                output, end = direction.run(input, start, backwards)
            else:
                output, end = direction.run_packed(input, batch_sizes, start, backwards)
            outputs.append(output)
            last.append(end)
        input = outputs[0] if len(outputs) == 1 else ops.cat(outputs, -1)
        if dropout and train and layer < num_layers - 1:
            input = ops.dropout(input, dropout, True)
    return input, *[ops.stack(values) for values in zip(*last, strict=True)]


def _check_params(given: int, states: int, count: int, directions: int) -> None:
    """Raise torch's errors for lists that are not as long as the layers need."""
    if given % count:
        raise RuntimeError("got an incorrect number of RNN parameters")
    if states != directions:
        raise RuntimeError("Expected more hidden states in stacked_rnn")
    if given != count * directions:
        raise RuntimeError("Expected more weights in stacked_rnn")


def _check_blocks(given: int, count: int, directions: int) -> None:
    """The same where all steps are one operator, which takes its weights in blocks."""
    if given % count:
        raise RuntimeError(f"MatrixRef: ArrayRef size {given} not divisible by stride {count}")
    if given < count * directions:
        raise RuntimeError(f"ArrayRef: invalid slice, N = {given}; M = {count}; size = {given}")


def _over_batch(mode: str, input: Tensor, state: State, options: tuple[Any, ...],
                batch_first: bool) -> tuple[Tensor, ...]:  # fmt: skip
    if input.dim() < 3:  # noqa: PLR2004
        input.size(2)  # raises: there are no features
    if batch_first:
        input = input.transpose(0, 1)
    if not input.shape[0]:
        raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
    output, *last = _layers(mode, input, state, None, *options)
    return output.transpose(0, 1) if batch_first else output, *last


# ---- LSTM


def _check_pair(hx: Any) -> None:
    if len(hx) != 2:
        raise RuntimeError("lstm expects two hidden states")


@composite(f"lstm.input(Tensor input, Tensor[] hx, {OPTIONS}, bool batch_first)"
           " -> (Tensor, Tensor, Tensor)", method=False, order=1)  # fmt: skip
def lstm(input: Any, hx: Any, params: Any, has_biases: bool, num_layers: int, dropout: float,
         train: bool, bidirectional: bool, batch_first: bool) -> Any:  # fmt: skip
    """An LSTM over a batch: the outputs of its last layer, and the last h and c of each.

    Shapes: `input` [T, N, features], states [layers, N, size], outputs [T, N, size]; with
    `batch_first` N comes before T.

    >>> import flambeau as torch
    >>> weights = [torch.zeros(8, 3), torch.zeros(8, 2)]
    >>> state = (torch.zeros(1, 1, 2), torch.zeros(1, 1, 2))
    >>> x = torch.ones(5, 1, 3)
    >>> output, h, c = torch.lstm(x, state, weights, False, 1, 0.0, False, False, False)
    >>> output.shape, h.shape, c.shape
    (torch.Size([5, 1, 2]), torch.Size([1, 1, 2]), torch.Size([1, 1, 2]))
    """
    _check_pair(hx)
    options = (params, has_biases, num_layers, dropout, train, bidirectional)
    return _over_batch("LSTM", input, tuple(hx), options, batch_first)


@composite(f"lstm.data(Tensor data, Tensor batch_sizes, Tensor[] hx, {OPTIONS})"
           " -> (Tensor, Tensor, Tensor)", method=False)  # fmt: skip
def lstm_packed(data: Any, batch_sizes: Any, hx: Any, params: Any, has_biases: bool,
                num_layers: int, dropout: float, train: bool, bidirectional: bool
                ) -> Any:  # fmt: skip
    """The same over the rows of a packed sequence, of shape [rows, features]; `batch_sizes` says
    how many of them each step has."""
    _check_pair(hx)
    return _layers("LSTM", data, tuple(hx), batch_sizes.tolist(), params, has_biases, num_layers,
                   dropout, train, bidirectional)  # fmt: skip


# ---- those with one state


def _rows(name: str, mode: str, gates: int, what: str) -> None:
    def over_batch(input: Any, hx: Any, params: Any, has_biases: bool, num_layers: int,
                   dropout: float, train: bool, bidirectional: bool, batch_first: bool
                   ) -> Any:  # fmt: skip
        options = (params, has_biases, num_layers, dropout, train, bidirectional)
        return _over_batch(mode, input, (hx,), options, batch_first)

    def over_packed(data: Any, batch_sizes: Any, hx: Any, params: Any, has_biases: bool,
                    num_layers: int, dropout: float, train: bool, bidirectional: bool
                    ) -> Any:  # fmt: skip
        return _layers(mode, data, (hx,), batch_sizes.tolist(), params, has_biases, num_layers,
                       dropout, train, bidirectional)  # fmt: skip

    over_batch.__doc__ = f"""{what} over a batch: the outputs of its last layer, and the last
    states of all.

    Shapes: `input` [T, N, features], states [layers, N, size], outputs [T, N, size]; with
    `batch_first` N comes before T.

    >>> import flambeau as torch
    >>> weights = [torch.zeros({2 * gates}, 3), torch.zeros({2 * gates}, 2)]
    >>> x, h = torch.ones(5, 1, 3), torch.zeros(1, 1, 2)
    >>> output, last = torch.{name}(x, h, weights, False, 1, 0.0, False, False, False)
    >>> output.shape, last.shape
    (torch.Size([5, 1, 2]), torch.Size([1, 1, 2]))
    """
    over_packed.__doc__ = """The same over the rows of a packed sequence, of shape
    [rows, features]; `batch_sizes` says how many of them each step has."""
    results = " -> (Tensor, Tensor)"
    composite(f"{name}.input(Tensor input, Tensor hx, {OPTIONS}, bool batch_first){results}",
              method=False, order=1)(over_batch)  # fmt: skip
    composite(f"{name}.data(Tensor data, Tensor batch_sizes, Tensor hx, {OPTIONS}){results}",
              method=False)(over_packed)  # fmt: skip


_rows("gru", "GRU", 3, "Gated recurrent units")
_rows("rnn_tanh", "RNN_TANH", 1, "h' = tanh(W x + b + V h + c)")
_rows("rnn_relu", "RNN_RELU", 1, "h' = relu(W x + b + V h + c)")
