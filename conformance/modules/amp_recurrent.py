"""Recurrent layers in regions of autocast: the types of outputs, states and gradients."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

TYPES = ("float32", "bfloat16", "float16")
KINDS = ("RNN", "GRU", "LSTM", "RNNCell", "GRUCell", "LSTMCell")


def flat(library: Any, value: Any) -> list[Any]:
    """All tensors of a result."""
    if isinstance(value, library.Tensor):
        return [value]
    if isinstance(value, library.nn.utils.rnn.PackedSequence):
        return [value.data]
    return [tensor for part in value for tensor in flat(library, part)]


def types_of(library: Any, module: Any, arguments: Any, region: str = "bfloat16") -> Any:
    """Types of what a module returns in a region, and of the gradients."""
    with library.autocast("cpu", dtype=getattr(library, region)):
        outputs = flat(library, module(*arguments))
    total = sum(output.float().sum() for output in outputs)
    wanted = [*(t for t in arguments[:1] if getattr(t, "requires_grad", False)),
              *module.parameters()]  # fmt: skip
    grads = library.autograd.grad(total, wanted)
    return [str(t.dtype).rpartition(".")[2] for t in (*outputs, *grads)]


def state(library: Any, kind: str, dtype: Any, sizes: tuple[int, ...]) -> Any:
    hidden = library.full(sizes, 0.25, dtype=dtype)
    return (hidden, hidden) if "LSTM" in kind else hidden


def types_of_inputs_and_states(library: Any) -> Any:
    found = []
    for kind, given, before in itertools.product(KINDS, TYPES, (None, *TYPES)):
        cell = "Cell" in kind
        module = getattr(library.nn, kind)(3, 4)
        sizes = (2, 3) if cell else (5, 2, 3)
        arguments = [library.ones(sizes, dtype=getattr(library, given), requires_grad=True)]
        if before is not None:
            dtype = getattr(library, before)
            arguments.append(state(library, kind, dtype, (2, 4) if cell else (1, 2, 4)))
        found.append((kind, given, before, types_of(library, module, arguments)))
    return found


def regions_of_float16(library: Any) -> Any:
    """But LSTMs, which PyTorch's library for the CPU has not in float16 everywhere."""
    found = []
    for kind, given in itertools.product(("RNN", "GRU", "GRUCell", "LSTMCell"), TYPES):
        module = getattr(library.nn, kind)(3, 4)
        sizes = (2, 3) if "Cell" in kind else (5, 2, 3)
        arguments = [library.ones(sizes, dtype=getattr(library, given), requires_grad=True)]
        found.append((kind, given, types_of(library, module, arguments, "float16")))
    return found


def layers_directions_and_biases(library: Any) -> Any:
    found = []
    for kind, bias, dtype in itertools.product(("RNN", "GRU", "LSTM"), (True, False), TYPES):
        module = getattr(library.nn, kind)(3, 4, 2, bias=bias, bidirectional=True)
        given = library.ones(5, 2, 3, dtype=getattr(library, dtype), requires_grad=True)
        found.append(types_of(library, module, [given]))
    return found


def projections(library: Any) -> Any:
    module = library.nn.LSTM(3, 4, proj_size=2)
    given = [library.ones(5, 2, 3, dtype=getattr(library, dtype)) for dtype in TYPES]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch says that its library has no projections
        return [types_of(library, module, [x]) for x in given]


def packed_sequences(library: Any) -> Any:
    pack = library.nn.utils.rnn.pack_padded_sequence
    found = []
    for kind, dtype in itertools.product(("RNN", "GRU", "LSTM"), TYPES):
        packed = pack(library.ones(5, 2, 3, dtype=getattr(library, dtype)), [5, 3])
        found.append(types_of(library, getattr(library.nn, kind)(3, 4), [packed]))
    return found


def weights_of_other_types(library: Any) -> Any:
    found = []
    for kind, dtype in itertools.product(("RNN", "GRU", "LSTM"), ("bfloat16", "float16")):
        module = getattr(library.nn, kind)(3, 4).to(getattr(library, dtype))
        found.append(types_of(library, module, [library.ones(5, 2, 3)]))
    return found


def _error(library: Any, kind: str, bias: bool, before: str, inside: bool) -> Any:
    module = getattr(library.nn, kind)(3, 4, bias=bias)
    hidden = state(library, kind, getattr(library, before), (1, 2, 4))
    try:
        with library.autocast("cpu", enabled=inside):
            return [str(t.dtype) for t in flat(library, module(library.ones(5, 2, 3), hidden))]
    except RuntimeError as error:
        return str(error)


def errors_of_states_in_float64(library: Any) -> Any:
    return [
        _error(library, kind, bias, "float64", inside)
        for kind in ("RNN", "GRU", "LSTM")
        for bias in (True, False)
        for inside in (True, False)
    ]


def errors_of_half_states_outside(library: Any) -> Any:
    kinds = itertools.product(("RNN", "GRU", "LSTM"), (True, False), ("bfloat16", "float16"))
    return [_error(library, *case, inside=False) for case in kinds]


def values_of_an_lstm(library: Any) -> Any:
    """To the digits that bfloat16 has."""
    module = library.nn.LSTM(3, 4)
    with library.no_grad():
        for number, weight in enumerate(module.parameters()):
            values = library.arange(weight.numel()) * 7 + number
            weight.copy_((values % 11 - 5).reshape(weight.shape) / 8)
    given = library.linspace(-1, 1, 30).reshape(5, 2, 3)
    with library.autocast("cpu"):
        output, _ = module(given)
    output.float().sum().backward()
    grads = [weight.grad.abs().max().item() for weight in module.parameters()]
    return [round(number, 1) for number in (*output.float().flatten().tolist(), *grads)]
