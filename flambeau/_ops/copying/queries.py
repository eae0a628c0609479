"""Questions about whole tensors and about types: `equal`, `allclose`, `result_type`, ..."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._core.doc_text import with_example
from flambeau._core.missing import as_torch_name
from flambeau._core.nn_homes import module_in_torch
from flambeau._ops.launching.precision import require_known
from flambeau._ops.table import outputs, pointwise
from flambeau._ops.table.binder import require_tensor
from flambeau._ops.table.op import composite, kernel
from flambeau._tensor.storage import UntypedStorage
from flambeau._tensor.tensor import Tensor


def _exact(data: np.ndarray) -> np.ndarray:
    return data.astype(np.float32) if data.dtype in dt.NUMPY_HALVES else data


def _close(x: np.ndarray, y: np.ndarray, rtol: float, atol: float, equal_nan: bool) -> Any:
    """`x == y`, or a finite difference of at most `atol + rtol * |y|`."""
    if x.dtype != y.dtype:
        words = [dt.from_numpy_dtype(d).scalar_name for d in (x.dtype, y.dtype)]
        raise RuntimeError(f"{words[0]} did not match {words[1]}")
    for name, value in (("rtol", rtol), ("atol", atol)):
        if not value >= 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {value:g}")
    pointwise.broadcast_shape([x.shape, y.shape])
    x, y = _exact(x), _exact(y)
    close = np.equal(x, y)
    if equal_nan and x.dtype.kind in "fc":
        close = close | (np.isnan(x) & np.isnan(y))
    if rtol == 0 and atol == 0:
        return close
    if x.dtype.kind in "biu":
        x, y = x.astype(np.float64), y.astype(np.float64)
    difference = np.abs(x - y)
    allowed = atol + np.abs(rtol * y)
    return close | (np.isfinite(difference) & (difference <= allowed))


@kernel("isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, "
        "bool equal_nan=False) -> Tensor", devices="numbers")  # fmt: skip
def isclose(x: np.ndarray, y: np.ndarray, rtol: float, atol: float, equal_nan: bool) -> np.ndarray:
    """Whether elements differ by at most `atol + rtol * abs(other)`.

    The two shapes broadcast.

    >>> import flambeau as torch
    >>> torch.isclose(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.1]))
    tensor([ True, False])
    """
    return np.array(_close(x, y, rtol, atol, equal_nan))


@kernel("allclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, "
        "bool equal_nan=False) -> bool", devices="numbers", shape="unknown")  # fmt: skip
def allclose(x: np.ndarray, y: np.ndarray, rtol: float, atol: float, equal_nan: bool) -> bool:
    """Whether all elements are close, as `isclose` says.

    The two shapes broadcast; the result is a Python bool.

    >>> import flambeau as torch
    >>> torch.allclose(torch.ones(2), torch.ones(2) + 1e-9)
    True
    """
    return bool(np.all(_close(x, y, rtol, atol, equal_nan)))


@kernel("equal(Tensor self, Tensor other) -> bool", device_check="_equal", shape="unknown")
def equal(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether two tensors have the same shape and elements.

    >>> import flambeau as torch
    >>> torch.equal(torch.ones(2), torch.ones(2))
    True
    """
    if x.shape != y.shape:
        return False
    require_known("equal_notnan_cpu", x.dtype)
    if x.size and x.dtype is y.dtype and x.item(0) != y.item(0):
        return False  # most tensors that differ do so from the start
    return bool(np.count_nonzero(x == y) == x.size)


# ---- types


@composite(
    "result_type.Tensor(Tensor self, Tensor other) -> ScalarType",
    bare=True,
    method=False,
)
def result_type(first: Any = None, /, other: Any = None, *, tensor: Any = None, scalar: Any = None,
                scalar1: Any = None, scalar2: Any = None) -> dt.dtype:  # fmt: skip
    """The type of a result of these two, tensors or numbers. Numbers also have names of their own:
    (scalar, tensor), (scalar1, scalar2).

    >>> import flambeau as torch
    >>> torch.result_type(torch.tensor([1, 2]), 1.0)
    torch.float32
    """
    given = [v for v in (first, other, tensor, scalar, scalar1, scalar2) if v is not None]
    found = [v if isinstance(v, Tensor) else pointwise.number_of(v) for v in given]
    if len(given) != 2 or any(v is None for v in found):
        raise TypeError("result_type() takes two arguments, tensors or numbers")
    return pointwise.common_dtype(found)


@composite("can_cast(ScalarType from_, ScalarType to) -> bool", method=False)
def can_cast(from_: dt.dtype, to: dt.dtype) -> bool:
    """Whether a result of one type may be stored in another.

    >>> import flambeau as torch
    >>> torch.can_cast(torch.float32, torch.int32)
    False
    """
    return outputs.can_cast(dt.as_dtype(from_), dt.as_dtype(to))


@composite("is_tensor(Tensor self) -> bool", bare=True, method=False)
def is_tensor(obj: Any) -> bool:
    """Whether an object is a tensor, of whatever shape.

    >>> import flambeau as torch
    >>> torch.is_tensor([1, 2])
    False
    """
    return isinstance(obj, Tensor)


@composite("is_storage(Tensor self) -> bool", bare=True, method=False)
def is_storage(obj: Any, /) -> bool:
    """Whether an object is a storage, which has no shape.

    >>> import flambeau as torch
    >>> torch.is_storage(torch.ones(1).untyped_storage()), torch.is_storage(torch.ones(1))
    (True, False)
    """
    return isinstance(getattr(obj, "_untyped_storage", obj), UntypedStorage)


@composite("typename(Tensor self) -> str", bare=True, method=False)
def typename(obj: Any, /) -> str:
    """The name of a tensor's type (`torch.FloatTensor`, for any shape), or of any object's class.

    Functions, classes and modules are named themselves. Builtins are named without a module.

    >>> import flambeau as torch
    >>> torch.typename(torch.ones(1))
    'torch.FloatTensor'
    """
    if isinstance(obj, Tensor):
        return obj.type()
    named = obj if hasattr(obj, "__qualname__") else type(obj)
    if isinstance(obj, ModuleType):
        return as_torch_name(obj.__name__)
    module = as_torch_name(getattr(named, "__module__", "") or "")
    if module.startswith("torch.nn.") and isinstance(named, type):
        module = module_in_torch(named)
    if module.startswith("torch._"):
        module = "torch"
    return named.__qualname__ if module in ("", "builtins") else f"{module}.{named.__qualname__}"


@composite("is_same_size(Tensor self, Tensor other) -> bool", method=False)
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether two shapes are equal.

    >>> import flambeau as torch
    >>> torch.is_same_size(torch.ones(2), torch.ones(1, 2))
    False
    """
    return input._data.shape == other._data.shape


def _question(name: str, text: str, given: str, printed: str) -> None:
    """A method of Tensor as a function."""

    def ask(input: Tensor, *others: Any, **named: Any) -> Any:
        require_tensor(name, "input", 1, input)
        return getattr(input, name)(*others, **named)

    ask.__name__ = ask.__qualname__ = name
    ask.__doc__ = with_example(text, f"torch.{name}({given})", printed)
    composite(f"{name}(Tensor self) -> bool", method=False, bare=True, regular=name == "detach")(
        ask
    )


for _question_asked in (
    (
        "is_floating_point",
        "Whether the type of a tensor of any shape is a floating-point type.",
        "torch.ones(1)",
        "True",
    ),
    (
        "is_complex",
        "Whether the type of a tensor of any shape is complex.",
        "torch.ones(1)",
        "False",
    ),
    (
        "is_signed",
        "Whether the type of a tensor of any shape has negative values.",
        "torch.ones(1)",
        "True",
    ),
    (
        "is_conj",
        "Whether the conjugate bit of a tensor of any shape is set.",
        "torch.tensor([1j]).conj()",
        "True",
    ),
    (
        "is_neg",
        "Whether the negative bit of a tensor of any shape is set.",
        "torch.tensor([1j]).conj().imag",
        "True",
    ),
    (
        "is_inference",
        "Whether a tensor of any shape was made in inference mode.",
        "torch.ones(1)",
        "False",
    ),
    (
        "is_distributed",
        "Whether a tensor of any shape is spread over machines: never.",
        "torch.ones(1)",
        "False",
    ),
    ("numel", "The number of elements: the product of the shape.", "torch.ones(2, 3)", "6"),
    (
        "get_device",
        "The index of the device of a tensor of any shape; -1 for the CPU.",
        "torch.ones(1)",
        "-1",
    ),
    (
        "detach",
        "The same memory and shape without history.",
        "torch.ones(1, requires_grad=True)",
        "tensor([1.])",
    ),
    (
        "detach_",
        "Cut a tensor of any shape off from its history, in place.",
        "torch.ones(1, requires_grad=True) * 2",
        "tensor([2.])",
    ),
):
    _question(*_question_asked)


@composite("_local_scalar_dense(Tensor self) -> Scalar", method=False, function=False)
def _local_scalar_dense(self: Tensor) -> Any:
    """ATen's name for `item`."""
    return self.item()  # type: ignore[attr-defined]


@composite("_pin_memory(Tensor self, Device? device=None) -> Tensor", method=False, function=False)
def _pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """ATen's name for `pin_memory`."""
    return self.pin_memory(device)  # type: ignore[attr-defined, no-any-return]


@composite("_is_all_true(Tensor self) -> Tensor", method=False, function=False)
def _is_all_true(self: Tensor) -> Any:
    """Whether all elements of a tensor of bools are True.

    Raises:
        RuntimeError: it is of another type.
    """
    if self.dtype is not dt.bool_:
        raise RuntimeError("_is_all_true: a tensor of bools is expected")
    return self.all()  # type: ignore[attr-defined]


@composite("is_nonzero(Tensor self) -> bool")
def is_nonzero(input: Tensor) -> bool:
    """Whether a tensor of one element is not zero.

    Shape () or any other of one element.

    >>> import flambeau as torch
    >>> torch.is_nonzero(torch.tensor([0.0])), torch.is_nonzero(torch.tensor(2))
    (False, True)
    """
    if input._data.size != 1:
        word = "no values" if not input._data.size else "more than one value"
        raise RuntimeError(f"Boolean value of Tensor with {word} is ambiguous")
    return bool(input._data.item())
