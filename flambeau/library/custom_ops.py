"""Operators from functions: `torch.library.custom_op`, and what is registered for operators.

@torch.library.custom_op("mylib::double", mutates_args=())
def double(x: torch.Tensor) -> torch.Tensor:
    return x * 2
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from flambeau._core.device import device as device_
from flambeau._core.layout import strided as STRIDED
from flambeau._ops.table.outputs import tensors_in
from flambeau._tensor.tensor import storage_of
from flambeau.library import libraries, overloads
from flambeau.library.inference import infer_schema
from flambeau.library.libraries import KEY_OF_TYPE, Library, library_of, operator_of, split_name
from flambeau.library.operators import Operator

ALIASED = (
    "{} (with implementation in {}): The output of this custom operator (1) must not also be an "
    "input to this custom operator and (2) may not alias any inputs to this custom operator or "
    "other returns. The most common way to trigger this error is if we have y = custom_op(x) and "
    "y and x are the same Tensor. Please instead return a clone of the offending output tensor(s) "
    "(e.g. return x.clone()) or refactor the custom operator to not return y."
)
NO_FAKE = (
    "There was no fake impl registered for {op!r}. This is necessary for torch.compile/export/fx "
    "tracing to work. Please use `{name}.register_fake` to add an fake impl."
)
UNEQUAL = (
    "Attempted to create a custom op with `mutates_args={}` and `schema={}. The schema suggests "
    "that the op mutates {}which is different from what was provided to us in `mutates_args`. "
    "Please make these consistent."
)


def custom_op(name: str, fn: Callable[..., Any] | None = None, /, *, mutates_args: Any,
              device_types: Any = None, schema: str | None = None,
              tags: Any = None) -> Any:  # fmt: skip
    """An operator of a program: what is called is opaque to whoever looks on or transforms.

    Args:
        name: "mylib::double".
        fn: what computes it; without, this is a decorator.
        mutates_args: the names of the arguments that it writes to, or "unknown": any.
        device_types: the devices that it is for, as "cuda"; by default all.
        schema: its schema, `(Tensor x) -> Tensor`; by default that of the annotations.
        tags: see `torch.Tag`.

    Returns:
        A `CustomOpDef`, which is called as the function is.

    Raises:
        ValueError: the annotations give no schema, or another one than `mutates_args` says.
    """

    def make(function: Callable[..., Any]) -> CustomOpDef:
        text = schema
        if text is None:
            text = infer_schema(function, mutates_args=mutates_args)
        namespace, opname = split_name(name)
        made = CustomOpDef(namespace, opname, text, function, tags)
        if schema is not None:
            _check_written(made, mutates_args, schema)
        made.register_kernel(device_types)(function)
        return made

    return make if fn is None else make(fn)


def _check_written(made: CustomOpDef, mutates_args: Any, schema: str) -> None:
    written = {p.name for p in made._operator.schema.arguments if p.written}
    if mutates_args != "unknown" and written != set(mutates_args):
        made._lib._destroy()
        raise ValueError(UNEQUAL.format(mutates_args, schema, written or "set()"))


class CustomOpDef:
    """An operator that `custom_op` has made: called as its function is."""

    def __init__(self, namespace: str, name: str, schema: str, fn: Callable[..., Any],
                 tags: Any = None) -> None:  # fmt: skip
        self._namespace, self._name = namespace, name
        self._qualname = f"{namespace}::{name}"
        self._schema, self._init_fn = schema, fn
        self.__name__ = name
        if self._qualname in MADE:
            MADE.pop(self._qualname)._lib._destroy()
        self._lib: Library = Library(namespace, "FRAGMENT")
        listed = tags if isinstance(tags, (list, tuple)) else () if tags is None else (tags,)
        self._lib.define(f"{name}{schema}", tags=(*listed, overloads.Tag.pt2_compliant_tag))
        self._operator: Operator = overloads.DEFINED[self._qualname]
        self._operator.is_custom = True
        self._operator.kernels["Meta"] = self._refuse_fake
        MADE[self._qualname] = self

    @property
    def _opoverload(self) -> Any:
        return overloads.find(self._qualname)

    def _refuse_fake(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(NO_FAKE.format(op=self, name=self._name))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._opoverload(*args, **kwargs)

    def register_kernel(self, device_types: Any, fn: Callable[..., Any] | None = None, /) -> Any:
        """What computes it on some devices: "cpu", several, or None: on all."""

        def register_(function: Callable[..., Any]) -> Callable[..., Any]:
            for kind in _kinds(device_types):
                self._operator.kernels[_key(kind)] = self._apart(function)
            return function

        return register_ if fn is None else register_(fn)

    def _apart(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function; what it returns may share no memory with what it was given."""

        def kernel(*args: Any, **kwargs: Any) -> Any:
            result = function(*args, **kwargs)
            given = {id(storage_of(t)) for t in tensors_in((*args, *kwargs.values())) if _dense(t)}
            for tensor in tensors_in([result]):
                if _dense(tensor):
                    memory = id(storage_of(tensor))
                    if memory in given:
                        raise RuntimeError(ALIASED.format(self._name, function.__module__))
                    given.add(memory)
            return result

        return kernel

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """What gives results without memory: their shapes, strides and types."""
        self._operator.kernels["Meta"] = fn
        return fn

    def register_autograd(self, backward: Callable[..., Any], /, *,
                          setup_context: Callable[..., Any] | None = None) -> None:  # fmt: skip
        """Its gradient: see `torch.library.register_autograd`."""
        register_autograd(self, backward, setup_context=setup_context)

    def register_vmap(self, func: Callable[..., Any] | None = None) -> Any:
        """Its rule for `vmap`: see `torch.library.register_vmap`."""
        return register_vmap(self, func)

    def register_torch_dispatch(self, torch_dispatch_class: Any,
                                fn: Callable[..., Any] | None = None, /) -> Any:  # fmt: skip
        """What it does for a class or mode with `__torch_dispatch__`."""
        return register_torch_dispatch(self, torch_dispatch_class, fn)

    def register_autocast(self, device_type: str, cast_inputs: Any) -> None:
        """What floating-point tensors are cast to in regions of autocast."""
        register_autocast(self, device_type, cast_inputs)

    @contextmanager
    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Iterator[None]:
        """In this region the kernel of a device is left out: the function itself is called."""
        key = _key(device_type)
        kernel = self._operator.kernels.get(key)
        if kernel is not None and not enabled:
            self._operator.kernels[key] = self._apart(self._init_fn)
        try:
            yield
        finally:
            if kernel is not None:
                self._operator.kernels[key] = kernel

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"


MADE: dict[str, CustomOpDef] = {}
"""What `custom_op` has made, by qualified name; a second one of a name takes the first one's
place."""


def _dense(tensor: Any) -> bool:
    return tensor.layout is STRIDED and type(tensor._data).__name__ == "ndarray"


def _kinds(device_types: Any) -> tuple[Any, ...]:
    if device_types is None or isinstance(device_types, str):
        return (device_types,)
    return tuple(device_types)


def _key(kind: str | None) -> str:
    if kind is None:
        return "CompositeExplicitAutograd"
    return KEY_OF_TYPE.get(kind) or device_(kind).type.upper()


# ---- for any operator of a program


def register_kernel(op: Any, device_types: Any, func: Callable[..., Any] | None = None, /, *,
                    lib: Library | None = None) -> Any:  # fmt: skip
    """What computes an operator on some devices: "cpu", several of them, or None: on all."""
    made = MADE.get(_name(op))
    if made is not None and lib is None:
        return made.register_kernel(device_types, func)
    kinds = "default" if device_types is None else device_types
    return libraries.impl(_name(op), kinds, func, lib=lib)


def _name(op: Any) -> str:
    name = getattr(op, "_qualname", None) or getattr(op, "_name", None) or str(op)
    return name.removesuffix(".default")


def register_fake(op: Any, func: Callable[..., Any] | None = None, /, *, lib: Library | None = None,
                  _stacklevel: int = 1, allow_override: bool = False) -> Any:  # fmt: skip
    """What gives an operator's results without memory, on the device "meta".

    Raises:
        RuntimeError: there is no such operator.
    """
    operator = operator_of(op)

    def register_(function: Callable[..., Any]) -> Callable[..., Any]:
        operator.kernels["Meta"] = function
        if lib is not None:
            lib.undo(partial(operator.kernels.pop, "Meta", None))
        return function

    return register_ if func is None else register_(func)


def register_autograd(op: Any, backward: Callable[..., Any], /, *,
                      setup_context: Callable[..., Any] | None = None,
                      lib: Library | None = None) -> None:  # fmt: skip
    """The gradient of an operator.

    Args:
        op: its name, an overload, or what `custom_op` has made.
        backward: `backward(ctx, *grads)` gives one gradient, or None, per argument; a list of them
            for a list of tensors.
        setup_context: `setup_context(ctx, inputs, output)` keeps on `ctx` what backward needs;
            with `keyword_only_inputs`, if the operator has such.

    Raises:
        RuntimeError: there is no such operator, or it writes to its arguments.
    """
    operator = operator_of(op)
    if operator.schema.is_mutable:
        raise RuntimeError(
            f"Cannot register autograd formula for non-functional operator {overload(operator)} "
            f"with schema {operator.schema}. Please create a functional operator and register an "
            "autograd formula for that."
        )
    operator.backward, operator.setup_context = backward, setup_context
    if lib is not None:
        lib.undo(partial(setattr, operator, "backward", None))


def overload(operator: Operator) -> Any:
    """The overload of `torch.ops` that an operator is."""
    return overloads.find(operator.name)


def register_vmap(op: Any, func: Callable[..., Any] | None = None, /, *,
                  lib: Library | None = None) -> Any:  # fmt: skip
    """The rule of an operator for `vmap`: `func(info, in_dims, *args)` gives the result for a whole
    batch, and where its examples lie. Without a rule, it is called for one after the other."""
    operator = operator_of(op)

    def register_(function: Callable[..., Any]) -> None:
        operator.batched = function
        if lib is not None:
            lib.undo(partial(setattr, operator, "batched", None))

    return register_ if func is None else register_(func)


def register_torch_dispatch(op: Any, torch_dispatch_class: Any,
                            func: Callable[..., Any] | None = None, /, *,
                            lib: Library | None = None) -> Any:  # fmt: skip
    """What an operator does for a class or mode with `__torch_dispatch__`, in place of that:
    `func(mode_or_class, func, types, args, kwargs)`."""
    operator = operator_of(op)

    def register_(function: Callable[..., Any]) -> Callable[..., Any]:
        operator.for_classes[torch_dispatch_class] = function
        if lib is not None:
            lib.undo(partial(operator.for_classes.pop, torch_dispatch_class, None))
        return function

    return register_ if func is None else register_(func)


def register_autocast(op: Any, device_type: str, cast_inputs: Any, /, *,
                      lib: Library | None = None) -> None:  # fmt: skip
    """Cast floating-point tensors in regions of autocast, and have none inside.

    Raises:
        ValueError: a device of another type than "cpu" and "cuda".
    """
    if device_type not in ("cpu", "cuda"):
        raise ValueError(f"Unknown device type: {device_type}")
    precision = operator_of(op).precision
    precision[device_type] = cast_inputs
    if lib is not None:
        lib.undo(partial(precision.pop, device_type, None))


__all__ = ["CustomOpDef", "custom_op", "library_of"]
