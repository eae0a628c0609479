"""Runs a program in a library, one statement after the other; an error ends only its statement,
but one from within backward the program: which gradients are there then is nobody's promise.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from types import CodeType
from typing import Any

import numpy as np

from .observing import Line, Outcome, is_tensor
from .words import Words

UNSEEN = ("__builtins__", "__warningregistry__")
"""Names that the interpreter gives."""


@contextmanager
def quiet() -> Iterator[None]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


@lru_cache(maxsize=64)
def statements(text: str) -> tuple[tuple[str, CodeType], ...]:
    """The statements of a program, each with its text."""
    found = []
    lines = text.encode().splitlines()  # positions are counted in bytes
    for node in ast.parse(text).body:
        inner = _written(lines, node)
        module = ast.Module([node], [])
        found.append((inner, compile(module, "<drawn>", "exec", dont_inherit=True)))
    return tuple(found)


def _written(lines: list[bytes], node: ast.stmt) -> str:
    own = lines[node.lineno - 1 : node.end_lineno]
    own[-1] = own[-1][: node.end_col_offset]
    own[0] = own[0][node.col_offset :]
    return b"\n".join(own).decode()


def begin_numbers(torch: Any, number: int) -> None:
    """Begin the random numbers of the CPU. `manual_seed` of PyTorch writes down the stack for every
    other device, and keeps it."""
    torch.random.default_generator.manual_seed(number)


def outcome(text: str, torch: Any, shift: float = 0.0, language: type[Words] = Words) -> Outcome:
    """What comes of a program."""
    words = language(torch, shift)
    names = words.names()
    given = {*names, *UNSEEN}
    found = Outcome()
    begin_numbers(torch, 7)
    with quiet(), words.apart():
        for inner, code in statements(text):
            before = dict(names)
            line = _run(inner, code, names, words)
            line.values = _values(names, before, words) | words.watched(names)
            line.lent = "backward(" in inner and _lent(names)
            found.lines.append(line)
            if line.error and any(word in inner for word in words.ends):
                line.values = {}  # which gradients are there by then differs
                break
        found.final = final({k: v for k, v in names.items() if k not in given}, words)
    return found


def _run(inner: str, code: CodeType, names: dict[str, Any], words: Words) -> Line:
    line = Line(inner)
    words.notes = line.notes
    with words.listening(line):
        try:
            exec(code, names)  # noqa: S102
        except Exception as error:  # noqa: BLE001  # compared, whatever it is
            line.error = type(error).__name__
            line.said = str(error).partition("\n")[0]
    return line


def _values(names: dict[str, Any], before: dict[str, Any], words: Words) -> dict[str, Any]:
    """What a statement gave names to."""
    return {
        name: words.plain(value)
        for name, value in names.items()
        if name not in UNSEEN and before.get(name, before) is not value
    }


def _has_memory(tensor: Any) -> bool:
    try:
        return bool(tensor.numel() and tensor.untyped_storage().data_ptr())
    except RuntimeError:  # zeros that PyTorch has not made yet
        return False


def _lent(names: dict[str, Any]) -> bool:
    """Whether a gradient lies in the memory of a variable."""
    tensors = [value for value in names.values() if is_tensor(value) and _has_memory(value)]
    held = {value.untyped_storage().data_ptr() for value in tensors}
    grads = [_grad(value) for value in tensors]
    grads = [g for g in grads if g is not None and _has_memory(g)]
    grads = [g for g in grads if not any(g is value for value in tensors)]
    return any(g.untyped_storage().data_ptr() in held for g in grads)


def final(names: dict[str, Any], words: Words) -> dict[str, Any]:
    """All that is there at the end."""
    memories: dict[int, int] = {}
    found: dict[str, Any] = {}
    for name, value in names.items():
        if not is_tensor(value):
            found[name] = words.plain(value)
            continue
        found[name] = words.looked(value, memories, named=True)
        grad = _grad(value)
        found[f"{name}.grad"] = None if grad is None else words.looked(grad, dict(memories))
    return found


def _grad(tensor: Any) -> Any:
    """The gradient that a tensor has, if it is one that may have one."""
    try:
        return tensor.grad if tensor.is_leaf or tensor.retains_grad else None
    except RuntimeError:  # a stale view, which may not be asked
        return None
