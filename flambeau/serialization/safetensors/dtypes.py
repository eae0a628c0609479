"""The dtypes of the format under its own names."""

from __future__ import annotations

from flambeau._core import dtype as dt
from flambeau.serialization.safetensors.header import SafetensorError, TensorInfo

DTYPES = {
    "BOOL": dt.bool_, "U8": dt.uint8, "I8": dt.int8, "F8_E5M2": dt.float8_e5m2,
    "F8_E4M3": dt.float8_e4m3fn, "F8_E8M0": dt.float8_e8m0fnu, "F8_E4M3FNUZ": dt.float8_e4m3fnuz,
    "F8_E5M2FNUZ": dt.float8_e5m2fnuz, "I16": dt.int16, "U16": dt.uint16, "F16": dt.float16,
    "BF16": dt.bfloat16, "I32": dt.int32, "U32": dt.uint32, "F32": dt.float32, "C64": dt.complex64,
    "F64": dt.float64, "I64": dt.int64, "U64": dt.uint64,
}  # fmt: skip
CODES = {entry: code for code, entry in DTYPES.items()}


def dtype_of(info: TensorInfo) -> dt.dtype:
    """The element type of a tensor. NotImplementedError for those below one byte."""
    if info.dtype not in DTYPES:
        raise NotImplementedError(
            f"tensor `{info.name}` has the dtype {info.dtype}, which flambeau does not have"
        )
    return DTYPES[info.dtype]


def code_of(name: str, dtype: dt.dtype) -> str:
    """The format's name of an element type. SafetensorError if it has none."""
    if dtype not in CODES:
        known = ", ".join(entry.name for entry in CODES)
        raise SafetensorError(
            f'Unknown dtype "{dtype.name}" of tensor `{name}`. Supported dtypes: {known}'
        )
    return CODES[dtype]
