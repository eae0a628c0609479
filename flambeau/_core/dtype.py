"""Element types: `torch.float32` and its like, `finfo` and `iinfo`."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np


class dtype:
    """An element type. There is one object per type; compare with `is` or `==`.

    >>> import flambeau as torch
    >>> torch.float32.itemsize, torch.float32.is_floating_point
    (4, True)
    """

    __slots__ = (
        "c_name",
        "is_complex",
        "is_floating_point",
        "is_signed",
        "itemsize",
        "name",
        "numpy_dtype",
        "scalar_name",
    )

    def __init__(
        self, name: str, scalar_name: str, numpy_type: Any, category: str, c_name: str = ""
    ) -> None:
        self.name = name
        self.scalar_name = scalar_name  # the word that error messages use: "Float", "Long", ...
        self.c_name = c_name or f"c10::{scalar_name}"  # what others of them say: "long int", ...
        self.numpy_dtype = np.dtype(numpy_type)
        self.itemsize = self.numpy_dtype.itemsize
        self.is_floating_point = category == "float"
        self.is_complex = category == "complex"
        self.is_signed = category in ("float", "complex", "signed")

    def to_real(self) -> dtype:
        """The type of the real part: complex64 gives float32; real types give themselves."""
        return REAL_OF.get(self, self)

    def to_complex(self) -> dtype:
        """The complex type whose parts have this type."""
        if self.is_complex:
            return self
        if self not in COMPLEX_OF:
            raise RuntimeError(f"to_complex: {self} has no complex type")
        return COMPLEX_OF[self]

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> Any:
        return (_by_name, (self.name,))

    def __copy__(self) -> dtype:
        return self

    def __deepcopy__(self, memo: Any) -> dtype:
        return self


class QuantizedType(dtype):
    """A type of quantized tensors, of which there are none: libraries name it in their tables."""

    __slots__ = ()

    def __init__(self, name: str, scalar_name: str, itemsize: int) -> None:
        self.name, self.scalar_name, self.itemsize = name, scalar_name, itemsize
        self.is_floating_point = self.is_complex = False
        self.is_signed = not name.startswith("quint")

    @property
    def numpy_dtype(self) -> Any:  # type: ignore[override]
        """No array has it.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError(f"{self}: there are no quantized tensors")


def _by_name(name: str) -> dtype:
    return BY_NAME.get(name) or QUANTIZED[name]


bool_ = dtype("bool", "Bool", np.bool_, "bool", "bool")
uint8 = dtype("uint8", "Byte", np.uint8, "unsigned", "unsigned char")
int8 = dtype("int8", "Char", np.int8, "signed", "signed char")
int16 = dtype("int16", "Short", np.int16, "signed", "short int")
int32 = dtype("int32", "Int", np.int32, "signed", "int")
int64 = dtype("int64", "Long", np.int64, "signed", "long int")
uint16 = dtype("uint16", "UInt16", np.uint16, "unsigned", "short unsigned int")
uint32 = dtype("uint32", "UInt32", np.uint32, "unsigned", "unsigned int")
uint64 = dtype("uint64", "UInt64", np.uint64, "unsigned", "long unsigned int")
float16 = dtype("float16", "Half", np.float16, "float")
bfloat16 = dtype("bfloat16", "BFloat16", ml_dtypes.bfloat16, "float")
float32 = dtype("float32", "Float", np.float32, "float", "float")
float64 = dtype("float64", "Double", np.float64, "float", "double")
complex32 = dtype(
    "complex32", "ComplexHalf", ml_dtypes.complex32, "complex", "c10::complex<c10::Half>"
)
complex64 = dtype("complex64", "ComplexFloat", np.complex64, "complex", "c10::complex<float>")
complex128 = dtype("complex128", "ComplexDouble", np.complex128, "complex", "c10::complex<double>")
float8_e4m3fn = dtype("float8_e4m3fn", "Float8_e4m3fn", ml_dtypes.float8_e4m3fn, "float")
float8_e5m2 = dtype("float8_e5m2", "Float8_e5m2", ml_dtypes.float8_e5m2, "float")
float8_e4m3fnuz = dtype("float8_e4m3fnuz", "Float8_e4m3fnuz", ml_dtypes.float8_e4m3fnuz, "float")
float8_e5m2fnuz = dtype("float8_e5m2fnuz", "Float8_e5m2fnuz", ml_dtypes.float8_e5m2fnuz, "float")
float8_e8m0fnu = dtype("float8_e8m0fnu", "Float8_e8m0fnu", ml_dtypes.float8_e8m0fnu, "float")

ALL = (
    bool_, uint8, int8, int16, int32, int64, uint16, uint32, uint64,
    float16, bfloat16, float32, float64, complex32, complex64, complex128,
    float8_e4m3fn, float8_e5m2, float8_e4m3fnuz, float8_e5m2fnuz, float8_e8m0fnu,
)  # fmt: skip
ALIASES = {
    "half": float16, "float": float32, "double": float64, "short": int16, "int": int32,
    "long": int64, "chalf": complex32, "cfloat": complex64, "cdouble": complex128,
}  # fmt: skip
CASTS = {**ALIASES, "bfloat16": bfloat16, "bool": bool_, "byte": uint8, "char": int8}
"""Methods of tensors that convert, `x.float()`, and the types that they give."""
BY_NAME = {entry.name: entry for entry in ALL}
BY_NUMPY = {entry.numpy_dtype: entry for entry in ALL}
COMPLEX_OF = {float32: complex64, float64: complex128, bfloat16: complex64, float16: complex32}
REAL_OF = {complex32: float16, complex64: float32, complex128: float64}

QUANTIZED = {
    name: QuantizedType(name, scalar_name, itemsize)
    for name, scalar_name, itemsize in (
        ("qint8", "QInt8", 1), ("quint8", "QUInt8", 1), ("qint32", "QInt32", 4),
        ("quint4x2", "QUInt4x2", 1), ("quint2x4", "QUInt2x4", 1),
    )
}  # fmt: skip

INTEGERS = frozenset(entry for entry in ALL[1:9])
HALVES = frozenset((float16, bfloat16))
NUMPY_HALVES = frozenset((float16.numpy_dtype, bfloat16.numpy_dtype))


class Defaults:
    """The types that `torch.set_default_dtype` chooses."""

    dtype = float32
    numpy_dtype = float32.numpy_dtype


def default_dtype() -> dtype:
    """The type of tensors made from Python floats; `torch.float32` unless changed.

    >>> import flambeau as torch
    >>> torch.get_default_dtype()
    torch.float32
    """
    return Defaults.dtype


def default_complex() -> dtype:
    """The type of tensors made from Python complex numbers."""
    return COMPLEX_OF[Defaults.dtype]


PYTHON_TYPES: dict[Any, dtype] = {float: float64, int: int64, bool: bool_, complex: complex128}
"""What Python's own types mean where an element type is asked for."""


def as_dtype(value: Any) -> Any:
    """The element type that a Python type stands for; anything else as it is."""
    return PYTHON_TYPES.get(value, value) if value.__class__ is type else value


def set_default_dtype(d: dtype) -> None:
    """Set the type of tensors made from Python floats (and of complex ones with it).

    >>> import flambeau as torch
    >>> torch.set_default_dtype(torch.float64)
    >>> torch.tensor([1.0]).dtype
    torch.float64
    >>> torch.set_default_dtype(torch.float32)
    """
    wanted = "only floating-point types are supported as the default type"
    if not isinstance(d, dtype):
        raise TypeError(f"invalid dtype object: {wanted}")
    if not d.is_floating_point:
        raise TypeError(wanted)
    Defaults.dtype = d
    Defaults.numpy_dtype = d.numpy_dtype
    for listener in on_default_change:
        listener()


on_default_change: list[Any] = []


def from_numpy_dtype(numpy_dtype: np.dtype[Any]) -> dtype:
    """The element type of an ndarray's dtype."""
    found = BY_NUMPY.get(numpy_dtype)
    if found is None or not numpy_dtype.isnative:
        raise TypeError(
            f"can't convert np.ndarray of type {numpy_dtype.type.__module__}."
            f"{numpy_dtype.type.__name__}. The only supported types are: float64, float32, "
            "float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, "
            "uint8, and bool."
        )
    return found


class finfo:
    """Limits of a floating-point type: bits, eps, max, min, tiny, smallest_normal, resolution.

    >>> import flambeau as torch
    >>> torch.finfo(torch.float32).eps
    1.1920928955078125e-07
    """

    def __init__(self, type: dtype | None = None) -> None:
        chosen = Defaults.dtype if type is None else as_dtype(type)
        if not isinstance(chosen, dtype) or not (chosen.is_floating_point or chosen.is_complex):
            raise TypeError(f"torch.finfo() requires a floating point input type. Use torch.iinfo "
                            f"to handle '{chosen}'")  # fmt: skip
        info = ml_dtypes.finfo(chosen.to_real().numpy_dtype)
        self.dtype = chosen.to_real().name
        self.bits = info.bits
        self.eps = float(info.eps)
        self.max = float(info.max)
        self.min = float(info.min)
        self.tiny = self.smallest_normal = float(info.smallest_normal)
        # 10 ** -digits10 of C; NumPy's figure is rounded to the type, and is another one for 8 bits
        self.resolution = 10.0 ** -int(info.nmant * math.log10(2))

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, "
            f"eps={self.eps:g}, smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, "
            f"dtype={self.dtype})"
        )


class iinfo:
    """Limits of an integer type: bits, max, min.

    >>> import flambeau as torch
    >>> torch.iinfo(torch.int8).min, torch.iinfo(torch.int8).max
    (-128, 127)
    """

    def __init__(self, type: dtype) -> None:
        chosen = as_dtype(type)
        if chosen not in INTEGERS:
            raise TypeError(f"torch.iinfo() requires an integer input type. Use torch.finfo "
                            f"to handle '{type}'")  # fmt: skip
        info = np.iinfo(chosen.numpy_dtype)
        self.dtype = chosen.name
        self.bits, self.max, self.min = info.bits, int(info.max), int(info.min)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"
