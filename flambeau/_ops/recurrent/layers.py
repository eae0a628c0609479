"""Recurrent layers over all time steps: composed of operators, or compiled (_ops/recurrent/launch).

`layer` takes W x + b of every step, which is one product for all of them, and runs the steps. Both
forms compute the same; the compiled one keeps the gates for its gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau._core.autocast import settings
from flambeau._core.dtype import NUMPY_HALVES, bfloat16, float32, float64
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import composite, internal
from flambeau._ops.table.pointwise import wants_grad
from flambeau._runtime import choice
from flambeau._tensor.device_array import DeviceArray
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.backward import grad as gradients_of
from flambeau.autograd.grad_mode import enable_grad

FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
State = tuple[Tensor, ...]
Step = Callable[[Any, Any, Any], Any]


# ---- one step, of operators


def tanh_step(from_input: Any, from_hidden: Any, state: Any) -> Any:
    """h' = tanh(W x + b + V h + c)."""
    return (ops.tanh(from_input + from_hidden),)


def relu_step(from_input: Any, from_hidden: Any, state: Any) -> Any:
    """h' = max(0, W x + b + V h + c)."""
    return (ops.relu(from_input + from_hidden),)


def gru_step(from_input: Any, from_hidden: Any, state: Any) -> Any:
    """Reset and update gates r, z; h' = (1 - z) n + z h with n = tanh(W x + b + r (V h + c))."""
    input_reset, input_update, input_new = from_input.chunk(3, -1)
    hidden_reset, hidden_update, hidden_new = from_hidden.chunk(3, -1)
    reset = ops.sigmoid(input_reset + hidden_reset)
    update = ops.sigmoid(input_update + hidden_update)
    new = ops.tanh(input_new + reset * hidden_new)
    return ((state[0] - new) * update + new,)  # in the state's memory order


def lstm_step(from_input: Any, from_hidden: Any, state: Any) -> Any:
    """Gates i, f, o and candidate g: c' = f c + i g, h' = o tanh(c')."""
    enter, forget, candidate, leave = (from_input + from_hidden).chunk(4, -1)
    cell = ops.sigmoid(forget) * state[1] + ops.sigmoid(enter) * ops.tanh(candidate)
    return ops.sigmoid(leave) * ops.tanh(cell), cell


STEPS: dict[str, Step] = {
    "RNN_TANH": tanh_step, "RNN_RELU": relu_step, "GRU": gru_step, "LSTM": lstm_step,
}  # fmt: skip


def advance(mode: str, from_input: Any, weight: Any, bias: Any, state: Any) -> Any:
    """The state after one step."""
    from_hidden = ops.nn.functional.linear(state[0], weight, bias)
    return STEPS[mode](from_input, from_hidden, state)


def composed(mode: str, from_input: Any, weight: Any, bias: Any, state: Any,
             backwards: bool) -> Any:  # fmt: skip
    """All steps, of operators: the outputs (T, N, hidden) and the last state."""
    parts = from_input.unbind(0)
    outputs = []
    for part in reversed(parts) if backwards else parts:
        state = advance(mode, part, weight, bias, state)
        outputs.append(state[0])
    if backwards:
        outputs.reverse()
    return ops.stack(outputs), state


def layer(mode: str, from_input: Any, weight: Any, bias: Any, state: Any, backwards: bool) -> Any:
    """All steps of one layer in one direction: the outputs (T, N, hidden) and the last state.

    `from_input` (T, N, gates · hidden) is W x + b, `weight` V, `bias` c or None.
    """
    if not _compiles(mode, from_input, weight, state):
        return composed(mode, from_input, weight, bias, state, backwards)
    last = 0 if backwards else -1
    if mode == "GRU":
        output = ops._gru_layer(from_input, weight, bias, state[0], backwards)[0]
        return output, (output[last],)
    if bias is not None:
        from_input = from_input + bias
    if mode == "LSTM":
        output, cell, _, _ = ops._lstm_layer(from_input, weight, *state, backwards)
        return output, (output[last], cell)
    output = ops._rnn_layer(from_input, weight, state[0], mode == "RNN_RELU", backwards)
    return output, (output[last],)


def is_one_operator(mode: str, input: Any) -> bool:
    """Whether torch computes all steps of a layer without projection as one operator. All tensors
    of that are then of one type, which autocast chooses; else its products alone choose."""
    return mode == "LSTM" and input.dtype in (float32, bfloat16)


def whole_layer(mode: str, input: Any, weights: Any, state: Any, backwards: bool) -> Any:
    """`layer` from the input (T, N, features); `weights` are W, V, b and c."""
    weight, weight_hidden, bias, bias_hidden = weights
    # The biases only meet in a sum, but where autocast rounds each of them. (A state of another
    # type is an error, which speaks of its bias.)
    together = mode != "GRU" and bias_hidden is not None and not settings.enabled["cpu"]
    if together and state[0]._data.dtype is weight_hidden._data.dtype:
        bias, bias_hidden = bias + bias_hidden, None
    from_input = ops.nn.functional.linear(input, weight, bias)
    return layer(mode, from_input, weight_hidden, bias_hidden, state, backwards)


@composite(
    "_lstm_steps(Tensor input, Tensor weight, Tensor weight_hidden, Tensor? bias,"
    " Tensor? bias_hidden, Tensor hidden, Tensor cell, bool backwards)"
    " -> (Tensor, Tensor, Tensor)",
    method=False, autocast="lower",
)  # fmt: skip
def lstm_steps(input: Any, weight: Any, weight_hidden: Any, bias: Any, bias_hidden: Any,
               hidden: Any, cell: Any, backwards: bool) -> Any:  # fmt: skip
    """All steps of an LSTM in one direction: outputs, the last hidden and cell states."""
    if {weight_hidden.dtype, hidden.dtype, cell.dtype} != {input.dtype}:
        raise _mixed_types((weight_hidden, hidden, cell))
    weights = (weight, weight_hidden, bias, bias_hidden)
    output, last = whole_layer("LSTM", input, weights, (hidden, cell), backwards)
    return output, *last


def _mixed_types(tensors: tuple[Any, ...]) -> RuntimeError:
    """Torch's errors, which are those of the library that computes its LSTMs."""
    if any(tensor.dtype is float64 for tensor in tensors):
        return RuntimeError("get_mkldnn_dtype: unsupported data type")
    return RuntimeError(
        "could not create a primitive descriptor for the LSTM forward propagation primitive. Run "
        "workload with environment variable ONEDNN_VERBOSE=all to get additional diagnostic "
        "information."
    )


def _compiles(mode: str, from_input: Any, weight: Any, state: Any) -> bool:
    """Whether the CPU's kernels compute the layer. On other devices operators do: their products
    and elements have kernels there, and the host need not wait for them."""
    data = from_input._data
    if isinstance(data, DeviceArray):
        return False
    halves = mode == "LSTM" and data.dtype in NUMPY_HALVES
    if not (halves or data.dtype in (FLOAT32, FLOAT64)) or not data.size:
        return False
    if any(t._data.dtype != data.dtype for t in (weight, *state)):
        return False
    if mode in ("GRU", "LSTM"):
        return choice.compiled("recurrent gates", data.size)
    return choice.compiled("recurrent", data.size) or choice.compiled("recurrent steps", len(data))


def _rows(array: np.ndarray) -> np.ndarray:
    """For the kernels: contiguous, half types (of an autocast region) as float32."""
    return np.ascontiguousarray(array, np.float32 if array.dtype in NUMPY_HALVES else None)


def _back(results: tuple[np.ndarray, ...], dtype: np.dtype[Any]) -> tuple[np.ndarray, ...]:
    return tuple(result.astype(dtype, copy=False) for result in results)


def _by_operators(mode: str, grads: Any, from_input: Any, weight: Any, bias: Any, state: Any,
                  backwards: bool) -> Any:  # fmt: skip
    """Gradients that can be differentiated again: those of the composed steps, on aliases, since
    an argument may have been computed from another one.
    """
    with enable_grad():
        from_input, weight = ops.alias(from_input), ops.alias(weight)
        bias = None if bias is None else ops.alias(bias)
        state = tuple([ops.alias(part) for part in state])
        output, last = composed(mode, from_input, weight, bias, state, backwards)
        inputs = [t for t in (from_input, weight, bias, *state) if t is not None]
        wanted = [t for t in inputs if t.requires_grad]
        results = [output, *last[1:]]
        found = gradients_of(results, wanted, list(grads), create_graph=True, allow_unused=True)
    by_tensor = {id(t): g for t, g in zip(wanted, found, strict=True)}
    return tuple(None if t is None else by_tensor.get(id(t))
                 for t in ((from_input, weight, bias, *state) if mode == "GRU"
                           else (from_input, weight, *state)))  # fmt: skip


# ---- LSTM


def _lstm_gradients(grads: Any, from_input: Any, weight: Any, hidden: Any, cell: Any,
                    backwards: bool, output: Any, cells: Any, gates: Any,
                    wanted: Any) -> Any:  # fmt: skip
    given = grads[:2]
    if wants_grad((*given, from_input, weight, hidden, cell)):
        return _by_operators("LSTM", given, from_input, weight, None, (hidden, cell), backwards)
    return ops._lstm_layer_backward(*given, weight, hidden, cell, output, cells, gates, backwards)


@internal(
    "_lstm_layer(Tensor from_input, Tensor weight, Tensor hidden, Tensor cell, bool backwards)"
    " -> (Tensor output, Tensor last_cell, Tensor cells, Tensor gates)",
    autocast="lower", node="LstmLayerBackward0",
    nondifferentiable=("cells", "gates"),
    backward={("from_input", "weight", "hidden", "cell"): _lstm_gradients},
)  # fmt: skip
def lstm_layer(from_input: np.ndarray, weight: np.ndarray, hidden: np.ndarray, cell: np.ndarray,
               backwards: bool) -> Any:  # fmt: skip
    """All steps of an LSTM: outputs, the last cell state, all cell states, the gates."""
    from flambeau._ops.recurrent import launch as recurrent

    outputs, cells, gates = recurrent.lstm(
        _rows(from_input), _rows(weight), _rows(hidden), _rows(cell), backwards
    )
    results = _back((outputs, cells[0 if backwards else -1].copy()), from_input.dtype)
    return *results, cells, gates


@internal(
    "_lstm_layer_backward(Tensor grad, Tensor grad_cell, Tensor weight, Tensor hidden, Tensor cell,"
    " Tensor output, Tensor cells, Tensor gates, bool backwards)"
    " -> (Tensor, Tensor, Tensor, Tensor)",
)  # fmt: skip
def lstm_layer_backward(grad: np.ndarray, grad_cell: np.ndarray, weight: np.ndarray,
                        hidden: np.ndarray, cell: np.ndarray, output: np.ndarray,
                        cells: np.ndarray, gates: np.ndarray, backwards: bool) -> Any:  # fmt: skip
    """Gradients of from_input, weight, hidden and cell."""
    from flambeau._ops.recurrent import launch as recurrent

    found = recurrent.lstm_backward(
        _rows(grad), _rows(grad_cell), _rows(weight), _rows(hidden), _rows(cell), _rows(output),
        cells, gates, backwards,
    )  # fmt: skip
    return _back(found, weight.dtype)


# ---- GRU


def _gru_gradients(grads: Any, from_input: Any, weight: Any, bias: Any, hidden: Any,
                   backwards: bool, output: Any, gates: Any, from_hidden: Any,
                   wanted: Any) -> Any:  # fmt: skip
    given = grads[:1]
    tensors = [t for t in (*given, from_input, weight, bias, hidden) if t is not None]
    if wants_grad(tensors):
        return _by_operators("GRU", given, from_input, weight, bias, (hidden,), backwards)
    return ops._gru_layer_backward(*given, weight, hidden, output, gates, from_hidden, backwards)


@internal(
    "_gru_layer(Tensor from_input, Tensor weight, Tensor? bias, Tensor hidden, bool backwards)"
    " -> (Tensor output, Tensor gates, Tensor from_hidden)",
    autocast="lower", node="GruLayerBackward0",
    nondifferentiable=("gates", "from_hidden"),
    backward={("from_input", "weight", "bias", "hidden"): _gru_gradients},
)  # fmt: skip
def gru_layer(from_input: np.ndarray, weight: np.ndarray, bias: np.ndarray | None,
              hidden: np.ndarray, backwards: bool) -> Any:  # fmt: skip
    """All steps of a GRU: outputs, the gates, V h + c."""
    from flambeau._ops.recurrent import launch as recurrent

    outputs, gates, from_hidden = recurrent.gru(
        _rows(from_input), _rows(weight), None if bias is None else _rows(bias), _rows(hidden),
        backwards,
    )  # fmt: skip
    return *_back((outputs,), from_input.dtype), gates, from_hidden


@internal(
    "_gru_layer_backward(Tensor grad, Tensor weight, Tensor hidden, Tensor output, Tensor gates,"
    " Tensor from_hidden, bool backwards) -> (Tensor, Tensor, Tensor, Tensor)",
)  # fmt: skip
def gru_layer_backward(grad: np.ndarray, weight: np.ndarray, hidden: np.ndarray,
                       output: np.ndarray, gates: np.ndarray, from_hidden: np.ndarray,
                       backwards: bool) -> Any:  # fmt: skip
    """Gradients of from_input, weight, bias and hidden."""
    from flambeau._ops.recurrent import launch as recurrent

    found = recurrent.gru_backward(
        _rows(grad), _rows(weight), _rows(hidden), _rows(output), gates, from_hidden, backwards
    )
    return _back(found, weight.dtype)


# ---- without gates


def _rnn_gradients(grad: Any, from_input: Any, weight: Any, hidden: Any, relu: bool,
                   backwards: bool, result: Any, wanted: Any) -> Any:  # fmt: skip
    if wants_grad((grad, from_input, weight, hidden)):
        mode = "RNN_RELU" if relu else "RNN_TANH"
        return _by_operators(mode, (grad,), from_input, weight, None, (hidden,), backwards)
    return ops._rnn_layer_backward(grad, weight, hidden, result, relu, backwards)


@internal(
    "_rnn_layer(Tensor from_input, Tensor weight, Tensor hidden, bool relu, bool backwards)"
    " -> Tensor",
    autocast="lower", node="RnnLayerBackward0",
    backward={("from_input", "weight", "hidden"): _rnn_gradients},
)  # fmt: skip
def rnn_layer(from_input: np.ndarray, weight: np.ndarray, hidden: np.ndarray, relu: bool,
              backwards: bool) -> np.ndarray:  # fmt: skip
    """All steps of a layer without gates."""
    from flambeau._ops.recurrent import launch as recurrent

    outputs = recurrent.plain(_rows(from_input), _rows(weight), _rows(hidden), relu, backwards)
    return outputs.astype(from_input.dtype, copy=False)


@internal(
    "_rnn_layer_backward(Tensor grad, Tensor weight, Tensor hidden, Tensor output, bool relu,"
    " bool backwards) -> (Tensor, Tensor, Tensor)",
)  # fmt: skip
def rnn_layer_backward(grad: np.ndarray, weight: np.ndarray, hidden: np.ndarray,
                       output: np.ndarray, relu: bool, backwards: bool) -> Any:  # fmt: skip
    """Gradients of from_input, weight and hidden."""
    from flambeau._ops.recurrent import launch as recurrent

    found = recurrent.plain_backward(
        _rows(grad), _rows(weight), _rows(hidden), _rows(output), relu, backwards
    )
    return _back(found, weight.dtype)
