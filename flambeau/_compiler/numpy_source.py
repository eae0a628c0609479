"""Expressions as NumPy source: one call per primitive, temporaries reused in place."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau._compiler.expr import LEAVES, Expr
from flambeau._compiler.primitives import FLOAT_UFUNCS, PRIMITIVES


def single_ufunc(expression: Expr, kind: str = "") -> Any:
    """The ufunc that an expression is for a kind of types, if it is one applied to parameters and
    numbers."""
    if kind == "c" and expression.op == "log1p":
        return None  # NumPy's forgets what is small beside 1: `_complex_log1p`
    function = FLOAT_UFUNCS.get(expression.op) if kind == "f" else None
    function = function or PRIMITIVES.get(expression.op)
    if not isinstance(function, np.ufunc):
        return None
    computed = [a for a in expression.args if isinstance(a, Expr) and a.op not in LEAVES]
    return None if computed else function


def as_ufunc(expression: Expr, names: list[str], kind: str = "") -> Any:
    """The ufunc that an expression is for a kind of types, if it is one applied to the parameters
    in order."""
    function = single_ufunc(expression, kind)
    if function is None or len(expression.args) != len(names):
        return None
    for argument, name in zip(expression.args, names, strict=True):
        if not isinstance(argument, Expr) or argument.op != "parameter":
            return None
        if argument.args[0] != name:
            return None
    return function


def compile_kernel(
    title: str, expression: Expr, names: list[str], kind: str = ""
) -> Callable[..., Any]:
    """A function `kernel(*arrays, out=...)` that computes the expression for a kind of types."""
    ufunc = as_ufunc(expression, names, kind)
    if ufunc is not None:
        return ufunc  # type: ignore[no-any-return]
    text = render(expression, names)
    scope: dict[str, Any] = {"np": np, "finish": _finish, "asarray": np.asarray}
    scope.update({f"_{name}": function for name, function in PRIMITIVES.items()})
    scope["_log1p"] = _log1p
    filename = f"<flambeau numpy {title}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    exec(compile(text, filename, "exec"), scope)
    kernel: Any = scope["kernel"]
    ufunc = single_ufunc(expression, kind)
    if ufunc is not None:  # of parameters in another order, or of numbers
        kernel.ufunc = ufunc, [_leaf(argument, names) for argument in expression.args]
    return kernel  # type: ignore[no-any-return]


class Position(int):
    """Which parameter an operand is."""


def _leaf(argument: Any, names: list[str]) -> Any:
    """A parameter's position, or a number."""
    if isinstance(argument, Expr):
        found = argument.args[0]
        return Position(names.index(found)) if argument.op == "parameter" else found
    return argument


def _log1p(x: Any) -> Any:
    """log(1 + x) within a formula: NumPy's of float32 is off by 1.6 units in the last place where
    it has vectors of 512 bits, too much for what else a formula rounds."""
    if x.dtype.kind == "c":
        return _complex_log1p(x)
    if x.dtype != np.float32:
        return np.log1p(x)
    return np.log1p(x, dtype=np.float64).astype(np.float32)


def _complex_log1p(x: Any) -> Any:
    """log|1 + x| + i arg(1 + x); for small x by |1 + x|^2 - 1, which adds nothing to 1."""
    wide = x.astype(np.complex128)
    real, imag = wide.real, wide.imag
    small = 0.5 * np.log1p(real * (2 + real) + imag * imag)
    size = np.where(np.abs(wide) < 0.5, small, np.log(np.hypot(1 + real, imag)))
    result = np.empty(wide.shape, wide.dtype)
    result.real, result.imag = size, np.arctan2(imag, 1 + real)
    return result.astype(x.dtype)


def _finish(result: Any, out: Any) -> np.ndarray:
    if out is ...:
        return np.asarray(result)
    if result.ndim > out.ndim:  # dims of 1 in front, which copyto would leave out
        raise ValueError(f"could not broadcast {result.shape} into shape {out.shape}")
    np.copyto(out, result, casting="unsafe")
    return out  # type: ignore[no-any-return]


def render(expression: Expr, names: list[str]) -> str:
    """The source text of the kernel."""
    lines: list[str] = []
    known: dict[Any, str] = {}
    result = _emit(expression, lines, known)
    header = f"def kernel({', '.join([*names, 'out=...'])}):"
    return "\n".join([header, *(f"    {line}" for line in lines),
                      f"    return finish({result}, out)", ""])  # fmt: skip


def _emit(node: Any, lines: list[str], known: dict[Any, str]) -> str:
    """Write the lines that compute a node; returns the name or literal that holds it."""
    if not isinstance(node, Expr):
        return _literal(node)
    if node.op == "parameter":
        return str(node.args[0])
    if node.op == "constant":
        return _literal(node.args[0])
    operands = [_emit(argument, lines, known) for argument in node.args]
    key = (node.op, *operands)
    if key in known:
        return known[key]
    name = f"t{len(known)}"
    known[key] = name
    lines.append(f"{name} = _{node.op}({', '.join(operands)})")
    return name


def _literal(value: Any) -> str:
    if isinstance(value, float) and (value != value or value in (float("inf"), -float("inf"))):
        return f"float('{value}')"
    return repr(value)
