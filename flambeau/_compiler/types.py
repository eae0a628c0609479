"""The types of the kernel language: numbers, vectors of numbers, and pointers to numbers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number: its name, its LLVM type, its kind ("float", "int", "uint", "bool") and its bits."""

    name: str
    llvm: str
    kind: str
    bits: int

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return max(self.bits // 8, 1)

    @property
    def is_float(self) -> bool:
        """Whether arithmetic is that of floating-point numbers."""
        return self.kind == "float"

    @property
    def element(self) -> Scalar:
        """Itself: the element of a vector, seen from one lane."""
        return self

    @property
    def width(self) -> int:
        """One lane."""
        return 1

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Vector:
    """Several numbers of one type in a register."""

    element: Scalar
    width: int

    @property
    def llvm(self) -> str:
        """`<8 x float>`."""
        return f"<{self.width} x {self.element.llvm}>"

    @property
    def kind(self) -> str:
        """The kind of the elements."""
        return self.element.kind

    @property
    def bits(self) -> int:
        """Bits of one element."""
        return self.element.bits

    @property
    def is_float(self) -> bool:
        """Whether arithmetic is that of floating-point numbers."""
        return self.element.is_float

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return self.element.size * self.width

    def __repr__(self) -> str:
        return f"{self.element.name}x{self.width}"


@dataclass(frozen=True, slots=True)
class Pointer:
    """The address of elements of one type."""

    element: Scalar | Pointer
    kind = "pointer"
    llvm = "ptr"
    size = 8
    is_float = False

    def __repr__(self) -> str:
        return f"pointer({self.element})"


boolean = Scalar("boolean", "i1", "bool", 1)
i8 = Scalar("i8", "i8", "int", 8)
i16 = Scalar("i16", "i16", "int", 16)
i32 = Scalar("i32", "i32", "int", 32)
i64 = Scalar("i64", "i64", "int", 64)
i128 = Scalar("i128", "i128", "int", 128)
u8 = Scalar("u8", "i8", "uint", 8)
u16 = Scalar("u16", "i16", "uint", 16)
u32 = Scalar("u32", "i32", "uint", 32)
u64 = Scalar("u64", "i64", "uint", 64)
f16 = Scalar("f16", "half", "float", 16)
bf16 = Scalar("bf16", "i16", "float", 16)  # held as its bits; arithmetic goes through f32
f32 = Scalar("f32", "float", "float", 32)
f64 = Scalar("f64", "double", "float", 64)
b8 = Scalar("b8", "i8", "uint", 8)  # a bool in memory: one byte, 0 or 1

SCALARS = {t.name: t for t in (
    boolean, i8, i16, i32, i64, i128, u8, u16, u32, u64, f16, bf16, f32, f64, b8)}  # fmt: skip

OF_NUMPY = {
    "bool": b8, "int8": i8, "int16": i16, "int32": i32, "int64": i64,
    "uint8": u8, "uint16": u16, "uint32": u32, "uint64": u64,
    "float16": f16, "bfloat16": bf16, "float32": f32, "float64": f64,
}  # fmt: skip
"""The element type of an ndarray by its dtype's name; complex numbers have none."""


class Names(dict[Any, str]):
    """NumPy dtype -> its name, which NumPy composes anew in each call (2 us)."""

    def __missing__(self, dtype: Any) -> str:
        found = self[dtype] = dtype.name
        return found


NAMES = Names()


@cache
def vector(element: Scalar, width: int) -> Scalar | Vector:
    """`width` lanes of a type; one lane is the number itself."""
    return element if width == 1 else Vector(element, width)


@cache
def pointer(element: Scalar | Pointer) -> Pointer:
    """The type of an address of such elements."""
    return Pointer(element)


def like(shape: Scalar | Vector, element: Scalar) -> Scalar | Vector:
    """`element` with as many lanes as `shape` has."""
    return vector(element, shape.width)
