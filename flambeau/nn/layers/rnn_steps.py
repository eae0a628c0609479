"""One time step of each recurrent layer, and a layer over all steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau._ops.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.nn import functional as F

State = tuple[Tensor, ...]
Step = Callable[[Tensor, Tensor, State], State]


def tanh_step(from_input: Tensor, from_hidden: Tensor, state: State) -> State:
    """h' = tanh(W x + b + V h + c)."""
    return (ops.tanh(from_input + from_hidden),)


def relu_step(from_input: Tensor, from_hidden: Tensor, state: State) -> State:
    """h' = max(0, W x + b + V h + c)."""
    return (ops.relu(from_input + from_hidden),)


def gru_step(from_input: Tensor, from_hidden: Tensor, state: State) -> State:
    """Reset and update gates r, z; h' = (1 - z) n + z h with n = tanh(W x + b + r (V h + c))."""
    input_reset, input_update, input_new = from_input.chunk(3, -1)
    hidden_reset, hidden_update, hidden_new = from_hidden.chunk(3, -1)
    reset = ops.sigmoid(input_reset + hidden_reset)
    update = ops.sigmoid(input_update + hidden_update)
    new = ops.tanh(input_new + reset * hidden_new)
    return (new + update * (state[0] - new),)


def lstm_step(from_input: Tensor, from_hidden: Tensor, state: State) -> State:
    """Gates i, f, o and candidate g: c' = f c + i g, h' = o tanh(c')."""
    enter, forget, candidate, leave = (from_input + from_hidden).chunk(4, -1)
    cell = ops.sigmoid(forget) * state[1] + ops.sigmoid(enter) * ops.tanh(candidate)
    return ops.sigmoid(leave) * ops.tanh(cell), cell


STEPS: dict[str, Step] = {
    "RNN_TANH": tanh_step,
    "RNN_RELU": relu_step,
    "GRU": gru_step,
    "LSTM": lstm_step,
}


class Direction:
    """One layer in one direction, with its weights."""

    def __init__(self, mode: str, weights: Any) -> None:
        self.step = STEPS[mode]
        self.weight_ih, self.weight_hh = weights.weight_ih, weights.weight_hh
        self.bias_ih, self.bias_hh = weights.bias_ih, weights.bias_hh
        self.weight_hr = weights.weight_hr

    def advance(self, from_input: Tensor, state: State) -> State:
        """The state after one step."""
        from_hidden = F.linear(state[0], self.weight_hh, self.bias_hh)
        state = self.step(from_input, from_hidden, state)
        if self.weight_hr is None:
            return state
        return F.linear(state[0], self.weight_hr), *state[1:]

    def run(self, input: Tensor, state: State, backwards: bool) -> tuple[Tensor, State]:
        """All steps of (T, N, features): the outputs (T, N, hidden) and the last state."""
        from_input = F.linear(input, self.weight_ih, self.bias_ih).unbind(0)
        outputs = []
        for part in reversed(from_input) if backwards else from_input:
            state = self.advance(part, state)
            outputs.append(state[0])
        if backwards:
            outputs.reverse()
        return ops.stack(outputs), state

    def run_packed(
        self, data: Tensor, batch_sizes: list[int], state: State, backwards: bool
    ) -> tuple[Tensor, State]:
        """The same over a packed sequence's rows."""
        parts = F.linear(data, self.weight_ih, self.bias_ih).split(batch_sizes)
        if backwards:
            return self._run_packed_backwards(parts, batch_sizes, state)
        outputs = []
        finished = []  # the last states of sequences that have ended, the shortest first
        for part, size in zip(parts, batch_sizes, strict=True):
            if size < state[0].shape[0]:
                finished.append(tuple(value[size:] for value in state))
                state = tuple(value[:size] for value in state)
            state = self.advance(part, state)
            outputs.append(state[0])
        finished.append(state)
        last = tuple(ops.cat(values[::-1]) for values in zip(*finished, strict=True))
        return ops.cat(outputs), last

    def _run_packed_backwards(
        self, parts: Any, batch_sizes: list[int], start: State
    ) -> tuple[Tensor, State]:
        outputs = []
        state = tuple(value[: batch_sizes[-1]] for value in start)
        pairs = list(zip(parts, batch_sizes, strict=True))
        for part, size in reversed(pairs):
            running = state[0].shape[0]
            if size > running:
                joining = [value[running:size] for value in start]
                state = tuple(ops.cat(pair) for pair in zip(state, joining, strict=True))
            state = self.advance(part, state)
            outputs.append(state[0])
        return ops.cat(outputs[::-1]), state
