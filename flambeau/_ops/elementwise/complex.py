"""Complex numbers: parts, conjugates, angles, and views as pairs of real numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._compiler import expr as E
from flambeau._compiler.primitives import add_primitive
from flambeau._core import dtype as dt
from flambeau._core import parts
from flambeau._ops.table.binder import explained, require_tensor
from flambeau._ops.table.bits import is_unwatched, of_memory
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import InAten, composite, pointwise, view
from flambeau._ops.table.outputs import FOUND
from flambeau._ops.table.scalars import scalar_array
from flambeau._ops.views.geometry import without_elements
from flambeau._runtime.cpu import address, over, owner_of
from flambeau._tensor.bits import BitTensor, among, method_of_bits
from flambeau._tensor.tensor import Tensor, method


def _pair(real: Any, imag: Any) -> Any:
    return ops._complex(real, imag)


@view("_real(Tensor(a) self) -> Tensor(a)", node="SelectBackward0", method=False, backward={
    "self": lambda grad: _pair(grad, ops.zeros_like(grad)),
})  # fmt: skip
def real_part(data: np.ndarray) -> np.ndarray:
    """The real parts, over the same memory."""
    return parts.real_part(data)


@view("_imag(Tensor(a) self) -> Tensor(a)", node="SelectBackward0", method=False,
      also_saved=("self_shape",), saved_names={"self_shape": None}, saved_facts={
    "dim": lambda values: len(values["self_shape"]),
    "index": 1,
    "self_sym_sizes": lambda values: (*values["self_shape"], 2),
}, backward={
    "self": lambda grad: _pair(ops.zeros_like(grad), grad),
})  # fmt: skip
def imaginary_part(data: np.ndarray) -> np.ndarray:
    """The imaginary parts, over the same memory."""
    return parts.imaginary_part(data)


@composite("real(Tensor(a) self) -> Tensor(a)", bare=True, method=False)
def real(input: Tensor) -> Any:
    """The real part: a view of a complex tensor; a real tensor itself.

    The shape stays.

    >>> import flambeau as torch
    >>> torch.real(torch.tensor([1 + 2j]))
    tensor([1.])
    """
    try:
        data = input._data if input._stored is None else input._stored
    except AttributeError as error:
        raise explained(real, (input,), error) from None
    if data.dtype.kind not in "cW":
        return input
    return ops._real(ops.conj(input) if input._conjugated else input)


@composite("imag(Tensor(a) self) -> Tensor(a)", bare=True, method=False)
def imag(input: Tensor) -> Any:
    """The imaginary part: a view of a complex tensor.

    The shape stays.

    >>> import flambeau as torch
    >>> torch.imag(torch.tensor([1 + 2j]))
    tensor([2.])
    """
    try:
        data = input._data if input._stored is None else input._stored
    except AttributeError as error:
        raise explained(imag, (input,), error) from None
    if data.dtype.kind not in "cW":
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return ops._imag(ops._neg_view(ops.conj(input)) if input._conjugated else input)


def _set_real(self: Tensor, value: Any) -> None:
    _assign(real.body(self), value)


def _set_imag(self: Tensor, value: Any) -> None:
    _assign(imag.body(self), value)


def _assign(part: Any, value: Any) -> None:
    """Write a tensor, or a number that has to fit, to a part."""
    if isinstance(value, Tensor):
        part.copy_(value)
    else:
        part.fill_(scalar_array(value, part._data.dtype).item())


_REAL = """The real part, of the same shape: a view of a complex tensor, and a real one itself.

What is assigned to it is written into the tensor.

>>> import flambeau as torch
>>> x = torch.tensor([1 + 2j])
>>> x.real = 5
>>> x, x.real
(tensor([5.+2.j]), tensor([5.]))
"""
_IMAG = """The imaginary part, of the same shape: a view of a complex tensor.

What is assigned to it is written into the tensor. Raises RuntimeError for a real tensor.

>>> import flambeau as torch
>>> x = torch.tensor([1 + 2j])
>>> x.imag = 5
>>> x, x.imag
(tensor([1.+5.j]), tensor([5.]))
"""

Tensor.real = property(lambda self: real.body(self), _set_real, doc=_REAL)  # type: ignore[attr-defined]
Tensor.imag = property(lambda self: imag.body(self), _set_imag, doc=_IMAG)  # type: ignore[attr-defined]


@composite("view_as_real(Tensor(a) self) -> Tensor(a)", method=False)
def view_as_real(input: Tensor) -> Any:
    """A complex tensor as a real one whose last dim holds (real, imaginary).

    >>> import flambeau as torch
    >>> torch.view_as_real(torch.tensor([1.0 + 2.0j]))
    tensor([[1., 2.]])
    """
    if getattr(input, "_conjugated", False) and among([input]):
        raise RuntimeError(UNRESOLVED)
    return ops._view_as_real(input)


UNRESOLVED = (
    "view_as_real doesn't work on unresolved conjugated tensors.  To resolve the conjugate tensor "
    "so you can view it as real, use self.resolve_conj(); however, be warned that the resulting "
    "tensor will NOT alias the original."
)


@view("_view_as_real(Tensor(a) self) -> Tensor(a)", node="ViewAsRealBackward0", method=False,
      function=False, backward={
    "self": lambda grad: ops.view_as_complex(grad.contiguous()),
})  # fmt: skip
def view_as_reals(data: np.ndarray) -> np.ndarray:
    """A complex tensor as a real one whose last dim holds (real, imaginary)."""
    if data.dtype.kind not in "cW":
        raise RuntimeError("view_as_real is only supported for complex tensors")
    part = parts.real_part(data)
    shape, strides = (*data.shape, 2), (*data.strides, part.itemsize)
    return _reinterpreted(data, part, shape, strides)


def _reinterpreted(data: np.ndarray, like: np.ndarray, shape: Any, strides: Any) -> np.ndarray:
    """An array of another type over the same memory."""
    owner = owner_of(data)
    if not data.size:
        return without_elements(data, shape, strides, element=like.dtype)
    if not owner.flags.c_contiguous:
        return np.lib.stride_tricks.as_strided(like, shape, strides)
    start = address(data) - address(owner)
    return over(owner, shape, like.dtype, start, strides)  # type: ignore[no-any-return]


@view("view_as_complex(Tensor(a) self) -> Tensor(a)",
      autocast="cpu=float32", method=False, backward={
    "self": lambda grad: ops.view_as_real(grad.resolve_conj()),
})  # fmt: skip
def view_as_complex(data: np.ndarray) -> np.ndarray:
    """A real tensor whose last dim holds (real, imaginary) as a complex one.

    >>> import flambeau as torch
    >>> torch.view_as_complex(torch.tensor([[1., 2.], [3., 4.]]))
    tensor([1.+2.j, 3.+4.j])
    """
    _check_view_as_complex(data)
    wanted = dt.from_numpy_dtype(data.dtype).to_complex().numpy_dtype
    like = data[..., 0].view(wanted) if not data.size else np.empty(0, wanted)
    return _complex_view(data, wanted, like)


def _complex_view(data: np.ndarray, wanted: Any, like: np.ndarray) -> np.ndarray:
    owner = owner_of(data)
    if not data.size:
        return without_elements(data, data.shape[:-1], data.strides[:-1], element=wanted)
    if owner.flags.c_contiguous:
        start = address(data) - address(owner)
        return over(owner, data.shape[:-1], wanted, start, data.strides[:-1])  # type: ignore[no-any-return]
    return data.view(wanted)[..., 0]


def _check_view_as_complex(data: np.ndarray) -> None:
    element = dt.from_numpy_dtype(data.dtype)
    if element not in (dt.float16, dt.float32, dt.float64):
        raise RuntimeError("view_as_complex is only supported for half, float and double tensors, "
                           f"but got a tensor of scalar type: {element.scalar_name}")  # fmt: skip
    if data.ndim == 0:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if data.shape[-1] != 2:  # noqa: PLR2004
        raise RuntimeError("Tensor must have a last dimension of size 2")
    if data.strides[-1] != data.itemsize:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    pair = 2 * data.itemsize
    if any(stride % pair for stride in data.strides[:-1]):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
    if (address(data) - address(owner_of(data))) % pair:
        raise RuntimeError("Tensor must have a storage_offset divisible by 2")


# ---- conjugates


def _copied_conjugate(x: np.ndarray) -> Any:
    return np.conjugate(x) if x.dtype.kind in "cW" else np.array(x)


add_primitive("conjugate_copy", _copied_conjugate)


@pointwise("_conj_physical(Tensor self) -> Tensor",
           sparse_entries="any", out_writer="aten::conj_physical",
           complex_half=True, node="ConjPhysicalBackward0", out_type=FOUND,
           backward={
    "self": lambda grad: ops.conj_physical(grad),
})  # fmt: skip
def conj_copy(self: Any) -> Any:
    """The conjugate in new memory."""
    return E.conjugate_copy(self)


@view("_conj(Tensor(a) self) -> Tensor(a)", node="ConjBackward0", method=False, backward={
    "self": lambda grad: ops.conj(grad),
}, turn=lambda view: (not view._conjugated, view._negated))  # fmt: skip
def conj_view(data: np.ndarray) -> np.ndarray:
    """A view of a complex tensor whose values are the conjugates."""
    if data.dtype.kind not in "cW":
        raise RuntimeError("_conj() is only for complex tensors")
    return data.view()


@method_of_bits("conj")
def _conj_of_bits(self: Any) -> Any:
    if not is_unwatched(self):
        return super(BitTensor, self).conj()
    return of_memory(conj_view)(self) if self._stored.dtype.kind in "cW" else self


@view("_neg_view(Tensor(a) self) -> Tensor(a)", node="NegViewBackward0", backward={
    "self": lambda grad: ops.neg(grad),
}, turn=lambda view: (view._conjugated, not view._negated))  # fmt: skip
def neg_view(data: np.ndarray) -> np.ndarray:
    """A view whose values are the negatives."""
    return data.view()


@composite("conj(Tensor(a) self) -> Tensor(a)")
def conj(input: Tensor) -> Any:
    """The conjugate of a complex tensor, a view of its memory; a real tensor itself.

    The shape stays.

    >>> import flambeau as torch
    >>> torch.conj(torch.tensor([1 + 2j])).resolve_conj()
    tensor([1.-2.j])
    """
    return ops._conj(input) if _is_complex(input) else input


def _is_complex(input: Tensor) -> bool:
    """`input.is_complex()`, without the calls for most: `x.conj()` is nothing but a view."""
    if input.__class__ is Tensor:
        return input._data.dtype.kind in "cW"
    return input.is_complex()  # type: ignore[attr-defined, no-any-return]


@composite(
    "conj_physical(Tensor self) -> Tensor", may_give_input=True, out_writer="aten::conj_physical"
)
def conj_physical(input: Tensor, *, out: Any = None) -> Any:
    """The conjugate in new memory; a real tensor itself.

    The shape stays.

    >>> import flambeau as torch
    >>> torch.conj_physical(torch.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    if out is None and not input.is_complex():  # type: ignore[attr-defined]
        return input
    return ops._conj_physical(input, out=out)


@method
def conj_physical_(input: Tensor) -> Tensor:
    """The conjugate in place, element by element; real numbers stay what they are.

    >>> import flambeau as torch
    >>> z = torch.tensor([1 + 2j])
    >>> z.conj_physical_()
    tensor([1.-2.j])
    """
    require_tensor("conj_physical_", "input", 1, input)
    return input._conj_physical_()  # type: ignore[attr-defined, no-any-return]


@composite("resolve_conj(Tensor(a) self) -> Tensor(a)", bare=True)
def resolve_conj(input: Tensor) -> Any:
    """A conjugate view as a copy in new memory; any other tensor itself.

    The shape stays.

    >>> import flambeau as torch
    >>> view = torch.tensor([1 + 2j]).conj()
    >>> view.is_conj(), torch.resolve_conj(view).is_conj()
    (True, False)
    """
    try:
        return ops.clone(input) if input._conjugated else input
    except AttributeError as error:
        raise explained(resolve_conj, (input,), error) from None


@composite("resolve_neg(Tensor(a) self) -> Tensor(a)", bare=True)
def resolve_neg(input: Tensor) -> Any:
    """A negative view as a copy in new memory; any other tensor itself.

    The shape stays.

    >>> import flambeau as torch
    >>> view = torch.tensor([1 + 2j]).conj().imag
    >>> view.is_neg(), torch.resolve_neg(view).is_neg()
    (True, False)
    """
    try:
        return ops.clone(input) if input._negated else input
    except AttributeError as error:
        raise explained(resolve_neg, (input,), error) from None


# ---- angles and polar form


def _angle(x: np.ndarray) -> Any:
    if x.dtype.kind in "cW":
        return np.angle(x)
    half_turn = np.where(x < 0, x.dtype.type(np.pi), x.dtype.type(0))
    return np.where(np.isnan(x), x, half_turn)


add_primitive("angle", _angle)


def _angle_grad(grad: Any, self: Any) -> Any:
    """i z / |z|**2, and 0 at 0; 0 for real numbers."""
    if self._data.dtype.kind not in "cW":
        return ops.zeros_like(grad)
    slope = grad * (self * 1j / ops.square(ops.abs(self)))
    return ops.where(self == 0, 0.0, slope)


@pointwise("angle(Tensor self) -> Tensor", label="angle_cpu", promote="float", inplace=False,
           backward={"self": _angle_grad})  # fmt: skip
def angle(self: Any) -> Any:
    """The angle in the complex plane; of negative real numbers, pi.

    >>> import flambeau as torch
    >>> torch.angle(torch.tensor([1j, -1, 1 + 1j]))
    tensor([1.5708, 3.1416, 0.7854])
    """
    return E.angle(self)


def _joined(real: np.ndarray, imag: np.ndarray) -> np.ndarray:
    shape = np.broadcast_shapes(real.shape, imag.shape)
    result = np.empty(shape, dt.from_numpy_dtype(real.dtype).to_complex().numpy_dtype)
    pairs = parts.both_parts(result)
    pairs[..., 0] = real
    pairs[..., 1] = imag
    return result


def _from_polar(abs: np.ndarray, angle: np.ndarray) -> np.ndarray:
    return _joined(abs * np.cos(angle), abs * np.sin(angle))


add_primitive("joined", _joined)
add_primitive("from_polar", _from_polar)


@pointwise("_complex(Tensor real, Tensor imag) -> Tensor",
           out_writer="complex", node="ComplexBackward0", also_saved=("real", "imag"),
           aten=lambda *parts: InAten("complex", parts),
           dtypes="float16 float32 float64", inplace=False, numbers="none", method=False, backward={
    "real": lambda grad: ops.real(grad),
    "imag": lambda grad: ops.imag(grad) if grad.is_complex() else ops.zeros_like(grad),
})  # fmt: skip
def complex_of(real: Any, imag: Any) -> Any:
    """`real + 1j * imag`."""
    return E.joined(real, imag)


def _polar_grad_angle(grad: Any, result: Any) -> Any:
    return ops.real(ops.conj(grad) * (result * 1j))


@pointwise("_polar(Tensor abs, Tensor angle) -> Tensor",
           out_writer="polar", node="PolarBackward0", method=False,
           aten=lambda *parts: InAten("polar", parts),
           dtypes="float32 float64", inplace=False, numbers="none", label="polar_cpu", backward={
    "abs": lambda grad, result: ops.real(ops.conj(grad) * ops.sgn(result)),
    "angle": _polar_grad_angle,
})  # fmt: skip
def polar_of(abs: Any, angle: Any) -> Any:
    """`abs * exp(1j * angle)`."""
    return E.from_polar(abs, angle)


def _check_parts(function: str, names: tuple[str, str], first: Any, second: Any) -> None:
    require_tensor(function, names[0], 1, first)
    require_tensor(function, names[1], 2, second)
    words = first.dtype.scalar_name, second.dtype.scalar_name
    if not (first.dtype.is_floating_point and second.dtype.is_floating_point):
        raise RuntimeError("Expected both inputs to be Half, Float or Double tensors but got "
                           f"{words[0]} and {words[1]}")  # fmt: skip
    if first.dtype is not second.dtype:
        raise RuntimeError(f"Expected object of scalar type {words[0]} but got scalar type "
                           f"{words[1]} for second argument")  # fmt: skip


def _check_complex_out(result: Tensor, out: Any) -> None:
    wanted = result.dtype.to_complex()
    if out is not None and out.dtype is not wanted:
        raise RuntimeError(f"Expected object of scalar type {wanted.scalar_name} but got scalar "
                           f"type {out.dtype.scalar_name} for argument 'out'")  # fmt: skip


@composite("complex(Tensor real, Tensor imag) -> Tensor", method=False)
def complex(real: Tensor, imag: Tensor, *, out: Any = None) -> Any:
    """A complex tensor from its parts, of one float type.

    The shapes broadcast.

    >>> import flambeau as torch
    >>> torch.complex(torch.tensor([1.0]), torch.tensor([2.0]))
    tensor([1.+2.j])
    """
    _check_parts("complex", ("real", "imag"), real, imag)
    _check_complex_out(real, out)
    return ops._complex(real, imag, out=out)


@composite("polar(Tensor abs, Tensor angle) -> Tensor", autocast="cpu=float32", method=False)
def polar(abs: Tensor, angle: Tensor, *, out: Any = None) -> Any:
    """A complex tensor from absolute values and angles, of one float type.

    The shapes broadcast.

    >>> import flambeau as torch
    >>> torch.polar(torch.tensor([2.0]), torch.tensor([0.0]))
    tensor([2.+0.j])
    """
    _check_parts("polar", ("abs", "angle"), abs, angle)
    _check_complex_out(abs, out)
    return ops._polar(abs, angle, out=out)
