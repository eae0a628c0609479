"""Recurrent layers over whole sequences: RNN, LSTM, GRU."""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Callable
from typing import Any, overload

from flambeau._core.autocast import settings as autocast
from flambeau._core.programs import EAGER
from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.nn import init
from flambeau.nn.layers.shown import shown
from flambeau.nn.module import Module
from flambeau.nn.parameter import Parameter, empty_parameter
from flambeau.nn.utils.rnn import PackedSequence

GATES = {"RNN_TANH": 1, "RNN_RELU": 1, "GRU": 3, "LSTM": 4}
ARGUMENT_TYPES = {"bias": bool, "batch_first": bool, "input_size": int, "hidden_size": int}
BAD_DROPOUT = (
    "dropout should be a number in range [0, 1] representing the probability of an element being "
    "zeroed"
)


REPR_DEFAULTS = {
    "proj_size": 0,
    "num_layers": 1,
    "bias": True,
    "batch_first": False,
    "dropout": 0,
    "bidirectional": False,
}


class RNNBase(Module):
    """What the recurrent layers share. All weights start uniform on ±1/sqrt(hidden_size).

    Shapes: input (L, N, input), or (N, L, input) with `batch_first`, or (L, input).

    Layer k has `weight_ih_lk` (gates · hidden, input), `weight_hh_lk` (gates · hidden, hidden),
    `bias_ih_lk`, `bias_hh_lk` and, with `proj_size`, `weight_hr_lk` (proj, hidden); the other
    direction has the same with the ending `_reverse`.

    >>> import flambeau as torch
    >>> isinstance(torch.nn.LSTM(3, 4), torch.nn.RNNBase)
    True
    >>> [tuple(w.shape) for w in torch.nn.RNNBase("LSTM", 3, 4).parameters()]
    [(16, 3), (16, 4), (16,), (16,)]
    """

    __constants__ = [
        "mode",
        "input_size",
        "hidden_size",
        "num_layers",
        "bias",
        "batch_first",
        "dropout",
        "bidirectional",
        "proj_size",
    ]
    __jit_unused_properties__ = ["all_weights"]
    mode: str
    _flat_weights: list[Tensor]

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._check_arguments(dropout)
        if not isinstance(mode, str) or mode not in GATES:
            raise ValueError("Unrecognized RNN mode: " + mode)
        self._flat_weights_names: list[str] = []
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            for suffix in ("", "_reverse")[: 1 + bidirectional]:
                self._make_weights(layer, suffix, (dtype, device))
        self.reset_parameters()

    def _check_arguments(self, dropout: Any) -> None:
        bad = not isinstance(dropout, numbers.Number) or isinstance(dropout, bool)
        if bad or not 0 <= dropout <= 1:
            raise ValueError(BAD_DROPOUT)
        if dropout > 0 and self.num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero "
                "dropout expects num_layers greater than 1, but got "
                f"dropout={dropout} and num_layers={self.num_layers}",
                stacklevel=3,
            )
        for name, wanted in ARGUMENT_TYPES.items():
            value = getattr(self, name)
            if not isinstance(value, wanted):
                raise TypeError(
                    f"{name} should be of type {wanted.__name__}, got: {type(value).__name__}"
                )
        for name in ("input_size", "hidden_size", "num_layers"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be greater than zero")
        if self.proj_size < 0:
            raise ValueError(
                "proj_size should be a positive integer or zero to disable projections"
            )
        if self.proj_size >= self.hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")

    def _make_weights(self, layer: int, suffix: str, options: Any) -> None:
        gates = GATES[self.mode] * self.hidden_size
        output = self.proj_size or self.hidden_size
        input = self.input_size if layer == 0 else output * (1 + self.bidirectional)
        shapes: dict[str, tuple[int, ...]] = {"weight_ih": (gates, input)}
        shapes["weight_hh"] = (gates, output)
        if self.bias:
            shapes["bias_ih"] = shapes["bias_hh"] = (gates,)
        if self.proj_size:
            shapes["weight_hr"] = (self.proj_size, self.hidden_size)
        names = []
        for name, shape in shapes.items():
            names.append(f"{name}_l{layer}{suffix}")
            setattr(self, names[-1], empty_parameter(shape, *options))
        self._flat_weights_names.extend(names)
        self._all_weights.append(names)

    def reset_parameters(self) -> None:
        """Draw all weights again."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
        super()._apply(fn, recurse)
        for name in self._flat_weights_names:
            if name not in self._parameters and hasattr(self, name):
                getattr(self, name)  # computed twice here, too: see `_computed`
        return self

    def flatten_parameters(self) -> None:
        """Nothing to do: weights need not lie in one block of memory."""

    @property  # type: ignore[no-redef]
    def _flat_weights(self) -> list[Tensor | None]:
        held = self._parameters
        return [held[name] if name in held else self._computed(name)
                for name in self._flat_weights_names]  # fmt: skip

    def _computed(self, name: str) -> Tensor | None:
        """A weight that is no parameter, such as a parametrized one: computed when it is asked for.

        PyTorch asks whether it is there, and then for it; parametrizations that learn or draw
        numbers when they compute (`spectral_norm`) would go another way with fewer steps. Of the
        first weight, the first of both is `_check_dtype`'s.
        """
        asked = name == self._flat_weights_names[0] or hasattr(self, name)
        return getattr(self, name, None) if asked else None

    def _find_new_weight(self) -> None:
        """Compute weights that are no parameters up to the first that is new in this call.

        By it PyTorch learns that the weights of the call before are out of date.
        """
        if "parametrizations" not in self._modules:
            return
        for name in self._flat_weights_names:
            if name in self._parameters or not hasattr(self, name):
                continue
            if not isinstance(getattr(self, name), Parameter):
                return

    @property
    def all_weights(self) -> list[list[Tensor]]:
        """The weights of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    # ---- checks

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Raise unless the input has the dtype, dims and size that the weights want."""
        if EAGER:  # autocast is none of a program's business
            self._check_dtype(input)
        wanted = 3 if batch_sizes is None else 2
        if input.dim() != wanted:
            raise RuntimeError(f"input must have {wanted} dimensions, got {input.dim()}")
        if input.shape[-1] != self.input_size:
            raise RuntimeError(
                "input.size(-1) must be equal to input_size. "
                f"Expected {self.input_size}, got {input.shape[-1]}"
            )

    def _check_dtype(self, input: Tensor) -> None:
        weight = self.weight_ih_l0
        if input.dtype is not weight.dtype and not autocast.enabled[input.device.type]:
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({weight.dtype}). "
                f"Convert input: input.to({weight.dtype}), or convert model: "
                f"model.to({input.dtype})"
            )

    def get_expected_hidden_size(
        self, input: Tensor, batch_sizes: Tensor | None
    ) -> tuple[int, int, int]:
        """The shape of the hidden state: (layers · directions, N, hidden)."""
        if batch_sizes is None:
            batch = input.shape[0 if self.batch_first else 1]
        else:
            batch = int(batch_sizes[0])
        count = self.num_layers * (2 if self.bidirectional else 1)
        return count, batch, self.proj_size if self.proj_size > 0 else self.hidden_size

    def check_hidden_size(
        self,
        hx: Tensor,
        expected_hidden_size: tuple[int, int, int],
        msg: str = "Expected hidden size {}, got {}",
    ) -> None:
        """Raise unless a state has the expected shape."""
        if hx.size() != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.size())))

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Raise unless input and state fit the weights."""
        self.check_input(input, batch_sizes)
        expected = self.get_expected_hidden_size(input, batch_sizes)
        self.check_hidden_size(hidden, expected)

    def _check_dims(self, input: Tensor) -> None:
        if input.dim() not in (2, 3):
            plain = self.mode.startswith("RNN")
            name, said = ("RNN", "tensor instead") if plain else (self.mode, "instead")
            raise ValueError(f"{name}: Expected input to be 2D or 3D, got {input.dim()}D {said}")

    # ---- states: of LSTMs, pairs

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """A state with its sequences in another order."""
        if permutation is None:
            return hx
        return ops.index_select(hx, 1, permutation)

    def _check_state_dims(self, hx: Any, wanted: int) -> None:
        if hx.dim() != wanted:
            batched = "batched 3-D" if wanted == 3 else "unbatched 2-D"
            raise RuntimeError(
                f"For {batched} input, hx should also be {wanted}-D but got {hx.dim()}-D tensor"
            )

    def _zeros(self, input: Tensor, batch_sizes: Tensor | None) -> Any:
        return input.new_zeros(self.get_expected_hidden_size(input, batch_sizes))

    def _with_batch_dim(self, hx: Any) -> Any:
        return hx.unsqueeze(1)

    def _without_batch_dim(self, hx: Any) -> Any:
        return hx.squeeze(1)

    def _over_batch(self, input: Any, hx: Any) -> Any:
        raise NotImplementedError(NO_FORWARD)

    def _over_packed(self, data: Any, hx: Any, batch_sizes: Any) -> Any:
        raise NotImplementedError(NO_FORWARD)

    # ---- forward: a script, too, one for each kind of input

    def forward(self, input: Any, hx: Any = None) -> Any:
        """Outputs for every step and the last state.

        Args:
            input: (T, N, input), (N, T, input) with `batch_first`, (T, input), or packed.
            hx: the state to start from, zeros by default.
        """
        if EAGER:
            self._find_new_weight()
        if isinstance(input, PackedSequence):
            data, batch_sizes, order, back = input
            if hx is None:
                start = self._zeros(data, batch_sizes)
            else:
                start = self.permute_hidden(hx, order)
            self.check_forward_args(data, start, batch_sizes)
            output, last = self._over_packed(data, start, batch_sizes)
            packed = PackedSequence(output, batch_sizes, order, back)
            return packed, self.permute_hidden(last, back)
        else:  # noqa: RET505 - a script takes one branch by the type of its input
            self._check_dims(input)
            unbatched = input.dim() == 2
            batch_dim = 0 if self.batch_first else 1
            batch = input.unsqueeze(batch_dim) if unbatched else input
            if hx is None:
                start = self._zeros(batch, None)
            else:
                self._check_state_dims(hx, 2 if unbatched else 3)
                start = self._with_batch_dim(hx) if unbatched else hx
            self.check_forward_args(batch, start, None)
            output, last = self._over_batch(batch, start)
            if unbatched:
                return output.squeeze(batch_dim), self._without_batch_dim(last)
            return output, last

    extra_repr = shown(plain=("input_size", "hidden_size"), unless=REPR_DEFAULTS)

    def __getstate__(self) -> dict[str, Any]:
        # Torch expects the weights a second time, as a list.
        return {**super().__getstate__(), "_flat_weights": self._flat_weights}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Files of torch hold the weights a second time, as a list.
        state = {key: value for key, value in state.items() if key not in DERIVED}
        super().__setstate__(state)
        self.__dict__.setdefault("proj_size", 0)
        names = state.get("_all_weights", [])
        self._flat_weights_names = [name for layer in names for name in layer]


DERIVED = frozenset(("_flat_weights", "_flat_weight_refs"))


NO_FORWARD = 'Module [RNNBase] is missing the required "forward" function'
ONLY_LSTM = "proj_size argument is only supported for LSTM, not RNN or GRU"


class RNN(RNNBase):
    """h' = tanh(W x + b + V h + c), or with ReLU by `nonlinearity="relu"` (Elman, 1990).

    Arguments: input_size, hidden_size, num_layers=1, nonlinearity="tanh", bias=True,
    batch_first=False, dropout=0.0, bidirectional=False, device=None, dtype=None.

    >>> import flambeau as torch
    >>> out, last = torch.nn.RNN(3, 5, batch_first=True)(torch.ones(2, 7, 3))
    >>> out.shape, last.shape
    (torch.Size([2, 7, 5]), torch.Size([1, 2, 5]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError(ONLY_LSTM)
        if len(args) > 3:
            nonlinearity = args[3]
            args = (*args[:3], *args[4:])
        else:
            nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(
                f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'."
            )
        super().__init__(f"RNN_{nonlinearity.upper()}", *args, **kwargs)
        self.nonlinearity = nonlinearity

    @overload  # type: ignore[no-overload-impl]
    def forward(self, input: Tensor, hx: Tensor | None = None) -> tuple[Tensor, Tensor]: ...

    @overload
    def forward(
        self, input: PackedSequence, hx: Tensor | None = None
    ) -> tuple[PackedSequence, Tensor]: ...

    forward = RNNBase.forward

    def _over_batch(self, input: Tensor, hx: Tensor) -> tuple[Tensor, Tensor]:
        if self.mode == "RNN_TANH":
            return ops.rnn_tanh(input, hx, self._flat_weights, self.bias, self.num_layers,
                                self.dropout, self.training, self.bidirectional,
                                self.batch_first)  # fmt: skip
        return ops.rnn_relu(input, hx, self._flat_weights, self.bias, self.num_layers,
                            self.dropout, self.training, self.bidirectional,
                            self.batch_first)  # fmt: skip

    def _over_packed(self, data: Tensor, hx: Tensor, batch_sizes: Tensor) -> tuple[Tensor, Tensor]:
        if self.mode == "RNN_TANH":
            return ops.rnn_tanh(data, batch_sizes, hx, self._flat_weights, self.bias,
                                self.num_layers, self.dropout, self.training,
                                self.bidirectional)  # fmt: skip
        return ops.rnn_relu(data, batch_sizes, hx, self._flat_weights, self.bias,
                            self.num_layers, self.dropout, self.training,
                            self.bidirectional)  # fmt: skip


class GRU(RNNBase):
    """Gated recurrent units (Cho et al., 2014).

    Shapes: input (L, N, I), or (N, L, I) with `batch_first`, or (L, I); output (L, N, H), state
    (layers, N, H).

    Arguments: input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0,
    bidirectional=False, device=None, dtype=None.

    >>> import flambeau as torch
    >>> out, last = torch.nn.GRU(3, 5, batch_first=True)(torch.ones(2, 7, 3))
    >>> out.shape, last.shape
    (torch.Size([2, 7, 5]), torch.Size([1, 2, 5]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError(ONLY_LSTM)
        super().__init__("GRU", *args, **kwargs)

    @overload  # type: ignore[no-overload-impl]
    def forward(self, input: Tensor, hx: Tensor | None = None) -> tuple[Tensor, Tensor]: ...

    @overload
    def forward(
        self, input: PackedSequence, hx: Tensor | None = None
    ) -> tuple[PackedSequence, Tensor]: ...

    forward = RNNBase.forward

    def _over_batch(self, input: Tensor, hx: Tensor) -> tuple[Tensor, Tensor]:
        return ops.gru(input, hx, self._flat_weights, self.bias, self.num_layers, self.dropout,
                       self.training, self.bidirectional, self.batch_first)  # fmt: skip

    def _over_packed(self, data: Tensor, hx: Tensor, batch_sizes: Tensor) -> tuple[Tensor, Tensor]:
        return ops.gru(data, batch_sizes, hx, self._flat_weights, self.bias, self.num_layers,
                       self.dropout, self.training, self.bidirectional)  # fmt: skip


class LSTM(RNNBase):
    """Long short-term memory (Hochreiter and Schmidhuber, 1997); the state is (h, c).

    Arguments: input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0,
    bidirectional=False, proj_size=0, device=None, dtype=None. With `proj_size`, h is projected to
    that size (Sak et al., 2014).

    Called with an input of shape (L, N, input_size), or (N, L, input_size) with `batch_first`, and
    perhaps a state, it gives the output of the last layer at every step, (L, N, D hidden_size)
    where D is 2 if `bidirectional`, and the last state: h and c of shape
    (D num_layers, N, hidden_size). Without a state it begins with zeros; N may be left out.
    `dropout` is between layers, so that a single layer has none.

    >>> import flambeau as torch
    >>> out, (h, c) = torch.nn.LSTM(3, 5, num_layers=2)(torch.ones(7, 2, 3))
    >>> out.shape, h.shape, c.shape
    (torch.Size([7, 2, 5]), torch.Size([2, 2, 5]), torch.Size([2, 2, 5]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    @overload  # type: ignore[no-overload-impl]
    def forward(
        self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]: ...

    @overload
    def forward(
        self, input: PackedSequence, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[PackedSequence, tuple[Tensor, Tensor]]: ...

    forward = RNNBase.forward

    def _over_batch(
        self, input: Tensor, hx: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        output, hidden, cell = ops.lstm(
            input, hx, self._flat_weights, self.bias, self.num_layers, self.dropout,
            self.training, self.bidirectional, self.batch_first,
        )  # fmt: skip
        return output, (hidden, cell)

    def _over_packed(
        self, data: Tensor, hx: tuple[Tensor, Tensor], batch_sizes: Tensor
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        output, hidden, cell = ops.lstm(
            data, batch_sizes, hx, self._flat_weights, self.bias, self.num_layers, self.dropout,
            self.training, self.bidirectional,
        )  # fmt: skip
        return output, (hidden, cell)

    def get_expected_cell_size(
        self, input: Tensor, batch_sizes: Tensor | None
    ) -> tuple[int, int, int]:
        """The shape of the cell state: (layers · directions, N, hidden)."""
        sizes = self.get_expected_hidden_size(input, batch_sizes)
        return sizes[0], sizes[1], self.hidden_size

    def check_forward_args(
        self, input: Tensor, hidden: tuple[Tensor, Tensor], batch_sizes: Tensor | None
    ) -> None:
        """Raise unless input and states fit the weights."""
        self.check_input(input, batch_sizes)
        expected = self.get_expected_hidden_size(input, batch_sizes)
        self.check_hidden_size(hidden[0], expected, "Expected hidden[0] size {}, got {}")
        cell = self.get_expected_cell_size(input, batch_sizes)
        self.check_hidden_size(hidden[1], cell, "Expected hidden[1] size {}, got {}")

    def permute_hidden(
        self, hx: tuple[Tensor, Tensor], permutation: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """States with their sequences in another order."""
        if permutation is None:
            return hx
        return ops.index_select(hx[0], 1, permutation), ops.index_select(hx[1], 1, permutation)

    def _check_state_dims(self, hx: tuple[Tensor, Tensor], wanted: int) -> None:
        if hx[0].dim() != wanted or hx[1].dim() != wanted:
            batched = "batched 3-D" if wanted == 3 else "unbatched 2-D"
            raise RuntimeError(
                f"For {batched} input, hx and cx should also be {wanted}-D but got "
                f"({hx[0].dim()}-D, {hx[1].dim()}-D) tensors"
            )

    def _zeros(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[Tensor, Tensor]:
        hidden = input.new_zeros(self.get_expected_hidden_size(input, batch_sizes))
        return hidden, input.new_zeros(self.get_expected_cell_size(input, batch_sizes))

    def _with_batch_dim(self, hx: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        return hx[0].unsqueeze(1), hx[1].unsqueeze(1)

    def _without_batch_dim(self, hx: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        return hx[0].squeeze(1), hx[1].squeeze(1)
