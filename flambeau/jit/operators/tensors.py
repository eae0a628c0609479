"""Operators between tensors and other values: numbers, sizes, properties, conversions."""

from __future__ import annotations

from typing import Any

from flambeau._core import dtype as dt
from flambeau._core import promotion
from flambeau._core.device import device
from flambeau._ops.table.namespace import get, ops
from flambeau._tensor.conversion import tensor
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.grad_mode import no_grad
from flambeau.jit.ir.values import LAYOUTS, dtype_number, enumeration_number
from flambeau.jit.operators.forms import element_type, layout_of, memory_format_of
from flambeau.jit.operators.registry import SCOPE, functions, implements, in_scope, pieces

SCOPE.update(dtype_number=dtype_number)

NO_DEVICES = ("mps", "xpu", "ipu", "maia", "vulkan", "mtia", "xla")
"""Kinds of devices that flambeau never has."""

pieces({
    "size": "list({0}.shape)", "dim": "{0}.ndim", "numel": "{0}.numel()",
    "sym_size.int": "{0}.size({1})", "sym_numel": "{0}.numel()",
    "prim::dtype": "dtype_number({0}.dtype)", "prim::device": "{0}.device",
    "prim::requires_grad": "{0}.requires_grad", "prim::grad": "{0}.grad",
    "prim::data data": "{0}.data",
    "prim::is_cuda": "({0}.device.type == 'cuda')", "prim::is_meta": "({0}.device.type == 'meta')",
    " ".join(f"prim::is_{kind}" for kind in NO_DEVICES): "False",
    "prim::is_quantized prim::is_mkldnn": "False",
    "prim::is_sparse": "{0}.is_sparse", "prim::is_sparse_csr": "False", "prim::name": "None",
    "prim::itemsize": "{0}.dtype.itemsize", "prim::nbytes": "({0}.dtype.itemsize * {0}.numel())",
    "prim::index": "{0}.index", "prim::type": "{0}.type",
    "item": "{0}.item()", "Bool.Tensor": "bool({0})",
    "is_leaf": "{0}.is_leaf", "output_nr": "{0}.output_nr", "retains_grad": "{0}.retains_grad",
    "prim::is_cpu": "({0}.device.type == 'cpu')",
    "stride": "list({0}.stride())", "_version": "{0}._version",
    "numpy_T numpy_T.a": "{0}.T", "matrix_H matrix_H.a": "{0}.H", "mT mT.a": "{0}.mT",
    "mH mH.a": "{0}.mH", "prim::NumToTensor.bool": "tensor_of({0}, None, None, False)",
    "_reshape_from_tensor": "{0}.reshape({1}.tolist())",
    "_shape_as_tensor": "tensor_of(list({0}.shape), 4, None, False)",
})  # fmt: skip


@implements("prim::layout")
def layout_number(tensor: Tensor) -> int:
    """The number of the layout."""
    return LAYOUTS.index(str(tensor.layout).removeprefix("torch."))


@implements("len.Tensor")
def length(tensor: Tensor) -> int:
    """The size of the first dim."""
    if not tensor.ndim:
        raise RuntimeError("len() of a 0-d tensor")
    return int(tensor.shape[0])


# ---- numbers of tensors


def _implicit(tensor: Any, integral: bool) -> Any:
    if tensor.requires_grad:
        raise RuntimeError("Cannot input a tensor that requires grad as a scalar argument")
    if tensor.ndim:
        raise RuntimeError("Cannot input a tensor of dimension other than 0 as a scalar argument")
    if integral and (tensor.is_floating_point() or tensor.dtype.is_complex):
        raise RuntimeError(
            f"Cannot input a tensor of type {tensor.dtype.scalar_name} as an integral argument"
        )
    return tensor.item()


@implements("Int.Tensor")
def int_of(tensor: Any) -> int:
    """The number of a tensor that has one, rounded towards zero."""
    from flambeau.jit.operators.numbers import to_int

    return to_int(tensor.item())


functions({
    "IntImplicit": lambda tensor: int(_implicit(tensor, True)),
    "FloatImplicit": lambda tensor: float(_implicit(tensor, False)),
    "ComplexImplicit": lambda tensor: complex(_implicit(tensor, False)),
    "ScalarImplicit": lambda tensor: _implicit(tensor, False),
    "Float.Tensor": lambda tensor: float(tensor.item()),
})  # fmt: skip


@implements(
    *(
        f"Complex.{a}_{b}"
        for a, b in [
            ("Tensor", "Tensor"),
            *(
                pair
                for kind in ("int", "float", "bool")
                for pair in (("Tensor", kind), (kind, "Tensor"))
            ),
        ]
    )
)
def complex_of(real: Any, imaginary: Any) -> complex:
    """A complex number of two parts, either of which may be a tensor."""
    parts = (p if isinstance(p, (int, float)) else p.item() for p in (real, imaginary))
    return complex(*map(float, parts))


# ---- tensors of numbers


@in_scope
@implements("tensor", "tensor.float", "tensor.int", "tensor.bool", "tensor.complex")
def tensor_of(data: Any, dtype: int | None, place: Any, requires_grad: bool) -> Any:
    """A tensor of a number or of nested lists of numbers; an empty list gives ints."""
    _check_nested(data)
    element = element_type(dtype)
    if element is None and isinstance(data, list) and _is_empty(data):
        element = dt.int64
    if isinstance(data, (int, float, complex)) and element is not None and not element.is_complex:
        whole = not element.is_floating_point and element is not dt.bool_
        data = int(data) if whole and not isinstance(data, complex) else data
    return tensor(data, dtype=element, device=place, requires_grad=requires_grad)


def _is_empty(data: Any) -> bool:
    return all(isinstance(item, list) and _is_empty(item) for item in data)


def _check_nested(data: Any, dim: int = 0) -> None:
    while isinstance(data, list):
        if data and isinstance(data[0], list):
            sizes = {len(item) for item in data}
            if len(sizes) > 1:
                first = len(data[0])
                other = next(len(item) for item in data if len(item) != first)
                raise RuntimeError(
                    f"Expected sequence of length {first} at dim {dim + 1} (got {other})"
                )
        if data and isinstance(data[0], (str, Tensor)):
            kind = "Tensor" if isinstance(data[0], Tensor) else "str"
            raise RuntimeError(f"Input must be of ints, floats, or bools, got {kind}")
        data = data[0] if data else None
        dim += 1


@implements("as_tensor", "as_tensor.list", "as_tensor.float", "as_tensor.int", "as_tensor.bool",
            "as_tensor.complex")  # fmt: skip
def as_tensor(data: Any, dtype: int | None, place: Any) -> Any:
    """A tensor as it is, or of numbers."""
    if isinstance(data, Tensor):
        return get("as_tensor")(data, dtype=element_type(dtype), device=place)
    return tensor_of(data, dtype, place, False)


@implements("prim::NumToTensor.Scalar")
def tensor_of_number(value: Any) -> Any:
    """A tensor of the number's full precision."""
    wide = {int: dt.int64, float: dt.float64, complex: dt.complex128, bool: dt.bool_}
    return tensor(value, dtype=wide[type(value)])


@implements("_list_to_tensor")
def list_to_tensor(items: list[int]) -> Any:
    """An int32 tensor."""
    return tensor(items, dtype=dt.int32)


@implements("_tensor_to_list")
def tensor_to_list(tensor: Any) -> list[int]:
    """A list of an int32 tensor of one dim."""
    if tensor.dtype is not dt.int32:
        raise RuntimeError(f"expected scalar type Int but found {tensor.dtype.scalar_name}")
    return list(tensor.tolist())


# ---- conversions


def _to(tensor: Any, place: Any, dtype: int | None, copy: bool, format: int | None = None) -> Any:
    wanted = {"dtype": element_type(dtype), "device": place, "copy": copy,
              "memory_format": memory_format_of(format)}  # fmt: skip
    given = {name: value for name, value in wanted.items() if value is not None}
    return tensor.to(**given)


for name, element in {
    "Byte": dt.uint8, "Char": dt.int8, "Double": dt.float64, "Float": dt.float32,
    "Half": dt.float16, "Int": dt.int32, "Long": dt.int64, "Short": dt.int16,
}.items():  # fmt: skip
    implements(f"_cast_{name}")(lambda t, non_blocking, element=element: t.to(element))


@implements("contiguous")
def contiguous(tensor: Any, memory_format: int) -> Any:
    """In the order of a memory format."""
    return tensor.contiguous(memory_format=memory_format_of(memory_format))


@implements("is_contiguous", "sym_is_contiguous")
def is_contiguous(tensor: Any, memory_format: int = 0) -> bool:
    """Whether the elements lie in the order of a memory format."""
    return bool(tensor.is_contiguous(memory_format=memory_format_of(memory_format)))


implements("is_contiguous.memory_format")(is_contiguous)


@implements("copy_.Tensor", "copy_.int", "copy_.float")
def copy_number(tensor: Any, other: Any) -> Any:
    """Write another tensor or number."""
    return tensor.copy_(other) if isinstance(other, Tensor) else tensor.fill_(other)


@implements("set_data")
def set_data(tensor: Any, new: Any) -> None:
    """Let the tensor have the memory of another one."""
    tensor.data = new


functions({
    "to.device": (
        lambda tensor, place, dtype, non_blocking, copy, format: _to(
            tensor, place, dtype, copy, format)
    ),
    "to.dtype": (
        lambda tensor, dtype, non_blocking, copy, format: _to(tensor, None, dtype, copy, format)
    ),
    "to.other": (
        lambda tensor, other, non_blocking, copy, format: _to(
            tensor, other.device, dtype_number(other.dtype), copy, format)
    ),
    "to.dtype_layout": (
        lambda tensor, dtype, layout, place, pin_memory, non_blocking, copy, format: _to(
            tensor, place, dtype, copy, format)
    ),
    "to.prim_Device": (
        lambda tensor, place, dtype, non_blocking, copy: _to(tensor, place, dtype, copy)
    ),
    "to.prim_dtype": lambda tensor, dtype, non_blocking, copy: _to(tensor, None, dtype, copy),
    "to.prim_other": lambda tensor, non_blocking, copy: _to(tensor, None, None, copy),
    # Memory here is never pinned.
    "is_pinned": lambda tensor, place=None: False,
    "cpu": lambda tensor: tensor.cpu(),
    "cuda": lambda tensor: tensor.cuda(),
    "device device.with_index": device,
})  # fmt: skip


# ---- types


@implements("promote_types")
def promote_types(one: int, other: int) -> int:
    """The smallest type that holds both."""
    return dtype_number(promotion.promote_types(element_type(one), element_type(other)))


functions({
    "can_cast": lambda one, other: bool(get("can_cast")(element_type(one), element_type(other))),
    "result_type.Tensor result_type.Scalar result_type.Scalar_Tensor result_type.Scalar_Scalar": (
        lambda one, other: dtype_number(get("result_type")(one, other))
    ),
})  # fmt: skip


# ---- indexing


@implements("index.Tensor", "_unsafe_index.Tensor")
def index(tensor: Any, indices: list[Any]) -> Any:
    """`tensor[indices]`, None for a dim that is taken whole."""
    return ops.index(tensor, indices) if len(indices) <= tensor.ndim else _too_many(tensor, indices)


def _too_many(tensor: Any, indices: list[Any]) -> Any:
    raise IndexError(f"too many indices for tensor of dimension {tensor.ndim} (got {len(indices)})")


def tolist(tensor: Any, dim: int, kind: str) -> Any:
    """`tensor.tolist()` where `dim` nested lists of `kind` (int, float, bool, complex) are
    annotated: `prim::tolist`.
    """
    if tensor.ndim != dim:
        raise RuntimeError(
            "Output annotation list dimension and runtime tensor dimension must match for tolist()"
        )
    wanted = {"int": (dt.int64,), "bool": (dt.bool_,), "complex": (dt.complex64, dt.complex128),
              "float": (dt.float64, dt.float32)}[kind]  # fmt: skip
    if tensor.dtype not in wanted:
        raise RuntimeError(
            "Output annotation element type and runtime tensor element type must match for tolist()"
        )
    return tensor.tolist()


implements("_no_grad_fill_")(lambda t, value: _quietly(t.fill_, value))
implements("_no_grad_zero_")(lambda t: _quietly(t.zero_))
implements("_no_grad_uniform_")(lambda t, a, b, generator=None: _quietly(t.uniform_, a, b))
implements("_no_grad_normal_")(lambda t, mean, std, generator=None: _quietly(t.normal_, mean, std))


def _quietly(function: Any, *args: Any) -> Any:
    with no_grad():
        return function(*args)


__all__ = ["enumeration_number", "layout_of", "tolist"]


functions({
    "_infer_size broadcast_shapes": (
        lambda some, others: list(get("broadcast_shapes")(some, others))
    ),
    "_size_if_not_equal": lambda some, others: None if some == others else some,
    # A tensor that was just made of data, as it is.
    "lift_fresh": lambda self: self,
    # A copy of a constant, which a graph makes anew in each call.
    "lift_fresh_copy": lambda self: self.clone(),
})  # fmt: skip
