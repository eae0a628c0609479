"""Changing all of a module: dtype, device, mode, gradients."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from flambeau.__future__ import (
    get_overwrite_module_params_on_conversion,
    get_swap_module_params_on_conversion,
)
from flambeau._core import dtype as dt
from flambeau._core.missing import missing
from flambeau._ops.copying.to_arguments import parse_to
from flambeau._ops.table.namespace import ops
from flambeau._tensor.meta import NO_DATA
from flambeau._tensor.swapping import swap_tensors
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.grad_mode import no_grad
from flambeau.nn.parameter import Parameter

Self = TypeVar("Self", bound="ModuleConversion")

COMPLEX_WARNING = (
    "Complex modules are a new feature under active development whose design may change, and some "
    "modules might not work as expected when using complex tensors as parameters or buffers. "
    "Please file an issue at https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml "
    "if a complex module does not work as expected."
)
REPLICA = (
    "Calling .zero_grad() from a module created with nn.DataParallel() has no effect. The "
    "parameters are copied (in a differentiable manner) from the original module. This means they "
    "are not leaf nodes in autograd and so don't accumulate gradients. If you need gradients in "
    "your forward method, consider using autograd.grad instead."
)


USE_TO_EMPTY = ("Please use torch.nn.Module.to_empty() instead of torch.nn.Module.to() when moving "
                "module from meta to a different device.")  # fmt: skip


class ModuleConversion:
    """The part of Module that changes its parameters and buffers, and its children's."""

    training: bool
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]
    children: Callable[[], Iterator[Any]]
    parameters: Callable[[], Iterator[Parameter]]

    def apply(self: Self, fn: Callable[[Any], None]) -> Self:
        """Call `fn` on every module, children first."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def _apply(self: Self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Replace the data of all parameters, gradients and buffers by what `fn` makes of them.

        `torch.__future__` tells whether parameters get new data, are swapped or replaced.
        """
        if recurse:
            for module in self.children():
                module._apply(fn)
        for name, parameter in self._parameters.items():
            if parameter is not None:
                _convert(self, name, parameter, fn)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(self: Self, *args: Any, **kwargs: Any) -> Self:
        """Change dtype, device or memory format in place: `to(dtype)`, `to(device)`, `to(tensor)`.

        Integer tensors keep their dtype.
        """
        dtype, place, copy, memory_format = parse_to(args, kwargs)
        if copy:
            raise RuntimeError(".to() does not accept copy argument")
        if dtype is not None:
            if not (dtype.is_floating_point or dtype.is_complex):
                raise TypeError(
                    "nn.Module.to only accepts floating point or complex dtypes, but got desired "
                    f"dtype={dtype}"
                )
            if dtype.is_complex:
                warnings.warn(COMPLEX_WARNING, stacklevel=2)

        def convert(tensor: Tensor) -> Tensor:
            if tensor.is_meta and place is not None and place.type != "meta":
                raise NotImplementedError(f"{NO_DATA} {USE_TO_EMPTY}")
            wanted = dtype if _is_inexact(tensor) else None
            if memory_format is not None and tensor.dim() in (4, 5):
                return tensor.to(place, dtype=wanted, memory_format=memory_format)
            return tensor.to(place, dtype=wanted)

        return self._apply(_named("to", convert))

    def to_empty(self: Self, *, device: Any, recurse: bool = True) -> Self:
        """New memory, not initialised, for all parameters and buffers."""
        empty = _named("to_empty", lambda tensor: ops.empty_like(tensor, device=device))
        return self._apply(empty, recurse=recurse)

    def type(self: Self, dst_type: dt.dtype | str) -> Self:
        """Cast all parameters and buffers, integers too."""
        return self._apply(_named("type", lambda tensor: tensor.type(dst_type)))

    def _cast_floating(self: Self, element: dt.dtype, method: str) -> Self:
        cast = _named(method, lambda t: t.to(element) if t.dtype.is_floating_point else t)
        return self._apply(cast)

    def float(self: Self) -> Self:
        """Cast floating point parameters and buffers to float32."""
        return self._cast_floating(dt.float32, "float")

    def double(self: Self) -> Self:
        """Cast floating point parameters and buffers to float64."""
        return self._cast_floating(dt.float64, "double")

    def half(self: Self) -> Self:
        """Cast floating point parameters and buffers to float16."""
        return self._cast_floating(dt.float16, "half")

    def bfloat16(self: Self) -> Self:
        """Cast floating point parameters and buffers to bfloat16.

        Raises ValueError for parameters without a shape: of the casts, this one is not for them.
        """
        cast = _named("bfloat16", lambda t: t.bfloat16() if t.dtype.is_floating_point else t)
        return self._apply(cast)

    def cpu(self: Self) -> Self:
        """Move everything to the CPU."""
        return self._apply(_named("cpu", lambda tensor: tensor.cpu()))

    def cuda(self: Self, device: Any = None) -> Self:
        """Move everything to the GPU; raises where there is none."""
        return self._apply(_named("cuda", lambda tensor: tensor.cuda(device)))

    def ipu(self: Self, device: Any = None) -> Self:
        """Raises: there is no such device."""
        return self._to_device("ipu", device)

    def xpu(self: Self, device: Any = None) -> Self:
        """Raises: there is no such device."""
        return self._to_device("xpu", device)

    def mtia(self: Self, device: Any = None) -> Self:
        """Raises: there is no such device."""
        return self._to_device("mtia", device)

    def _to_device(self: Self, kind: str, index: Any) -> Self:
        return self.to(kind if index is None else f"{kind}:{index}")

    def train(self: Self, mode: bool = True) -> Self:
        """Set training mode, which Dropout, BatchNorm and the like look at."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self: Self) -> Self:
        """Set evaluation mode: `train(False)`."""
        return self.train(False)

    def requires_grad_(self: Self, requires_grad: bool = True) -> Self:
        """Set whether gradients are wanted for all parameters."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or set them to 0."""
        if getattr(self, "_is_replica", False):
            warnings.warn(REPLICA, stacklevel=2)
        for parameter in self.parameters():
            grad = parameter.grad
            if grad is not None and set_to_none:
                parameter.grad = None
            elif grad is not None:
                _forget_history(grad)
                grad.zero_()

    def share_memory(self: Self) -> Self:
        """Move all tensors to memory that other processes see."""
        return self._apply(_named("share_memory", lambda tensor: tensor.share_memory_()))

    def _replicate_for_data_parallel(self: Self) -> Self:
        """A copy with tables of its own and without parameters, which the caller puts in."""
        replica = object.__new__(type(self))
        vars(replica).update(vars(self))
        vars(replica).update(
            _parameters={},
            _buffers=self._buffers.copy(),
            _modules=self._modules.copy(),
            _is_replica=True,
        )
        return replica

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile the forward: raises while `torch.compile` is missing, but for `disable=True`."""
        if not kwargs.get("disable"):
            missing("flambeau", "compile")


def _named(method: str, fn: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """What a method hands to `_apply`, under the name that it has in PyTorch: modules with an
    `_apply` of their own tell conversions apart by it (torchmetrics keeps its sums' types so)."""
    fn.__qualname__ = f"Module.{method}.<locals>.{fn.__name__}"
    return fn


def _convert(module: Any, name: str, parameter: Any, fn: Callable[[Tensor], Tensor]) -> None:
    """Bring what a function makes of a parameter and of its gradient into a module."""
    with no_grad():
        applied = fn(parameter)
    _check_tensor(applied)
    same_kind = parameter.layout is applied.layout
    if get_swap_module_params_on_conversion():
        _swap_in(module, name, parameter, applied, fn)
    elif get_overwrite_module_params_on_conversion() or not same_kind:
        _put_new(module, name, parameter, applied, fn)
    else:
        parameter.data = applied
        if parameter.grad is not None:
            with no_grad():
                applied = fn(parameter.grad)
            _check_tensor(applied)
            if parameter.grad.is_sparse:
                parameter.grad = applied
            else:
                parameter.grad.data = applied


def _check_tensor(applied: Any) -> None:
    if not isinstance(applied, Tensor):
        raise TypeError(
            "_has_compatible_shallow_copy_type(): argument 'from' (position 2) must be Tensor, "
            f"not {type(applied).__name__}"
        )


def _swap_in(module: Any, name: str, parameter: Any, applied: Any, fn: Any) -> None:
    """Swap a parameter and its gradient with their successors; the objects stay."""
    grad = parameter.grad
    parameter.grad = None
    place = f"{module._get_name()}.{name}"
    try:
        swap_tensors(parameter, Parameter(applied, requires_grad=parameter.requires_grad))
    except Exception as error:
        parameter.grad = grad
        raise RuntimeError(f"_apply(): Couldn't swap {place}") from error
    if grad is None:
        return
    with no_grad():
        applied = fn(grad)
    try:
        swap_tensors(grad, applied.requires_grad_(grad.requires_grad))
    except Exception as error:
        raise RuntimeError(f"_apply(): Couldn't swap {place}.grad") from error
    parameter.grad = grad


def _put_new(module: Any, name: str, parameter: Any, applied: Any, fn: Any) -> None:
    """Put a new parameter in the place of an old one."""
    made = Parameter(applied, requires_grad=parameter.requires_grad)
    module._parameters[name] = made
    if parameter.grad is None:
        return
    with no_grad():
        applied = fn(parameter.grad)
    made.grad = applied.requires_grad_(parameter.grad.requires_grad)


def _is_inexact(tensor: Tensor) -> bool:
    return tensor.dtype.is_floating_point or tensor.dtype.is_complex


def _forget_history(grad: Tensor) -> None:
    if grad.grad_fn is None:
        grad.requires_grad_(False)
    else:
        grad.detach_()
