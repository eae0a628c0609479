"""`torch.cuda.make_graphed_callables`: functions and modules whose passes are graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flambeau._core.autocast import settings
from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.autograd import Function, grad
from flambeau.autograd.grad_mode import enable_grad
from flambeau.utils import _pytree as pytree


def _graphs() -> Any:
    from flambeau.cuda import graphs

    return graphs


class _Passes:
    """The two graphs of a callable, and the tensors that they read and write."""

    def __init__(self, inputs: tuple[Any, ...], parameters: tuple[Any, ...]) -> None:
        self.inputs = inputs
        self.surface = (*inputs, *parameters)
        self.forward: Any = None
        self.backward: Any = None
        self.outputs: tuple[Any, ...] = ()
        self.spec: Any = None
        self.incoming: tuple[Any, ...] = ()
        self.gradients: tuple[Any, ...] = ()


def _is_module(function: Any) -> bool:
    return hasattr(function, "parameters") and hasattr(function, "forward")


def make_graphed_callables(
    callables: Any, sample_args: Any, num_warmup_iters: int = 3, allow_unused_input: bool = False,
    pool: Any = None,
) -> Any:  # fmt: skip
    """Callables whose forward and backward passes are replayed as graphs.

    Args:
        callables: a module or function, or a tuple of them in the order in which they run.
        sample_args: the arguments of each, with the shapes and types that all calls will have.
        num_warmup_iters: how often they run before they are captured.
        allow_unused_input: whether an input may have no influence on the outputs.
        pool: see `CUDAGraph.capture_begin`.

    Returns:
        The same callables; a module stays that object, with another forward.
    """
    if settings.enabled["cuda"] and settings.cache_enabled:
        raise RuntimeError("make_graphed_callables does not support the autocast caching. Please "
                           "set `cache_enabled=False`.")  # fmt: skip
    alone = not isinstance(callables, tuple)
    functions = (callables,) if alone else callables
    samples = (sample_args,) if alone else sample_args
    passes = [_prepared(f, args) for f, args in zip(functions, samples, strict=True)]
    _warm_up(functions, samples, passes, num_warmup_iters, allow_unused_input)
    pool = _graphs().graph_pool_handle() if pool is None else pool
    for function, args, found in zip(functions, samples, passes, strict=True):
        _capture_forward(function, args, found, pool)
    for found in reversed(passes):
        _capture_backward(found, pool, allow_unused_input)
    made = [_graphed(f, found) for f, found in zip(functions, passes, strict=True)]
    return made[0] if alone else tuple(made)


def _prepared(function: Any, args: Any) -> _Passes:
    flat = tuple(pytree.tree_leaves(args))
    if not all(isinstance(value, Tensor) for value in flat):
        raise TypeError("In the beta API, sample_args for each callable must contain only Tensors. "
                        "Other types are not allowed.")  # fmt: skip
    parameters = tuple(function.parameters()) if _is_module(function) else ()
    if _is_module(function) and any(b.requires_grad for b in function.buffers()):
        raise RuntimeError("In any :class:`~torch.nn.Module` passed to make_graphed_callables(), "
                           "only parameters may be trainable. All buffers must have "
                           "``requires_grad=False``.")  # fmt: skip
    return _Passes(flat, parameters)


def _trainable(tensors: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(t for t in tensors if isinstance(t, Tensor) and t.requires_grad)


def _warm_up(functions: Any, samples: Any, passes: list[_Passes], times: int,
             allow_unused: bool) -> None:  # fmt: skip
    from flambeau.cuda.devices import synchronize
    from flambeau.cuda.streams import Stream, StreamContext

    synchronize()
    with StreamContext(Stream()):
        for function, args, found in zip(functions, samples, passes, strict=True):
            for _ in range(times):
                with enable_grad():
                    results = _trainable(pytree.tree_leaves(function(*args)))
                if results:
                    incoming = tuple(ops.empty_like(r) for r in results)
                    grad(results, _trainable(found.surface), incoming, only_inputs=True,
                         allow_unused=allow_unused)  # fmt: skip
    synchronize()


def _capture_forward(function: Any, args: Any, found: _Passes, pool: Any) -> None:
    graphs = _graphs()
    found.forward = graphs.CUDAGraph()
    with graphs.graph(found.forward, pool=pool), enable_grad():
        outputs = function(*args)
    flat, found.spec = pytree.tree_flatten(outputs)
    found.outputs = tuple(flat)


def _capture_backward(found: _Passes, pool: Any, allow_unused: bool) -> None:
    graphs = _graphs()
    found.incoming = tuple(
        ops.empty_like(out) if out.requires_grad else None for out in found.outputs
    )
    results = _trainable(found.outputs)
    gradients: tuple[Any, ...] = ()
    if results:
        found.backward = graphs.CUDAGraph()
        incoming = tuple(i for i in found.incoming if i is not None)
        with graphs.graph(found.backward, pool=pool):
            gradients = grad(results, _trainable(found.surface), incoming, only_inputs=True,
                             allow_unused=allow_unused)  # fmt: skip
    given = iter(gradients)
    found.gradients = tuple(
        next(given, None) if t.requires_grad and gradients else None for t in found.surface
    )


def _replaying(found: _Passes) -> Any:
    """The function of autograd that replays both graphs."""

    class Graphed(Function):
        """A callable's two graphs."""

        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> Any:
            """Copy the inputs to where the graph reads them, and replay."""
            for own, given in zip(found.inputs, inputs, strict=False):
                if own.data_ptr() != given.data_ptr():
                    own.copy_(given)
            found.forward.replay()
            return tuple(out.detach() for out in found.outputs)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            """The same for the gradients."""
            for own, given in zip(found.incoming, grads, strict=True):
                if own is not None and own.data_ptr() != given.data_ptr():
                    own.copy_(given)
            if found.backward is not None:
                found.backward.replay()
            # copies: a leaf keeps the first gradient that it gets, and the next replay writes here
            return tuple(g.clone() if g is not None else None for g in found.gradients)

    return Graphed


def _graphed(function: Any, found: _Passes) -> Any:
    replaying = _replaying(found)
    parameters = found.surface[len(found.inputs) :]

    def call(*args: Any) -> Any:
        flat = pytree.tree_leaves(args)
        outputs = replaying.apply(*flat, *parameters)
        return pytree.tree_unflatten(list(outputs), found.spec)

    return _with_forward(function, call) if _is_module(function) else call


def _with_forward(module: Any, call: Callable[..., Any]) -> Any:
    """A module that replays in the mode, training or not, in which it was captured."""
    plain, mode = module.forward, module.training

    def forward(*args: Any) -> Any:
        return call(*args) if module.training == mode else plain(*args)

    module.forward = forward
    return module
