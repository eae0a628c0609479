"""Element types that DLPack knows and NumPy's DLPack does not: bfloat16 and floats of 8 bits.

A capsule points to a C structure that says, among other things, which type elements have. NumPy
makes and reads capsules of unsigned integers of the same size; only the type is written over.
"""

from __future__ import annotations

import ctypes
import enum
from typing import Any

import numpy as np

from flambeau._core import dtype as dt


class DLDeviceType(enum.IntEnum):
    """Kinds of devices, numbered as DLPack numbers them."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLMAIA = 17


UNSIGNED = 1
CODES = {
    dt.bfloat16: 4, dt.float8_e4m3fn: 10, dt.float8_e4m3fnuz: 11, dt.float8_e5m2: 12,
    dt.float8_e5m2fnuz: 13, dt.float8_e8m0fnu: 14,
}  # fmt: skip
"""How the standard numbers these types."""
DTYPES = {(code, dtype.itemsize * 8): dtype for dtype, code in CODES.items()}
HEADS = {b"dltensor": 20, b"dltensor_versioned": 32 + 20}
"""Bytes before the type in each kind of capsule: its code and its bits."""

_name_of = ctypes.pythonapi.PyCapsule_GetName
_name_of.restype, _name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype = ctypes.c_void_p
_pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]


def exported(data: np.ndarray, dtype: dt.dtype, **asked: Any) -> Any:
    """A capsule over an array of such a type."""
    capsule = data.view(f"u{data.itemsize}").__dlpack__(**asked)
    _type_in(capsule)[0] = CODES[dtype]
    return capsule


CPU, CUDA = 1, 2
"""Kinds of devices, as the standard numbers them."""


def exported_from_device(data: Any, dtype: dt.dtype, **asked: Any) -> Any:
    """A capsule over an array in the memory of a GPU."""
    plain = np.ndarray.view(data, np.ndarray)
    asked.pop("dl_device", None)
    strange = dtype in CODES
    capsule = exported(plain, dtype, **asked) if strange else plain.__dlpack__(**asked)
    place = _device_in(capsule)
    place[0], place[1] = CUDA, data.place.index or 0
    return capsule


def device_of(capsule: Any) -> int | None:
    """The GPU that a capsule's memory is of, None for the CPU; the capsule says the CPU from now
    on, so that NumPy takes it."""
    if _name_of(capsule) not in HEADS:
        return None
    place = _device_in(capsule)
    if place[0] != CUDA:
        return None
    index = int(place[1])
    place[0], place[1] = CPU, 0
    return index


def _device_in(capsule: Any) -> Any:
    """Where a capsule says where its memory is: the kind of device, and its index."""
    name = _name_of(capsule)
    start = _pointer_of(capsule, name) + HEADS[name] - 12
    return (ctypes.c_int32 * 2).from_address(start)


def disguised(capsule: Any) -> Any:
    """The type of a capsule's elements, which are unsigned integers from now on; None where
    NumPy knows the type, or where this is no capsule that nobody has taken yet."""
    if _name_of(capsule) not in HEADS:
        return None
    kind = _type_in(capsule)
    found = DTYPES.get((kind[0], kind[1]))
    if found is not None:
        kind[0] = UNSIGNED
    return found


def _type_in(capsule: Any) -> Any:
    """Where a capsule says what its elements are: two bytes that may be written."""
    name = _name_of(capsule)
    start = _pointer_of(capsule, name) + HEADS[name]
    return (ctypes.c_uint8 * 2).from_address(start)
