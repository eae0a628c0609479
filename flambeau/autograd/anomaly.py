"""What watches nodes while they run: observers, anomaly mode, emulated devices."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np

from flambeau._core import modes
from flambeau.autograd.graph import Node
from flambeau.autograd.notes import evaluating
from flambeau.autograd.refitted import refitted


class Anomaly:
    """Settings of anomaly mode; `modes.watch.anomaly` switches it."""

    check_nan = True


def watched_apply(node: Node, grad: Any) -> tuple[Any, ...]:
    """A node's gradients, while observers look on, or in anomaly mode."""
    observers = modes.stacks.observers
    for observer in observers:
        observer.before_node(node, grad)
    try:
        grads = applied(node, grad)
    except BaseException:
        for observer in observers:
            observer.failed()
        raise
    if refitted.refs:
        grads = refitted.fitting(node, grads)
    for observer in observers:
        observer.node(node, grad, grads)
    return grads


def applied(node: Node, grad: Any) -> tuple[Any, ...]:
    """A node's gradients; in anomaly mode errors show where the operator was called."""
    return _explained(node, grad) if modes.watch.anomaly else node.apply(grad)


def _explained(node: Node, grad: Any) -> tuple[Any, ...]:
    outer, evaluating.node = evaluating.node, node
    try:
        return node.apply(grad)
    except Exception:
        _print_forward_lines(node)
        raise
    finally:
        evaluating.node = outer


def check_numbers(node: Node, grads: tuple[Any, ...]) -> None:
    """In anomaly mode: NaNs show where the operator was called. Call it after hooks."""
    if not (modes.watch.anomaly and Anomaly.check_nan):
        return
    for position, part in enumerate(grads):
        if part is None:
            continue
        data = getattr(part, "_entries", part)._data
        if data.dtype.kind in "fcVW" and np.isnan(data).any():
            _print_forward_lines(node)
            raise RuntimeError(
                f"Function '{node.name()}' returned nan values in its {position}th output."
            )


def _print_forward_lines(node: Node) -> None:
    """Where the operator was called, and the one whose backward called it, and so on."""
    lines = node.metadata.get("traceback_")
    if lines is None:
        _warn(f"Error detected in {node.name()}. No forward pass information available. Enable "
              "detect anomaly during forward pass for more information.")  # fmt: skip
    else:
        _warn(f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n"
              f"{''.join(lines)}")  # fmt: skip
    parent = node.metadata.get("parent_")
    while parent is not None:
        _print_parent(parent)
        parent = parent.metadata.get("parent_")


def _print_parent(parent: Node) -> None:
    lines = parent.metadata.get("traceback_")
    if lines is None:
        _warn("\n\nPrevious calculation was induced by "
              f"{parent.name()}. No forward pass information available. Enable detect anomaly "
              "during forward pass for more information.")  # fmt: skip
        return
    _warn("\n\nPrevious calculation was induced by "
          f"{parent.name()}. Traceback of forward call that induced the previous calculation:\n"
          f"{''.join(lines)}")  # fmt: skip


def _warn(text: str) -> None:
    """Warn; a warning that is to be an error is printed, so as not to hide the error itself."""
    try:
        warnings.warn(text, UserWarning, stacklevel=7)
    except UserWarning as warning:
        sys.stderr.write(f"{type(warning).__name__}: {warning}\n")
