"""`backward` and `grad`: the user's entrances to the engine."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from flambeau._core import modes
from flambeau._core.dtype import BY_NUMPY
from flambeau._core.layout import contiguous_strides
from flambeau._tensor import device_array
from flambeau._tensor.examples import Example
from flambeau._tensor.sparse import SparseTensor
from flambeau._tensor.tensor import (
    Tensor,
    constructors,
    method,
    on_device_of,
    provides,
    wrap,
)
from flambeau.autograd import engine
from flambeau.autograd.batches import Batch, batched
from flambeau.autograd.edges import GradientEdge, inner_edge
from flambeau.autograd.graph import tools
from flambeau.autograd.history import LEARNING, UNRECORDED, Nowhere, edge_of, is_inference
from flambeau.autograd.versions import stop_requiring_grad

CREATE_GRAPH = (
    "Using backward() with create_graph=True will create a reference cycle between the parameter "
    "and its gradient which can cause a memory leak. We recommend using autograd.grad when "
    "creating the graph to avoid this. If you have to use this function, make sure to reset the "
    ".grad fields of your parameters to None after use to break the cycle and avoid the leak."
)
NOT_INSIDE = (
    "You are attempting to call Tensor.requires_grad_() (or perhaps using "
    "torch.autograd.functional.* APIs) inside of a function being transformed by a functorch "
    "transform. This is unsupported, please attempt to use the functorch transforms (e.g. grad, "
    "vjp, jacrev, jacfwd, hessian) or call requires_grad_() outside of a function being "
    "transformed instead."
)
ONLY_INPUTS = (
    "only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate "
    "gradient for other parts of the graph, please use torch.autograd.backward."
)


def backward(
    tensors: Tensor | Sequence[Tensor],
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Add the gradients of `tensors` to the `.grad` of the leaves they came from.

    `grad_tensors`: the gradients to start with; ones for one-element tensors.

    >>> import flambeau as torch
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> torch.autograd.backward(x * x)
    >>> x.grad
    tensor(6.)
    """
    wanted = None if inputs is None else _as_tuple(inputs)
    if wanted is not None and not wanted:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    roots = _as_tuple(tensors)
    grads = _start_grads(roots, _as_tuple(grad_tensors, len(roots)))
    keep = create_graph if retain_graph is None else retain_graph
    edges = [_root_edge(root, position) for position, root in enumerate(roots)]
    if create_graph:
        warnings.warn(CREATE_GRAPH, UserWarning, stacklevel=3)
    if wanted is None:
        engine.backward(edges, grads, keep_graph=keep, create_graph=create_graph)
        return
    wanted = tuple(getattr(tensor, "_entries", tensor) for tensor in wanted)
    for tensor in wanted:
        if isinstance(tensor, Tensor):
            tensor.retain_grad()  # type: ignore[attr-defined]
    targets = [_input_edge(tensor) for tensor in wanted]
    engine.backward(edges, grads, keep_graph=keep, create_graph=create_graph, inputs=targets)


def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor] | dict[str, Tensor],
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> Any:
    """The gradients of the sum of `outputs` with respect to `inputs`, as a tuple.

    Unreached inputs are an error, unless `allow_unused` (None) or `materialize_grads` (zeros).
    `only_inputs` is of old: False warns and changes nothing. A dict of inputs gives a dict.

    >>> import flambeau as torch
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> torch.autograd.grad(x * x, x)
    (tensor(6.),)
    """
    if type(inputs) is dict:
        found = grad(outputs, tuple(inputs.values()), grad_outputs, retain_graph, create_graph,
                     only_inputs, allow_unused, is_grads_batched, materialize_grads)  # fmt: skip
        return dict(zip(inputs, found, strict=True))
    if not only_inputs:
        warnings.warn(ONLY_INPUTS, FutureWarning, stacklevel=2)
    if materialize_grads and allow_unused is False:
        raise ValueError("Expected allow_unused to be True or not passed when "
                         "materialize_grads=True, but got: allow_unused=False.")  # fmt: skip
    roots, wanted = _as_tuple(outputs), _as_tuple(inputs)
    if not wanted:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    keep = create_graph if retain_graph is None else retain_graph
    if is_grads_batched:
        return _batched(roots, wanted, _as_tuple(grad_outputs, len(roots)), create_graph,
                        allow_unused, keep)  # fmt: skip
    starts = _start_grads(roots, _as_tuple(grad_outputs, len(roots)))
    edges = [_root_edge(root, position) for position, root in enumerate(roots)]
    targets = [_input_edge(getattr(tensor, "_entries", tensor)) for tensor in wanted]
    found = engine.backward(edges, starts, keep_graph=keep, create_graph=create_graph,
                            inputs=targets, accumulate=False)  # fmt: skip
    if SparseTensor.exists:
        found = [_as_wanted(g, tensor) for g, tensor in zip(found, wanted, strict=True)]
    if materialize_grads:
        found = [
            _or_zeros(g, tensor, create_graph) for g, tensor in zip(found, wanted, strict=True)
        ]
    unused = [position for position, g in enumerate(found) if g is None]
    if unused and not allow_unused and not materialize_grads:
        raise RuntimeError(
            f"The differentiated Tensor at index {unused[0]} appears to not have been used "
            "in the graph. Set allow_unused=True if this is the desired behavior."
        )
    return tuple(found)


def _batched(roots: Any, wanted: Any, grads: Any, create_graph: bool, allow_unused: Any,
             keep: bool) -> tuple[Any, ...]:  # fmt: skip
    """One backward for all entries of the leading dim of `grad_outputs`, as a batch."""
    for position, (root, given) in enumerate(zip(roots, grads, strict=True)):
        _check_batch(root, given, position)
    count = next(g for g in grads if g is not None)._data.shape[0]
    with batched(count, "error") as level:
        starts = [None if g is None else level.standing_for(g) for g in grads]
        found = grad(roots, wanted, starts, keep, create_graph, allow_unused=allow_unused)
        return tuple(None if g is None else _all_of(level, g) for g in found)


def _all_of(level: Batch, tensor: Any) -> Any:
    """What a tensor stands for in all examples of a batch, the first dim theirs."""
    entry = level.example(tensor)
    with level.apart():
        if entry is not None and entry.is_batched:
            return entry.value
        alone = tensor if entry is None else entry.value
        return alone.unsqueeze(0).expand(level.size, *alone.shape)


def _check_batch(root: Any, given: Any, position: int) -> None:
    if given is None or isinstance(root, GradientEdge) or given.shape[1:] == root.shape:
        return
    raise RuntimeError(
        "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the "
        "batch dimension. The sizes of the remaining dimensions are expected to match the shape of "
        f"corresponding output, but a mismatch was detected: grad_output[{position}] has a shape "
        f"of {given.shape[1:]} and output[{position}] has a shape of {root.shape}. If you only "
        "want some tensors in `grad_output` to be considered batched, consider using vmap."
    )


def _as_wanted(found: Any, tensor: Any) -> Any:
    """A sparse gradient for a sparse input, of whose entries it was found."""
    if found is None or not isinstance(tensor, SparseTensor):
        return found
    return constructors["sparse_grad"](tensor, found)


def _or_zeros(found: Any, tensor: Tensor, learns: bool) -> Any:
    if found is not None:
        return found
    if isinstance(tensor, GradientEdge):
        raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge"
                           )  # fmt: skip
    zeros = tools.zeros(tensor._data.shape, tensor._data.dtype, tensor.device)
    zeros._requires_grad = learns
    return zeros


def _as_tuple(value: Any, length: int = 1) -> tuple[Any, ...]:
    if value is None:
        return (None,) * length
    return (value,) if isinstance(value, (Tensor, GradientEdge)) else tuple(value)


def _root_edge(tensor: Any, position: int) -> Any:
    if isinstance(tensor, GradientEdge):
        return inner_edge(tensor)
    edge = edge_of(tensor)
    if edge is None or type(edge) is Nowhere:
        raise RuntimeError(f"element {position} of tensors does not require grad and does not "
                           "have a grad_fn")  # fmt: skip
    return edge


def _input_edge(tensor: Any) -> Any:
    if isinstance(tensor, GradientEdge):
        return inner_edge(tensor)
    edge = edge_of(tensor)
    if edge is None:
        raise RuntimeError("One of the differentiated Tensors does not require grad")
    return edge


def _start_grads(roots: Any, grads: Any) -> list[Any]:
    for given in grads:
        if given is not None and not isinstance(given, Tensor):
            raise TypeError("gradients can be either Tensors or None, but got "
                            f"{type(given).__name__}")  # fmt: skip
    if len(roots) != len(grads):
        raise RuntimeError(f"got {len(roots)} tensors and {len(grads)} gradients")
    return [_start_grad(root, given) for root, given in zip(roots, grads, strict=True)]


def _start_grad(root: Any, given: Any) -> Tensor | None:
    if given is None:
        return _ones_for(root)
    if isinstance(root, GradientEdge):
        token = root.ownership_token
        if token is not None and given._data.shape != token.shape:
            raise RuntimeError(
                f"Mismatch in shape: grad_output[0] has a shape of {given.shape} and output[0] has "
                f"a shape of torch.Size({list(token.shape)})."
            )
        return given if token is None else _of_dtype(given, token.dtype)
    if given.shape != root.shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[0] has a shape of {given.shape} and output[0] has a "
            f"shape of {root.shape}."
        )
    if given.device is not root.device:
        raise RuntimeError(f"invalid gradient at index 0 - expected device {root.device} but got "
                           f"{given.device}")  # fmt: skip
    return _of_dtype(given, root._data.dtype)


def _ones_for(root: Any) -> Tensor | None:
    """The gradient to start with for a tensor (or an edge) of one real element; None for what does
    not require grad, which is an error that comes later."""
    if not isinstance(root, GradientEdge):
        if not root.requires_grad:
            return None
        data = root._data
        shape, dtype = data.shape, data.dtype
    elif root.ownership_token is not None:
        _, shape, dtype = root.ownership_token
    else:
        raise RuntimeError("a gradient to start with is needed for a GradientEdge of a user's")
    if math.prod(shape) != 1:
        raise RuntimeError("grad can be implicitly created only for scalar outputs")
    if dtype.kind in "cW":
        raise RuntimeError("grad can be implicitly created only for real scalar outputs but "
                           f"got {BY_NUMPY[dtype]}")  # fmt: skip
    if isinstance(root, GradientEdge):
        return wrap(np.ones(shape, dtype))
    if hasattr(root.__class__, "__torch_dispatch__"):
        return constructors["ones_of_class"](root)  # type: ignore[no-any-return]
    if data.__class__ is np.ndarray:
        return wrap(np.ones(shape, dtype))
    place = root.device
    if place.type == "cuda":
        strides = contiguous_strides(shape)
        return wrap(device_array.filled(shape, strides, dtype, place.index, 1))
    return on_device_of(wrap(np.ones(shape, dtype)), root)


def _of_dtype(given: Tensor, want: Any) -> Tensor:
    """A gradient to start with in the type of what it is a gradient of."""
    if isinstance(given, SparseTensor):
        return given
    have = given._data.dtype
    if have == want:
        return given
    if "c" in (have.kind, want.kind):
        raise RuntimeError(
            "For complex Tensors, both grad_output and output are required to have the same dtype. "
            f"Mismatch in dtype: grad_output[0] has a dtype of {given.dtype} and output[0] has a "
            f"dtype of {BY_NUMPY[want]}."
        )
    return tools.to_dtype(given, want)  # type: ignore[no-any-return]


@method
def _backward(self: Tensor, gradient: Any = None, retain_graph: bool | None = None,
              create_graph: bool = False, inputs: Any = None) -> None:  # fmt: skip
    """Add the gradients of this tensor to the `.grad` of the leaves it came from.

    gradient: what the gradient begins with, of this tensor's shape; a tensor of one element needs
        none, since its own gradient is 1.
    retain_graph: keep what the graph has saved, so that one can go backward again.
    create_graph: record the pass itself, for derivatives of derivatives.
    inputs: the only leaves to give a `.grad`; else all that have `requires_grad`.

    Gradients add up over calls: `optimizer.zero_grad()` or `x.grad = None` begins anew. Raises
    RuntimeError for a second pass without `retain_graph=True`, and for more than one element
    without `gradient`.

    >>> import flambeau as torch
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([2., 4.])
    """
    backward(self, gradient, retain_graph, create_graph, inputs)


Tensor.backward = _backward  # type: ignore[attr-defined]
_backward.__name__ = "backward"
del Tensor._backward  # type: ignore[attr-defined]


@provides("set_requires_grad")
def assign_requires_grad(tensor: Tensor, value: bool) -> None:
    """The setter of the attribute, which only leaves have."""
    if not tensor.is_leaf and value:
        raise RuntimeError("you can only change requires_grad flags of leaf variables.")
    set_requires_grad(tensor, value)


def set_requires_grad(tensor: Tensor, value: bool) -> None:
    """Change the flag: leaves of float or complex type may require grad."""
    value = bool(value)
    if tensor._node is not None or (tensor._base is not None and tensor._base._requires_grad):
        if not value and not tensor.is_leaf:
            raise RuntimeError(
                "you can only change requires_grad flags of leaf variables. If you want to use a "
                "computed variable in a subgraph that doesn't require differentiation use "
                "var_no_grad = var.detach()."
            )
        if value and tensor._creation in UNRECORDED and tensor._node is None:
            tensor._creation = LEARNING
        return
    if value and tensor._data.dtype.kind not in "fcVW":
        raise RuntimeError("only Tensors of floating point dtype can require gradients")
    if value and is_inference(tensor) and not modes.grad.inference:
        raise RuntimeError("Setting requires_grad=True on inference tensor outside InferenceMode "
                           "is not allowed.")  # fmt: skip
    if value:
        tensor._requires_grad = True
    else:
        stop_requiring_grad(tensor)


@method
def requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Set `requires_grad` and return the tensor itself, of whatever shape.

    Only floating-point and complex tensors can want gradients. Raises RuntimeError for others, and
    for False on a tensor that an operator made: `detach` is for those.

    >>> import flambeau as torch
    >>> torch.ones(2).requires_grad_()
    tensor([1., 1.], requires_grad=True)
    """
    if not isinstance(requires_grad, bool):
        raise TypeError(
            "requires_grad_(): argument 'requires_grad' (position 1) must be bool, not "
            f"{type(requires_grad).__name__}"
        )
    if requires_grad and getattr(self, "_data", None).__class__ is Example:
        raise RuntimeError(NOT_INSIDE)
    set_requires_grad(self, requires_grad)
    return self
