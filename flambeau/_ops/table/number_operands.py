"""Numbers beside tensors: as 0-dim tensors that are made once, and as factors."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from flambeau._core import modes
from flambeau._ops.table import pointwise as kind
from flambeau._ops.table import scalars
from flambeau._ops.table.binder import fits_number
from flambeau._ops.table.outputs import check_cast, check_partial_overlap
from flambeau._tensor.sparse import NotStrided
from flambeau._tensor.tensor import Tensor, wrap
from flambeau.autograd.saved_fields import tell

SCALARS: dict[Any, Tensor] = {}
"""Numbers beside float tensors, as 0-dim tensors: (number, its class, dtype) -> tensor."""
SCALAR_LIMIT = 4096


def scalar_tensor(value: Any, numpy_dtype: Any) -> Tensor | None:
    """A cached 0-dim tensor for a number beside a tensor of a type that the number does not change.

    None where the general rules have to decide: half types (the number keeps float32 precision),
    a float beside integers, integers that do not fit.
    """
    kind_ = numpy_dtype.kind
    if numpy_dtype in kind.dt.NUMPY_HALVES:
        return None
    if kind_ == "f" or (kind_ == "c" and type(value) is float):
        pass
    elif kind_ != "i" or type(value) is not int or abs(value) >= 128:
        return None
    if type(value) is int:
        scalars.check_whole(value)
    if not scalars.fits(value, numpy_dtype):
        return None
    # 0.0 and -0.0 would be one key
    number = str(value) if not value and type(value) is float else value
    key = (number, type(value), numpy_dtype)
    found = SCALARS.get(key)
    if found is not None:
        return found
    if len(SCALARS) >= SCALAR_LIMIT:
        kind.forget_numbers(SCALARS)
    result = wrap(np.array(value, numpy_dtype))
    SCALARS[key] = kind.shared_number(result)
    return result


def is_number(tensor: Tensor) -> bool:
    """Whether a tensor is one of those for numbers, which are shared: no hook may get them."""
    return kind.SHARED.get(id(tensor)) is tensor


def number_behind(value: Any) -> Any:
    """The number that one of those tensors is there for; any other value as it is, but for
    NumPy's numbers, which become Python's."""
    if isinstance(value, np.generic):
        return value.item()
    if not isinstance(value, Tensor) or value.ndim:
        return value
    for (number, its_class, _), tensor in SCALARS.items():
        if tensor is value:
            return its_class(number)
    return value


def number_tensor(value: Any) -> Tensor:
    """A number as a tensor of the number's own type."""
    return wrap(np.array(value, kind.dtype_of_number(value).numpy_dtype))


def scaled(tensor: Any, other: Any, alpha: Any, op: Any, target: Any = None) -> Any:
    """`alpha * other`, with torch's checks of alpha's type; those of the operator come first.

    `target`: what the result is to be written to.
    """
    if isinstance(alpha, Tensor):
        if not fits_number(alpha):
            raise TypeError(f"{op.public}(): argument 'alpha' must be Number, not Tensor")
        alpha = alpha.item()  # type: ignore[attr-defined]
    if isinstance(other, np.generic):
        other = kind.number_of(other)
    try:
        common = kind.common_dtype([v for v in (tensor, other) if v is not None])
    except NotStrided:
        from flambeau._ops.sparse.arithmetic import in_result_type

        return in_result_type(tensor, other) * alpha
    _check_operands(op, [tensor, other], common, target)
    if isinstance(alpha, bool) and common is not kind.dt.bool_:
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    if isinstance(alpha, (float, complex)) and kind.category(common) < kind.FLOAT:
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating "
                           "point number.")  # fmt: skip
    if isinstance(alpha, complex) and not common.is_complex:
        raise RuntimeError("For non-complex input tensors, argument alpha must not be a complex "
                           "number.")  # fmt: skip
    if isinstance(target, Tensor):
        check_partial_overlap(target, (other,))
    if alpha == 1:
        return other
    scalars.checked_number(alpha, common.numpy_dtype)
    if isinstance(other, Tensor) and other.dtype is not common:
        other = other.to(common)  # type: ignore[attr-defined]
    if common is not kind.dt.bool_:
        return times_number(other, alpha)
    return other * bool(alpha) if isinstance(other, Tensor) else bool(other and alpha)


def tell_factor(result: Any, other: Any, alpha: Any) -> Any:
    """A sum with `alpha * other`, whose node takes the factor upon itself and leads to what was
    multiplied."""
    base = result._base if isinstance(result, Tensor) else None
    slices = None if base is None else base._node
    node = getattr(slices, "inner", None) if base is not None else getattr(result, "_node", None)
    if node is None or "alpha" not in node.facts or alpha == 1:
        return result
    tell(node, "alpha", alpha)
    product = getattr(other, "_node", None)
    if product is not None and any(edge is product for edge in node.edges):
        node.edges = tuple([product.edges[0] if e is product else e for e in node.edges])
        node.__class__ = _with_factor(node.__class__)
        if slices is not None:
            slices.edges = (*slices.edges[:1], *node.edges[1:])
            node.edges = slices.edges
    return result


@cache
def _with_factor(kind: type) -> type:
    """The nodes of a sum whose second operand has a factor."""

    def apply(node: Any, grad: Any) -> tuple[Any, ...]:
        first, second = kind.apply(node, grad)  # type: ignore[attr-defined]
        if second is not None:
            second = second * node.__dict__["alpha"].conjugate()
        return first, second

    return type(kind.__name__, (kind,), {"__slots__": (), "apply": apply})


def times_number(tensor: Any, number: Any) -> Any:
    """`tensor * number`, of which a history keeps nothing but the number."""
    recorded = tensor.__class__ is Tensor and modes.grad.enabled and tensor.requires_grad
    if not recorded:
        return tensor * number
    modes.grad.enabled = False
    try:
        result = tensor * number
    finally:
        modes.grad.enabled = True
    _recorder()(tensor, number, result)
    return result


@cache
def _recorder() -> Any:
    """What records a product by a number."""
    from flambeau._ops.elementwise.arithmetic import times_number as row
    from flambeau._ops.table.dispatch import Recorder

    return Recorder(row).call


def _check_operands(op: Any, operands: list[Any], common: Any, target: Any) -> None:
    if op.check_operands is not None:
        op.check_operands(operands)
    if op.dtypes and common is kind.dt.bool_:
        raise kind.refusal(op, common)
    kind.broadcast_shape([x._data.shape for x in operands if isinstance(x, Tensor)])
    if isinstance(target, Tensor):
        check_cast(common.numpy_dtype, target._data.dtype)
