"""Values as text: `str`, `format`, `%` and `print`, in the words of C++: `1.` for a float."""

from __future__ import annotations

import re
from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau.jit.ir.types import FunctionType
from flambeau.jit.operators.identities import number_of
from flambeau.jit.operators.registry import implements

SPECIFIER = re.compile(r"%(.?)", re.DOTALL)


def number_text(value: float) -> str:
    """A float with 17 digits at most, always with a point or an exponent."""
    text = f"{value:.17g}"
    return text if not text.lstrip("-").isdigit() else f"{text}."


@implements("str")
def text_of(value: Any) -> str:
    """A value of any type."""
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return number_text(value)
    if isinstance(value, complex):
        sign = "" if value.imag < 0 else "+"
        return f"{number_text(value.real)}{sign}{number_text(value.imag)}j"
    if isinstance(value, Tensor):
        return tensor_text(value)
    if isinstance(value, list):
        return f"[{', '.join(map(text_of, value))}]"
    if isinstance(value, tuple):
        inner = ", ".join(map(text_of, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{text_of(k)}: {text_of(v)}' for k, v in value.items())}}}"
    if isinstance(value, FunctionType):
        return value.function.name
    declared = getattr(value, "_type", None)
    if declared is not None:
        return f"<{declared} object at {number_of(value):#x}>"
    return str(value)


@implements("format")
def format_(text: str, *values: Any) -> str:
    """`text` with a value for each `{}`."""
    pieces = text.split("{}")
    if len(pieces) - 1 > len(values):
        raise RuntimeError(f"Too few arguments for format string: {text}")
    made = [pieces[0]]
    for piece, value in zip(pieces[1:], values, strict=False):
        made += [text_of(value), piece]
    return "".join(made)


@implements("percentFormat")
def percent_format(text: str, *values: Any) -> str:
    """`text % values` with plain specifiers: `%s`, `%d`, `%f`, `%e`, `%c`, `%%`."""
    # one value that is a tuple is the tuple of values
    rest = list(values[0] if len(values) == 1 and isinstance(values[0], tuple) else values)

    def fill(match: re.Match[str]) -> str:
        if match[1] == "%":
            return "%"
        if not match[1]:
            raise RuntimeError("Incomplete format specifier")
        if not rest:
            raise RuntimeError("Too few arguments for format string")
        return _specified(match[1], rest.pop(0))

    made = SPECIFIER.sub(fill, text)
    if rest:
        raise RuntimeError("Too many arguments for format string")
    return made


def _specified(specifier: str, value: Any) -> str:
    if specifier == "s":
        return text_of(value)
    if specifier in "di":
        return str(int(_number(specifier, value)))
    if specifier in "eEfF":
        return f"{float(_number(specifier, value)):{specifier}}"
    if specifier == "c":
        return value if isinstance(value, str) else chr(int(_number(specifier, value)))
    raise RuntimeError(f"The specifier %{specifier} is not supported in TorchScript format strings")


KINDS = {str: "String", Tensor: "Tensor", list: "GenericList", tuple: "Tuple", dict: "GenericDict",
         type(None): "None"}  # fmt: skip


def _number(specifier: str, value: Any) -> Any:
    if isinstance(value, (int, float)):
        return value
    kind = next((name for known, name in KINDS.items() if isinstance(value, known)), "Object")
    raise RuntimeError(f"%{specifier} requires a number for formatting, but got {kind}")


@implements("prim::Print")
def print_(*values: Any) -> None:
    """To the standard output, blanks between."""
    print(*map(text_of, values))  # noqa: T201


# ---- tensors, as C++ prints them: rows of columns, matrices under a heading

TYPE_NAMES = {"cpu": "CPU", "cuda": "CUDA", "meta": "Meta"}


def tensor_text(tensor: Any) -> str:
    """A tensor with its type and shape below."""
    sizes = ",".join(map(str, tensor.shape))
    kind = f"{TYPE_NAMES.get(tensor.device.type, '')}{tensor.dtype.scalar_name}Type"
    ending = f"[ {kind}{{{sizes}}} ]"
    if tensor.ndim == 0:
        return f"{_single(tensor.item())}\n{ending}"
    if tensor.numel() == 0:
        return ending
    return f"{_block(tensor.detach())}{ending}"


def _single(value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _block(tensor: Any) -> str:
    if tensor.ndim == 1:
        values = tensor.tolist()
        texts = _aligned(values)
        return "".join(f"{text}\n" for text in texts)
    if tensor.ndim == 2:
        flat = _aligned([value for row in tensor.tolist() for value in row])
        width = tensor.shape[1]
        rows = [flat[i : i + width] for i in range(0, len(flat), width)]
        return "".join(f"{' '.join(row)}\n" for row in rows)
    shown = []
    for index in _indices(tensor.shape[:-2]):
        head = ",".join(str(i + 1) for i in index)
        shown.append(f"({head},.,.) = \n{_block(tensor[index])}")
    return "\n".join(shown)


def _indices(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = [()]
    for size in shape:
        found = [(*index, i) for index in found for i in range(size)]
    return found


def _aligned(values: list[Any]) -> list[str]:
    if not any(isinstance(v, float) for v in values):
        texts = [_single(v) for v in values]
    elif all(v == int(v) for v in values if v == v and abs(v) != float("inf")):
        texts = [f"{v:.0f}" for v in values]
    else:
        texts = [f"{v:.4f}" for v in values]
    width = max(map(len, texts)) + (0 if any(t.startswith("-") for t in texts) else 1)
    return [text.rjust(width) for text in texts]
