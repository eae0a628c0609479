"""Operators that programs define: a schema, and kernels by the key that PyTorch files them under.

A call passes, from outside to inside: autocast; autograd, with `vmap` and forward mode; modes and
classes with `__torch_dispatch__`; and then the kernel of the device that the tensors are on.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from flambeau._core import modes
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.outputs import tensors_in
from flambeau._ops.transforms import dispatching
from flambeau._tensor.tensor import Tensor
from flambeau.amp import settings as autocast
from flambeau.autograd.function import Function
from flambeau.autograd.history import bump
from flambeau.jit.ir.function import FunctionSchema
from flambeau.jit.ir.types import ListType
from flambeau.jit.ir.values import dtype_of
from flambeau.jit.operators import table
from flambeau.jit.operators.forms import layout_of, memory_format_of
from flambeau.library import overloads
from flambeau.utils._pytree import tree_flatten, tree_unflatten

KEYS = (
    "CPU", "CUDA", "XPU", "MPS", "Meta", "Python", "BackendSelect", "ADInplaceOrView",
    "Autograd", "AutogradCPU", "AutogradCUDA", "AutogradXPU", "AutogradMPS", "AutogradMeta",
    "AutogradOther", "AutogradPrivateUse1", "AutogradFunctionality", "AutocastCPU", "AutocastCUDA",
    "AutocastXPU", "AutocastMPS", "CompositeImplicitAutograd", "CompositeExplicitAutograd",
    "CompositeExplicitAutogradNonFunctional", "CompositeImplicitAutogradNestedTensor",
    "QuantizedCPU", "QuantizedCUDA", "SparseCPU", "SparseCUDA", "SparseCsrCPU", "SparseCsrCUDA",
    "MkldnnCPU", "NestedTensorCPU", "NestedTensorCUDA", "FuncTorchBatched", "Functionalize",
    "Conjugate", "Negative", "ZeroTensor", "Tracer", "PrivateUse1", "PrivateUse2", "PrivateUse3",
    "HPU", "XLA", "Lazy", "IPU", "VE", "MTIA", "MAIA", "FPGA", "Vulkan", "Metal", "Undefined",
)  # fmt: skip
"""Keys that kernels may be filed under; what is filed under one that no call here reaches is kept
and not used, as in a PyTorch without that device."""

NO_KERNEL = (
    "Could not run '{name}' with arguments from the '{key}' backend. This could be because the "
    "operator doesn't exist for this backend, or was omitted during the selective/custom build "
    "process (if using custom build). '{name}' is only available for these backends: [{known}]."
)
NO_FAKE = (
    "{}: attempted to run this operator with Meta tensors, but there was no fake impl or Meta "
    "kernel registered. You may have run into this message while using an operator with PT2 "
    "compilation APIs (torch.compile/torch.export); in order to use this operator with those APIs "
    "you'll need to add a fake impl."
)
NOT_REGISTERED = (
    "{}: an autograd kernel was not registered to the Autograd key(s) but we are trying to "
    "backprop through it. This may lead to silently incorrect behavior. This behavior is "
    "deprecated and will be removed in a future version of PyTorch. If your operator is "
    "differentiable, please ensure you have registered an autograd kernel to the correct Autograd "
    "key (e.g. DispatchKey::Autograd, DispatchKey::CompositeImplicitAutograd). If your operator is "
    "not differentiable, or to squash this warning and use the previous behavior, please register "
    "torch::CppFunction::makeFallthrough() to DispatchKey::Autograd."
)
NO_FORMULA = (
    "Trying to backward through {} but no autograd formula was registered. Please use "
    "register_autograd to add one."
)
CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "ScalarType": dtype_of, "Layout": layout_of, "MemoryFormat": memory_format_of,
}  # fmt: skip
"""Types whose values are numbers in scripts."""
ENUMERATIONS = re.compile(rf"\b({'|'.join(CONVERSIONS)})\??\s+(\w+)")


def fallthrough_kernel() -> None:
    """What `Library.impl` takes to leave a call to the kernels further inside."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


def known_key(key: str) -> str:
    """A key as it is written.

    Raises:
        RuntimeError: PyTorch has no such key.
    """
    if key not in KEYS:
        raise RuntimeError(f"could not parse dispatch key: {key}")
    return key


class Operator:
    """An operator of a program.

    Attributes:
        kernels: what computes it, by key ("CPU", "Meta", "CompositeImplicitAutograd").
        backward, setup_context: its gradient, see `torch.library.register_autograd`.
        batched: its rule for `vmap`.
        for_classes: rules for classes and modes with `__torch_dispatch__`, by class.
        precision: what floating-point tensors are cast to under autocast, by type of device.
        is_custom: it was made by `custom_op`: without a gradient, backward is an error.
    """

    def __init__(self, schema: FunctionSchema, tags: Sequence[Any] = (), *,
                 is_custom: bool = False) -> None:  # fmt: skip
        self.schema = schema
        self.tags = tuple(tags)
        self.is_custom = is_custom
        self.kernels: dict[str, Callable[..., Any]] = {}
        self.backward: Callable[..., Any] | None = None
        self.setup_context: Callable[..., Any] | None = None
        self.batched: Callable[..., Any] | None = None
        self.for_classes: dict[type, Callable[..., Any]] = {}
        self.precision: dict[str, Any] = {}
        self.function = _function_of(self)
        self.convert = _conversions(schema)
        self.written = [p.written for p in schema.arguments]

    @property
    def name(self) -> str:
        """`mylib::double`."""
        return self.schema.full_name

    def call(self, *values: Any) -> Any:
        """The result for arguments in the order of the schema."""
        given = [value if convert is None or value is None else convert(value)
                 for convert, value in zip(self.convert, values, strict=True)]  # fmt: skip
        return self.called(given)

    def called(self, values: list[Any]) -> Any:
        """The same; element types are themselves, not numbers."""
        tensors = tensors_in(values)
        kind = tensors[0].device.type if tensors else "cpu"
        precision = self.precision.get(kind)
        if precision is not None and autocast.is_autocast_enabled(kind):
            with autocast_off(kind):
                return self.called([_cast(value, precision, kind) for value in values])
        for key in (f"Autograd{kind.upper()}", "Autograd", "CompositeImplicitAutograd"):
            kernel = self.kernels.get(key)
            if kernel is not None and kernel is not fallthrough_kernel:
                return self.run(kernel, values)
        recorded = modes.grad.enabled and any(t.requires_grad for t in tensors)
        if modes.stacks.levels or (recorded and (self.backward is not None or self.is_custom)):
            return self._recorded(values)
        result = self.below(values)
        if recorded and "Autograd" not in self.kernels:
            for part in tensors_in([result]):
                if part.requires_grad:
                    part.register_hook(self._warn)  # type: ignore[attr-defined]
        return result

    def _warn(self, grad: Any) -> None:
        warnings.warn(NOT_REGISTERED.format(self.schema.name), stacklevel=2)

    def _recorded(self, values: list[Any]) -> Any:
        leaves, spec = tree_flatten(values)
        result = self.function.apply(spec, *leaves)
        return result if len(self.schema.returns) != 1 or not _is_list(self) else list(result)

    def below(self, values: list[Any]) -> Any:
        """The result where nothing is recorded: of a mode, a class, or the kernel of the device."""
        if modes.watch.active:
            overload = overloads.find(self.name)
            args, kwargs = self.arguments(values)
            taken, result = dispatching.ask(overload, values, args, kwargs, self.for_classes)
            if taken:
                return result
        return self.run(self._kernel(values), values)

    def _kernel(self, values: list[Any]) -> Callable[..., Any]:
        tensors = tensors_in(values)
        kinds = {tensor.device.type for tensor in tensors} or {_device_among(values)}
        key = "Meta" if "meta" in kinds else (kinds - {"cpu"} or {"cpu"}).pop().upper()
        for name in (key, "CompositeExplicitAutograd"):
            if name in self.kernels:
                return self.kernels[name]
        if key == "Meta":
            raise NotImplementedError(NO_FAKE.format(self.schema.name))
        known = ", ".join(self.kernels)
        raise NotImplementedError(NO_KERNEL.format(name=self.schema.name, key=key, known=known))

    def run(self, kernel: Callable[..., Any], values: list[Any]) -> Any:
        """What a kernel makes of arguments; those that stand at their defaults at the end are left
        to it, as PyTorch does."""
        args, kwargs = self.arguments(values)
        result = kernel(*args, **kwargs)
        if self.is_custom:
            for value, is_written in zip(values, self.written, strict=True):
                if is_written:
                    for tensor in tensors_in([value]):
                        bump(tensor)
        return result

    def arguments(self, values: list[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a call by position and by name."""
        return dispatching.arranged(zip(self.schema.arguments, values, strict=True))


def _is_list(operator: Operator) -> bool:
    return isinstance(operator.schema.returns[0].type, ListType)


def _device_among(values: list[Any]) -> str:
    for value in values:
        kind = getattr(value, "type", None)
        if type(value).__name__ == "device" and isinstance(kind, str):
            return kind
    return "cpu"


def _conversions(schema: FunctionSchema) -> list[Callable[[Any], Any] | None]:
    """For each argument what makes of a script's number what the program's kernel is to get."""
    text = table.SPELLED[schema.full_name]
    kinds = {name: kind for kind, name in ENUMERATIONS.findall(text)}
    return [CONVERSIONS.get(kinds.get(p.name, "")) for p in schema.arguments]


# ---- autocast


class autocast_off:
    """`with autocast_off("cpu"):` the region's precision is no matter."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __enter__(self) -> None:
        autocast.set_autocast_enabled(self.kind, False)

    def __exit__(self, *exc: object) -> None:
        autocast.set_autocast_enabled(self.kind, True)


def _cast(value: Any, precision: Any, kind: str) -> Any:
    if isinstance(value, (list, tuple)):
        return [_cast(item, precision, kind) for item in value]
    if isinstance(value, Tensor) and value.dtype.is_floating_point and value.device.type == kind:
        return ops._to_copy(value, dtype=precision)
    return value


# ---- autograd and vmap


def _function_of(operator: Operator) -> type[Function]:
    """The function that records a call: its arguments are the leaves of the operator's."""

    def forward(spec: Any, *leaves: Any) -> Any:
        with dispatching.below():
            result = operator.below(tree_unflatten(list(leaves), spec))
        return tuple(result) if isinstance(result, list) else result

    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        spec, *leaves = inputs
        ctx.spec_of_operator = spec
        if operator.setup_context is not None:
            values = tree_unflatten(list(leaves), spec)
            pairs = zip(operator.schema.arguments, values, strict=True)
            named = {p.name: value for p, value in pairs if p.keyword_only}
            given = tuple(values[: len(values) - len(named)])
            more = {"keyword_only_inputs": named} if named else {}
            operator.setup_context(ctx=ctx, inputs=given, output=output, **more)

    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        if operator.backward is None:
            raise RuntimeError(NO_FORMULA.format(overloads.find(operator.name)))
        if len(operator.schema.returns) == 1 and _is_list(operator):
            found = operator.backward(ctx, list(grads))
        else:
            found = operator.backward(ctx, *grads)
        found = found if isinstance(found, tuple) else (found,)
        return (None, *_as_leaves(operator, list(found), ctx.spec_of_operator))

    def vmap(info: Any, in_dims: Any, spec: Any, *leaves: Any) -> Any:
        values = tree_unflatten(list(leaves), spec)
        dims = tree_unflatten(list(in_dims[1:]), spec)
        if operator.batched is None:
            return _one_by_one(operator, info.batch_size, dims, values)
        args, kwargs = operator.arguments(values)
        return operator.batched(info, tuple(dims[: len(args)]), *args, **kwargs)

    head, _, tail = operator.schema.full_name.partition("::")
    name = f"GeneratedBackwardFor_{head}_{tail.replace('.', '_')}"
    name += "" if operator.schema.overload else "_default"
    parts: dict[str, Any] = {"forward": forward, "setup_context": setup_context,
                             "backward": backward, "vmap": vmap}  # fmt: skip
    return type(name, (Function,), {key: staticmethod(part) for key, part in parts.items()})


def _as_leaves(operator: Operator, grads: list[Any], spec: Any) -> list[Any]:
    """Gradients of arguments as those of their leaves: a list of them for a list of tensors."""
    grads += [None] * (len(operator.schema.arguments) - len(grads))
    leaves: list[Any] = []
    for child, grad in zip(spec.children(), grads, strict=True):
        if grad is None:
            leaves += [None] * child.num_leaves
        elif isinstance(grad, (list, tuple)):
            leaves += grad
        else:
            leaves.append(grad)
    return leaves


def _one_by_one(operator: Operator, size: int, dims: list[Any], values: list[Any]) -> Any:
    """The operator for one example after the other: what `vmap` does without a rule."""
    leaves, spec = tree_flatten(values)
    places, _ = tree_flatten(dims, is_leaf=lambda item: item is None)
    results = []
    for number in range(size):
        one = [leaf if place is None else leaf.select(place, number)
               for leaf, place in zip(leaves, places, strict=True)]  # fmt: skip
        result = operator.called(tree_unflatten(one, spec))
        results.append(result if isinstance(result, (tuple, list)) else (result,))
    stacked = tuple([ops.stack(list(parts)) for parts in zip(*results, strict=True)])
    if len(operator.schema.returns) == 1 and not _is_list(operator):
        return stacked[0], 0
    return stacked, (0,) * len(stacked)
