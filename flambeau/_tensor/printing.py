"""The text of `repr(tensor)`, made from a NumPy array, character for character as torch writes it.

A tensor above `threshold` elements is cut to its edges first, so that the cost depends on what is
shown and not on what is stored.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from flambeau._core.parts import imaginary_part, real_part

NO_VALUES = "[...]"
SCI_MODE_RATIO = 1000.0
SCI_MODE_ABOVE = 1e8
SCI_MODE_BELOW = 1e-4
SMALLEST_E8M0 = 2.0**-127
DTYPES_NEVER_NAMED = frozenset({"torch.int64", "torch.bool"})
COMPLEX_DTYPES = frozenset({"torch.complex32", "torch.complex64", "torch.complex128"})


@dataclass(frozen=True, slots=True)
class PrintOptions:
    """What `set_printoptions` sets; `sci_mode=None` chooses the notation from the values."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


PROFILES = {
    "default": PrintOptions(),
    "short": PrintOptions(precision=2, edgeitems=2),
    "full": PrintOptions(threshold=math.inf),
}


@dataclass(slots=True)
class _Current:
    """Holds the options in force."""

    options: PrintOptions


_current = _Current(PROFILES["default"])


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors are printed; what is None stays, except `sci_mode`, where None is a choice.

    Args:
        precision: digits after the point of a floating point number (4).
        threshold: number of elements above which only the edges are shown (1000).
        edgeitems: elements shown at either end of a dimension that is cut (3).
        linewidth: characters of a line (80).
        profile: "default", "short" or "full", applied before the other arguments. As in torch,
            a name that is none of these changes nothing.
        sci_mode: True or False forces scientific or plain notation; None lets the values decide.

    >>> import flambeau as torch
    >>> torch.set_printoptions(precision=2)
    >>> torch.tensor([1 / 3])
    tensor([0.33])
    >>> torch.set_printoptions(profile="default")
    """
    chosen = {
        "precision": precision,
        "threshold": threshold,
        "edgeitems": edgeitems,
        "linewidth": linewidth,
    }
    given: dict[str, Any] = {name: value for name, value in chosen.items() if value is not None}
    start = PROFILES.get(profile or "", _current.options)
    _current.options = replace(start, **given, sci_mode=sci_mode)


def get_printoptions() -> dict[str, Any]:
    """The options now in force, by name."""
    return asdict(_current.options)


@contextmanager
def printoptions(**kwargs: Any) -> Iterator[None]:
    """Set options, as `set_printoptions(**kwargs)`, until the end of the `with` block."""
    saved = _current.options
    set_printoptions(**kwargs)
    try:
        yield
    finally:
        _current.options = saved


def format_tensor(
    data: np.ndarray,
    *,
    prefix: str = "tensor(",
    dtype_name: str,
    is_default_dtype: bool,
    requires_grad: bool = False,
    grad_fn_name: str | None = None,
    device_suffix: str | None = None,
    contents: str | None = None,
    tangent: str = "",
) -> str:
    """The whole text of a tensor: `tensor([1., 2.], dtype=torch.float64, requires_grad=True)`.

    Args:
        data: the values, of any shape and any dtype of NumPy or ml_dtypes. The 32 bit complex
            dtype, which NumPy lacks, comes as complex64.
        prefix: the text up to the values; its length is the indentation of further lines.
        dtype_name: as printed, "torch.float32".
        is_default_dtype: whether dtype is the default one or the complex one that goes with it.
            int64 and bool, whose names are shown for empty tensors only, are known by name.
        requires_grad: adds `requires_grad=True`, unless there is a `grad_fn_name`.
        grad_fn_name: adds `grad_fn=<name>`.
        device_suffix: added as it is, for instance "device='cuda:0'".
        tangent: adds `tangent=...`.
        contents: stands in place of values that do not exist ("..." of a meta tensor). Only the
            shape of `data` is read then, and the size is always printed.

    Raises:
        RuntimeError: `edgeitems` is negative and the tensor must be cut.
    """
    options = _current.options
    has_values = contents is None and data.size > 0
    suffixes = [device_suffix] if device_suffix else []
    if contents is not None or _size_is_shown(data, options):
        suffixes.append(f"size={data.shape}")
    if _dtype_is_shown(dtype_name, is_default_dtype, has_values):
        suffixes.append(f"dtype={dtype_name}")
    if grad_fn_name:
        suffixes.append(f"grad_fn=<{grad_fn_name}>")
    elif requires_grad:
        suffixes.append("requires_grad=True")
    if tangent:
        suffixes.append(f"tangent={tangent}")

    indent = len(prefix)
    if contents is None:
        contents = _contents(data, indent, options) if has_values else "[]"
    return with_suffixes(prefix + contents, suffixes, indent, options.linewidth)


def format_sparse(parts: dict[str, np.ndarray], suffixes: list[str], new_line: bool = True) -> str:
    """The text of a sparse tensor: `tensor(indices=tensor(..), values=tensor(..), ..)`.

    Args:
        parts: the arrays that it is made of, by name; values come last.
        suffixes: what follows, on a new line unless told otherwise: `size=(2, 3)`, `nnz=3`, ...
    """
    options = _current.options
    start = "tensor("
    margin = " " * len(start)
    texts = []
    for name, data in parts.items():
        prefix = f"{name}=tensor("
        inside = f"[], size={data.shape}"
        if data.size:
            inside = _contents(data, len(start + prefix), options)
        texts.append(f"{prefix}{inside})")
    text = start + f",\n{margin}".join(texts)
    return with_suffixes(text, suffixes, len(start), options.linewidth, new_line=new_line)


def _size_is_shown(data: np.ndarray, options: PrintOptions) -> bool:
    """Whether the brackets may leave the shape open; as in torch, with no edges to show it is
    given even where all values are seen.
    """
    if data.size == 0:
        return data.ndim != 1
    return options.edgeitems == 0


def _dtype_is_shown(dtype_name: str, is_default_dtype: bool, has_values: bool) -> bool:
    """Where values are seen, they tell int64, bool and the complex default from the others."""
    if has_values:
        return not is_default_dtype and dtype_name not in DTYPES_NEVER_NAMED
    return not is_default_dtype or dtype_name in DTYPES_NEVER_NAMED | COMPLEX_DTYPES


def with_suffixes(
    text: str, suffixes: list[str], indent: int, linewidth: int, *, new_line: bool = False
) -> str:
    """Append the suffixes and the closing bracket; one that would not fit starts a line.

    `new_line`: the first of them does so in any case.
    """
    parts = [text]
    column = linewidth if new_line else len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if column + len(suffix) + 2 > linewidth:
            parts.append(",\n" + " " * indent + suffix)
            column = indent + len(suffix)
        else:
            parts.append(", " + suffix)
            column += len(suffix) + 2
    parts.append(")")
    return "".join(parts)


# ---- layout of the cells ----


def contents_text(data: np.ndarray, indent: int) -> str:
    """The bracketed values of an array of any size, under the options in force."""
    return _contents(data, indent, _current.options) if data.size else "[]"


def _contents(data: np.ndarray, indent: int, options: PrintOptions) -> str:
    """The bracketed values of a non-empty array; a single value without brackets for zero dims."""
    if data.ndim == 0:
        return _cells(data.reshape(1), options)[0][0]
    if data.size <= options.threshold:
        cells, width = _cells(data.reshape(-1), options)
        return _layout(cells, width, data.shape, (False,) * data.ndim, indent, options)
    if options.edgeitems == 0:
        return NO_VALUES

    is_cut = tuple(size > 2 * options.edgeitems for size in data.shape)
    shown = _edges(data, options.edgeitems)
    cells, width = _cells(shown.reshape(-1), options)
    return _layout(cells, width, shown.shape, is_cut, indent, options)


def _edges(data: np.ndarray, edgeitems: int) -> np.ndarray:
    """The corner blocks of `data`, joined: at most `2 * edgeitems` elements in each dimension."""
    if edgeitems < 0:
        raise RuntimeError(f"edgeitems must not be negative to print a summary, but is {edgeitems}")
    kept = []
    for size in data.shape:
        if size > 2 * edgeitems:
            kept.append([*range(edgeitems), *range(size - edgeitems, size)])
        else:
            kept.append(list(range(size)))
    return data[np.ix_(*kept)]


def _layout(
    cells: list[str],
    width: int,
    shape: tuple[int, ...],
    is_cut: tuple[bool, ...],
    indent: int,
    options: PrintOptions,
) -> str:
    """Rows first, then the dimensions from the inside out, each joining the blocks of the last.

    `cells` are in row-major order; where `is_cut`, an ellipsis goes into the middle.
    """
    ndim = len(shape)
    per_line = max(1, math.floor((options.linewidth - indent - ndim + 1) / (width + 2)))
    line_break = ",\n" + " " * (indent + ndim)
    blocks = []
    for row in _groups(cells, shape[-1], " ..." if is_cut[-1] else None):
        lines = [", ".join(row[at : at + per_line]) for at in range(0, len(row), per_line)]
        blocks.append("[" + line_break.join(lines) + "]")

    for dim in range(ndim - 2, -1, -1):
        separator = "," + "\n" * (ndim - 1 - dim) + " " * (indent + dim + 1)
        groups = _groups(blocks, shape[dim], "..." if is_cut[dim] else None)
        blocks = ["[" + separator.join(group) + "]" for group in groups]
    return blocks[0]


def _groups(items: list[str], size: int, ellipsis: str | None) -> Iterator[list[str]]:
    """Consecutive runs of `size` items, with the ellipsis, if any, in the middle of each."""
    for start in range(0, len(items), size):
        group = items[start : start + size]
        if ellipsis is not None:
            group.insert(size // 2, ellipsis)
        yield group


# ---- text of the cells ----


def _cells(flat: np.ndarray, options: PrintOptions) -> tuple[list[str], int]:
    """The text of each element, padded on the left, and the width that lines are counted with."""
    if flat.dtype.kind in "biu":
        texts = [str(value) for value in flat.tolist()]
        width = max(map(len, texts))
        return [text.rjust(width) for text in texts], width
    if flat.dtype.kind in "cW":
        return _complex_cells(flat, options)
    return _float_cells(flat, options)


def _complex_cells(flat: np.ndarray, options: PrintOptions) -> tuple[list[str], int]:
    """Both parts choose their notation alone; only the real part is padded."""
    real_texts, real_width = _float_cells(real_part(flat), options)
    imag_texts, imag_width = _float_cells(imaginary_part(flat), options)
    texts = []
    for real, padded_imag in zip(real_texts, imag_texts, strict=True):
        imag = padded_imag.lstrip()
        sign = "" if imag.startswith("-") else "+"
        texts.append(f"{real}{sign}{imag}j")
    return texts, real_width + imag_width + 1


def _float_cells(flat: np.ndarray, options: PrintOptions) -> tuple[list[str], int]:
    """Notation and width follow from some of the values; shorter texts are padded."""
    with np.errstate(invalid="ignore"):  # a signalling nan is as good as any other here
        values: list[float] = flat.astype(np.float64).tolist()
    deciding = _deciding_values(values, flat.dtype.name)
    to_text = _notation(deciding, options)
    width = max((len(to_text(value)) for value in deciding), default=1)
    return [to_text(value).rjust(width) for value in values], width


def _deciding_values(values: list[float], dtype_name: str) -> list[float]:
    """The finite values other than zero.

    float8_e8m0fnu has neither zero nor inf. There torch's test for zero finds the smallest
    number, and its test for finiteness lets nan pass.
    """
    if dtype_name == "float8_e8m0fnu":
        return [value for value in values if value != SMALLEST_E8M0]
    return [value for value in values if value and math.isfinite(value)]


def _notation(deciding: list[float], options: PrintOptions) -> Callable[[float], str]:
    """Choose between `1.`, `1.0000` and `1.0000e+00` for all values of a tensor."""
    if not deciding:
        return _integral_text

    is_integral = all(value.is_integer() for value in deciding)
    sci_mode = options.sci_mode
    if sci_mode is None:
        sci_mode = _wants_sci_mode(deciding, is_integral)
    if is_integral and not sci_mode:
        return _integral_text
    return f"{{:.{options.precision}{'e' if sci_mode else 'f'}}}".format


def _wants_sci_mode(deciding: list[float], is_integral: bool) -> bool:
    """Whether the magnitudes spread too far, or are too large or too small, for plain digits."""
    magnitudes = [abs(value) for value in deciding]
    if math.isnan(sum(magnitudes)):  # float8_e8m0fnu alone: no comparison with nan holds
        return False
    largest = max(magnitudes)
    smallest = min(magnitudes)
    if largest / smallest > SCI_MODE_RATIO or largest > SCI_MODE_ABOVE:
        return True
    return not is_integral and smallest < SCI_MODE_BELOW


def _integral_text(value: float) -> str:
    """`3.` for 3.0, but `inf` and `nan` without the point."""
    if math.isfinite(value):
        return f"{value:.0f}."
    return f"{value:.0f}"
