"""A recurrent layer in one direction, over all steps of plain or packed sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flambeau._ops.recurrent.layers import STEPS, State, whole_layer
from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor


class Direction:
    """One layer in one direction.

    weights: those of the input and of the state, two biases if it is `biased`, and a projection if
        it is `projected`.
    single: whether all steps are one operator.
    """

    def __init__(self, mode: str, weights: Sequence[Tensor], biased: bool, projected: bool,
                 single: bool) -> None:  # fmt: skip
        self.mode, self.step, self.single = mode, STEPS[mode], single
        self.weight_ih, self.weight_hh = weights[0], weights[1]
        self.bias_ih, self.bias_hh = (weights[2], weights[3]) if biased else (None, None)
        self.weight_hr = weights[-1] if projected else None

    def check_places(self, input: Tensor, state: State) -> None:
        """Raise torch's error where states or weights lie on another device than the input."""
        for kind, tensor in (
            *[("hidden", value) for value in state],
            ("parameter", self.weight_ih),
        ):
            if str(tensor.device) != str(input.device):
                raise RuntimeError(
                    f"Input and {kind} tensors are not at the same device, found input tensor at "
                    f"{input.device} and {kind} tensor at {tensor.device}"
                )

    def advance(self, from_input: Tensor, state: State) -> State:
        """The state after one step."""
        from_hidden = ops.nn.functional.linear(state[0], self.weight_hh, self.bias_hh)
        state = self.step(from_input, from_hidden, state)
        if self.weight_hr is None:
            return state
        return ops.nn.functional.linear(state[0], self.weight_hr), *state[1:]

    def run(self, input: Tensor, state: State, backwards: bool) -> tuple[Tensor, State]:
        """All steps of (T, N, features): the outputs (T, N, hidden) and the last state."""
        if self.weight_hr is None:
            weights = (self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
            if not self.single:
                return whole_layer(self.mode, input, weights, state, backwards)
            output, hidden, cell = ops._lstm_steps(input, *weights, *state, backwards)
            return output, (hidden, cell)
        from_input = ops.nn.functional.linear(input, self.weight_ih, self.bias_ih)
        parts = from_input.unbind(0)
        outputs = []
        for part in reversed(parts) if backwards else parts:
            state = self.advance(part, state)
            outputs.append(state[0])
        if backwards:
            outputs.reverse()
        return ops.stack(outputs), state

    def run_packed(
        self, data: Tensor, batch_sizes: list[int], state: State, backwards: bool
    ) -> tuple[Tensor, State]:
        """The same over a packed sequence's rows."""
        parts = ops.nn.functional.linear(data, self.weight_ih, self.bias_ih).split(batch_sizes)
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
