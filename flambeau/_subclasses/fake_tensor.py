"""Fake tensors: what a program would do, without memory and without the devices it names.

    with FakeTensorMode() as mode:
        x = torch.empty(2, 3, device="cuda")          # there need be no GPU
        (x @ x.T).shape, (x @ x.T).device             # (2, 2), cuda:0
    mode.from_tensor(weight)                          # one like a real tensor

A fake tensor is a wrapper (`_tensor/wrappers.py`) over the layout of a tensor on the device "meta".
The mode sees operators below autograd, runs each on that device (`_ops/transforms/meta.py`), and
says on which device the result would be.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from flambeau._core import modes
from flambeau._core.device import META
from flambeau._core.layout import strided
from flambeau._core.missing import NotImplementedInFlambeau
from flambeau._ops.table.dims import wrap_dim
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.number_operands import number_behind
from flambeau._ops.table.outputs import tensors_in
from flambeau._ops.transforms import meta as on_meta
from flambeau._subclasses import devices, open_results, symbolic_calls, symbolic_results
from flambeau._subclasses.errors import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorDeviceMismatchError,
    UnsupportedFakeTensorException,
    UnsupportedOperatorException,
)
from flambeau._tensor import meta, symbolic_arrays, wrappers
from flambeau._tensor.tensor import Tensor, constructors, wrap
from flambeau.autograd.history import join_family
from flambeau.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from flambeau.utils._pytree import tree_leaves, tree_map

__all__ = ["DataDependentOutputException", "DynamicOutputShapeException", "FakeTensor",
           "FakeTensorDeviceMismatchError", "FakeTensorMode", "UnsupportedFakeTensorException",
           "UnsupportedOperatorException", "is_fake", "unset_fake_temporarily"]  # fmt: skip

NOT_ONE = "a Tensor with {} elements cannot be converted to Scalar"
NOT_FAKE = (
    "Please convert all Tensors to FakeTensors first or instantiate FakeTensorMode with "
    "'allow_non_fake_inputs'. Found in {}"
)


class FakeTensor(Tensor):
    """A tensor with a shape, strides, a type and a device, and without numbers.

    Args:
        fake_mode: the mode that it belongs to.
        elem: a tensor on the device "meta": the layout.
        device: the device that it says it is on.
        constant: the tensor whose number it stands for, where that is known.
    """

    fake_mode: FakeTensorMode
    constant: Any
    _mode_key = None

    def __new__(cls, fake_mode: FakeTensorMode, elem: Any, device: Any, constant: Any = None
                ) -> Any:  # fmt: skip
        """One over the layout of a tensor on "meta", which it shares with views."""
        result = wrappers.over_meta(cls, elem._data, devices.with_index(device))
        result._requires_grad = elem._requires_grad
        result.fake_mode = fake_mode
        result.constant = constant
        return result

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Made by `__new__`."""

    @property
    def fake_device(self) -> Any:
        """The device that it says it is on."""
        return self.device

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Outside of any mode: as in the mode that the first of the tensors belongs to."""
        kwargs = kwargs or {}
        for tensor in tensors_in((*args, *kwargs.values())):
            if isinstance(tensor, FakeTensor):
                with tensor.fake_mode:
                    return func(*args, **kwargs)
        return NotImplemented

    @classmethod
    def _run_row(cls, op: Any, run: Any, args: Any, kwargs: Any = None) -> Any:
        """A row that ATen has no operator for, on the device "meta": `run` does it."""
        kwargs = kwargs or {}
        fakes = [t for t in tensors_in((*args, *kwargs.values())) if isinstance(t, FakeTensor)]
        return fakes[0].fake_mode.run(op, run, args, kwargs)

    @property
    def is_cuda(self) -> bool:
        """Whether it says that it is on a GPU."""
        return self.device.type == "cuda"

    def stride(self, dim: int | None = None, *, axis: int | None = None) -> Any:
        """Strides in elements, or the stride of one dim; symbols where sizes are."""
        layout = symbolic_arrays.layout_of(self._data)
        if layout is None:
            return Tensor.stride(self, dim, axis=axis)  # type: ignore[attr-defined]
        dim = axis if dim is None else dim
        return layout.steps if dim is None else layout.steps[wrap_dim(dim, len(layout.steps))]

    def storage_offset(self) -> Any:
        """How many elements into its storage it starts."""
        layout = symbolic_arrays.layout_of(self._data)
        if layout is None:
            return Tensor.storage_offset(self)  # type: ignore[attr-defined]
        return layout.offset

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        return Tensor.__repr__(self, tensor_contents=tensor_contents or "...")  # type: ignore[call-arg]

    def tolist(self) -> Any:
        """The numbers, where they are known.

        Raises:
            DataDependentOutputException: they are not.
        """
        if not self.dim():  # type: ignore[attr-defined]
            return self.item()  # type: ignore[attr-defined]
        return [part.tolist() for part in self.unbind()]  # type: ignore[attr-defined]

    def __deepcopy__(self, memo: Any) -> Any:
        if id(self) not in memo:
            with _disable_current_modes():
                layout = meta_of(self).clone()  # type: ignore[attr-defined]
            copied = FakeTensor(self.fake_mode, layout, self.device, self.constant)
            copied._requires_grad = self._requires_grad
            copied._is_param = self._is_param
            memo[id(self)] = copied
        return memo[id(self)]


def is_fake(x: object) -> bool:
    """Whether a tensor is fake.

    >>> import flambeau as torch
    >>> with torch._subclasses.FakeTensorMode():
    ...     torch._subclasses.fake_tensor.is_fake(torch.ones(2))
    True
    """
    return isinstance(x, FakeTensor)


@contextmanager
def unset_fake_temporarily() -> Iterator[FakeTensorMode | None]:
    """`with unset_fake_temporarily() as mode:` a region in which tensors are real again."""
    stack = modes.stacks.dispatch_modes
    found = [mode for mode in stack if isinstance(mode, FakeTensorMode)]
    modes.stacks.dispatch_modes = [mode for mode in stack if not isinstance(mode, FakeTensorMode)]
    try:
        yield found[-1] if found else None
    finally:
        modes.stacks.dispatch_modes = stack


def meta_of(fake: Any) -> Tensor:
    """The layout of a fake tensor, as a tensor on "meta" over the same addresses."""
    result: Tensor = wrap(np.ndarray.view(fake._data, meta.Meta))
    return result


class FakeTensorMode(TorchDispatchMode):
    """`with FakeTensorMode():` new tensors are fake, and operators say what would come of them.

    Args:
        allow_fallback_kernels: taken for the sake of programs; every operator that runs on zeros
            runs here, too.
        allow_non_fake_inputs: whether real tensors may go into calls; they stand for fake ones.
        shape_env: the environment of sizes that are symbols; None where sizes are numbers.
        static_shapes: whether `from_tensor` keeps numbers; by default without `shape_env`.
        export: taken for the sake of programs.

    >>> import flambeau as torch
    >>> with torch._subclasses.FakeTensorMode():
    ...     x = torch.empty(2, 3, device="cuda")
    ...     x @ x.T
    FakeTensor(..., device='cuda:0', size=(2, 2))
    """

    def __init__(self, *, allow_fallback_kernels: bool = True, allow_non_fake_inputs: bool = False,
                 shape_env: Any = None, static_shapes: bool | None = None,
                 export: bool = False) -> None:  # fmt: skip
        super().__init__()
        self.allow_fallback_kernels = allow_fallback_kernels
        self.allow_non_fake_inputs = allow_non_fake_inputs
        self.shape_env = shape_env
        self.static_shapes = shape_env is None if static_shapes is None else static_shapes
        self.export = export
        self._known: dict[int, tuple[Any, FakeTensor]] = {}

    # ---- of real tensors

    def from_tensor(self, tensor: Any, *, static_shapes: bool | None = None, source: Any = None,
                    symbolic_context: Any = None, trace: bool = True) -> Any:  # fmt: skip
        """A fake tensor laid out as a real one, on its device; the same one each time.

        Raises:
            UnsupportedFakeTensorException: a sparse tensor.
        """
        known = self._known.get(id(tensor))
        if known is not None and known[0]() is tensor:
            return known[1]
        layout: Any = layout_of(tensor)
        fake = FakeTensor(self, layout, tensor.device)
        fake._storage = layout.untyped_storage()
        fake._requires_grad = tensor.requires_grad
        fake._is_param = tensor._is_param
        if self.shape_env is not None and not (
            self.static_shapes if static_shapes is None else static_shapes
        ):
            found = self.shape_env.create_symbolic_sizes_strides_storage_offset(
                tensor, source, symbolic_context=symbolic_context
            )
            self._lay_out(fake, symbolic_arrays.Layout(*found))
        forget = self._known.pop
        key = id(tensor)
        self._known[key] = (weakref.ref(tensor, lambda _: forget(key, None)), fake)
        return fake

    def _lay_out(self, fake: Any, layout: Any) -> None:
        """Give a fake tensor sizes that may be symbols."""
        if layout is None or symbolic_calls.is_laid_out(fake, layout):
            return
        if layout.is_symbolic:
            fake._data = symbolic_arrays.with_layout(fake._data, layout)

    def _own(self, fake: FakeTensor) -> FakeTensor:
        if fake.fake_mode is not self:
            raise AssertionError(
                f"Mixing fake modes NYI x.fake_mode={fake.fake_mode} vs self={self}"
            )
        return fake

    # ---- calls

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """The call on the device "meta", and its results as fake tensors."""
        kwargs = kwargs or {}
        if func._opname == "lift_fresh":
            return self._lifted(args[0])
        args, kwargs = self._converted(func, args, kwargs)
        fakes = tensors_in((*args, *kwargs.values()))
        written = written_by(func, args, kwargs)
        known = self._by_constants(func, args, kwargs, fakes, written)
        if known is not NotImplemented:
            return known
        if func._opname == "_local_scalar_dense" and fakes[0]._data.size != 1:
            raise RuntimeError(NOT_ONE.format(fakes[0]._data.size))
        unknown = open_results.of_call(self.shape_env, func, args, fakes)
        if unknown is not NotImplemented:
            return tree_map(lambda value: self._open(value, fakes), unknown)
        if not _gives_tensors(func):
            raise DataDependentOutputException(func)
        place = devices.of_result(func, args, kwargs, fakes)
        return self._on_meta(func, place, args, kwargs, fakes, written)

    def run(self, op: Any, function: Any, args: Any, kwargs: Any) -> Any:
        """What a function for a row that ATen does not know makes of fake tensors, and of those
        that formulas have made beside them."""
        args, kwargs = tree_map(lambda value: self._fake_input(value) if _is_real(value) else value,
                                (args, kwargs))  # fmt: skip
        fakes = tensors_in((*args, *kwargs.values()))
        place = devices.common(fakes)
        try:
            return self._on_meta(function, place, args, kwargs, fakes, ())
        except DynamicOutputShapeException as error:
            packet = constructors["operator_of_aten"](op.name.lstrip("_"))
            raise DynamicOutputShapeException(packet and packet.default or op) from error

    def _on_meta(self, func: Any, place: Any, args: Any, kwargs: Any, fakes: Any,
                 written: Any) -> Any:  # fmt: skip
        """A call on the device "meta", its results on a device."""
        given = args, kwargs
        has_symbols = self.shape_env is not None and symbolic_results.symbols_in(given)
        with _disable_current_modes():
            metas = {id(fake): meta_of(fake) for fake in fakes}
            args, kwargs = _replaced(given, metas, self.shape_env if has_symbols else None)
            result = _run(func, args, kwargs)
            layouts = []
            if has_symbols:
                after = result, [metas[id(fake)] for fake in written]
                layouts = symbolic_calls.layouts(
                    self.shape_env, func, _run, given, fakes, written, after
                )
        for fake in written:
            fake.constant = None
            _take_layout(fake, metas[id(fake)])
        same = {id(metas[id(fake)]): fake for fake in fakes}
        result = tree_map(lambda value: self._fake_result(value, place, same), result)
        for fake, layout in zip(tree_leaves((result, written)), layouts, strict=False):
            self._lay_out(fake, layout)
        if getattr(func, "is_view", False):
            _join(fakes[0], tensors_in((result,)))
        return result

    def _converted(self, func: Any, args: Any, kwargs: Any) -> Any:
        return tree_map(lambda value: self._checked(value, func, args, kwargs), (args, kwargs))

    def _lifted(self, tensor: Any) -> Any:
        """A new tensor of data: fake, and its number known if it is a single one."""
        fake = self._fake_input(tensor)
        if tensor.numel() == 1 and tensor.device.type != "meta":
            fake.constant = tensor.detach()
        return fake

    def _checked(self, value: Any, func: Any, args: Any, kwargs: Any) -> Any:
        value = number_behind(value)
        if not isinstance(value, Tensor):
            return value
        if isinstance(value, FakeTensor):
            return self._own(value)
        if isinstance(value._data, wrappers.Wrapped):
            return FakeTensor(self, meta_of(value), value.device)  # one without its class
        if value.dim() == 0 and value.device.type == "cpu":  # type: ignore[attr-defined]
            return self._lifted(value)  # rows make such tensors of numbers
        if not self.allow_non_fake_inputs:
            raise AssertionError(NOT_FAKE.format(_call_text(func, args, kwargs)))
        return self._fake_input(value)

    def _fake_input(self, tensor: Any) -> FakeTensor:
        return FakeTensor(self, layout_of(tensor), tensor.device)

    def _open(self, value: Any, fakes: Any) -> Any:
        """A result with a size that only elements tell, as a fake tensor."""
        if not isinstance(value, open_results.Open):
            return value
        env = self.shape_env
        with _disable_current_modes():
            numbers = [symbolic_results.number_for(env, size) for size in value.sizes]
            steps = [symbolic_results.number_for(env, step) for step in value.steps]
            whole: Any = wrap(meta.empty(numbers, steps, value.dtype.numpy_dtype))
        fake = FakeTensor(self, whole, devices.common(fakes))
        self._lay_out(fake, symbolic_arrays.Layout(tuple(value.sizes), tuple(value.steps)))
        return fake

    def _fake_result(self, value: Any, place: Any, same: dict[int, Any]) -> Any:
        if not isinstance(value, Tensor):
            return value
        return same[id(value)] if id(value) in same else FakeTensor(self, value, place)

    def _by_constants(self, func: Any, args: Any, kwargs: Any, fakes: Any, written: Any) -> Any:
        """The result where all numbers are known, and it is a single one; else NotImplemented."""
        if not fakes or "device" in kwargs or any(fake.constant is None for fake in fakes):
            return NotImplemented
        reals = {id(fake): fake.constant for fake in fakes}
        with _disable_current_modes():
            args, kwargs = _replaced((args, kwargs), reals)
            result = func(*args, **kwargs)
        if written or not isinstance(result, Tensor):
            same = {id(real): fake for fake, real in zip(fakes, reals.values(), strict=True)}
            return tree_map(lambda value: same.get(id(value), value), result)
        return self._lifted(result)


def _is_real(value: Any) -> bool:
    return isinstance(value, Tensor) and not isinstance(value, FakeTensor)


def _run(func: Any, args: Any, kwargs: Any) -> Any:
    """A call on "meta".

    Raises:
        DynamicOutputShapeException: numbers decide on the shape.
        UnsupportedOperatorException: the operator cannot run there.
    """
    try:
        if not devices.is_told(func):
            return func(*args, **kwargs)
        told = {name: value for name, value in kwargs.items() if name not in devices.WHERE}
        with META:
            return func(*args, **told)
    except NotImplementedInFlambeau:
        raise
    except NotImplementedError as error:
        kind = DynamicOutputShapeException
        if on_meta.DEPENDS not in str(error):
            kind = UnsupportedOperatorException  # type: ignore[assignment]
        raise kind(func) from error


def _replaced(tree: Any, twins: dict[int, Any], env: Any = None) -> Any:
    """Twins for tensors, and, in an environment of symbols, their numbers."""

    def replaced(value: Any) -> Any:
        if isinstance(value, Tensor):
            return twins.get(id(value), value)
        return value if env is None else symbolic_results.number_for(env, value)

    return tree_map(replaced, tree)


def _gives_tensors(func: Any) -> bool:
    """Whether an operator's results are tensors, by its schema."""
    returns = func._schema.returns
    return not returns or any("Tensor" in str(result.type) for result in returns)


def written_by(func: Any, args: Any, kwargs: Any) -> list[Any]:
    """The fake tensors that a call writes to."""
    found = []
    for index, parameter in enumerate(func._schema.arguments):
        if "!" in (parameter.alias or ""):
            value = args[index] if index < len(args) else kwargs.get(parameter.name)
            found += tensors_in((value,))
    return found


def _join(base: Any, views: list[Any]) -> None:
    """Tell views which tensor's memory they would share."""
    for view in views:
        if base._root is None:
            view._root = view._base = base
        else:
            join_family(base, view)


def _take_layout(fake: Any, layout: Any) -> None:
    """After a write that gives a tensor another shape: `resize_`, `t_`."""
    old, new = np.ndarray.view(fake._data, np.ndarray), layout._data
    if (old.shape, old.strides) != (new.shape, new.strides):
        fake._data = wrappers.with_place(np.ndarray.view(new, wrappers.Wrapped), fake.device)


def layout_of(tensor: Any) -> Tensor:
    """A tensor on "meta" laid out as another, in a storage of the same size.

    Raises:
        UnsupportedFakeTensorException: a sparse tensor.
    """
    if tensor.layout is not strided:
        raise UnsupportedFakeTensorException("fake tensors of sparse tensors are missing")
    with _disable_current_modes():
        if isinstance(tensor._data, meta.Meta):
            return tensor  # type: ignore[no-any-return]
        if isinstance(tensor._data, wrappers.Wrapped):
            return meta_of(tensor)
        count = tensor.untyped_storage().nbytes() // tensor.element_size()
        whole: Any = ops.empty(count, dtype=tensor.dtype, device="meta")
        layout = tuple(tensor.shape), tensor.stride(), tensor.storage_offset()
        return whole.as_strided(*layout)  # type: ignore[no-any-return]


def _call_text(func: Any, args: Any, kwargs: Any) -> str:
    """`aten.add.Tensor(FakeTensor(..., size=(3,)), tensor([...], size=(3,)))`."""
    parts = [_value_text(value) for value in args]
    parts += [f"{name}={_value_text(value)}" for name, value in kwargs.items()]
    return f"{func}({', '.join(parts)})"


def _value_text(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_value_text, value))}]"
    if isinstance(value, Tensor) and not isinstance(value, FakeTensor):
        with _disable_current_modes():
            return value.__repr__(tensor_contents="[...]")  # type: ignore[call-arg, no-any-return]
    return repr(value)
