"""A trace is checked: run beside the program, made once more, and compared."""

from __future__ import annotations

import difflib
import re
import warnings
from collections.abc import Callable
from typing import Any

from flambeau._core import modes
from flambeau._tensor.tensor import Tensor
from flambeau.jit.errors import TracerWarning, TracingCheckError
from flambeau.jit.ir.graph import Graph
from flambeau.jit.passes import inline
from flambeau.jit.passes.effects import is_random
from flambeau.jit.printing.graph_text import graph_text
from flambeau.testing import assert_close


def check(func: Callable[..., Any], traced: Any, inputs: Any, again: Callable[[Any], Any],
          tolerance: float, by_name: bool) -> None:  # fmt: skip
    """Compare a trace with the program, and with a second trace.

    Results that differ are warned of (TracerWarning).

    Raises:
        TracingCheckError: the graphs of both traces differ, or one of them cannot be run.
    """
    before = modes.grad.enabled
    modes.grad.enabled = False
    try:
        second = again(cloned(inputs))
        results = _run(traced, inputs, by_name, "trace", traced, second)
        expected = _run(func, inputs, by_name, "Python function", traced, second)
        if _compare(traced, results, expected, "Python function", tolerance):
            repeated = _run(second, inputs, by_name, "repeated trace", traced, second)
            _compare(traced, results, repeated, "repeated trace", tolerance)
    finally:
        modes.grad.enabled = before
    graphs, constants = _differences(traced.graph, second.graph)
    if graphs or constants:
        raise TracingCheckError(graphs, constants)


def cloned(inputs: Any) -> Any:
    """A copy of example inputs with tensors of their own."""
    if isinstance(inputs, Tensor):
        copied = inputs.detach().clone()  # type: ignore[attr-defined]
        return copied.requires_grad_(inputs.requires_grad)
    if isinstance(inputs, tuple) and hasattr(inputs, "_fields"):
        return type(inputs)(*map(cloned, inputs))
    if isinstance(inputs, (tuple, list)):
        return type(inputs)(map(cloned, inputs))
    if isinstance(inputs, dict):
        return {key: cloned(value) for key, value in inputs.items()}
    return inputs


def _run(func: Callable[..., Any], inputs: Any, by_name: bool, what: str, traced: Any,
         second: Any) -> list[Tensor]:  # fmt: skip
    given = cloned(inputs)
    try:
        result = func(**given) if by_name else func(*given)
    except Exception as error:
        graphs, constants = _differences(traced.graph, second.graph)
        text = "\n".join(f"\t{line}" for line in str(error).splitlines())
        raise TracingCheckError(
            graphs, constants,
            f"encountered an exception while running the {what} with test inputs.\n"
            f"Exception:\n{text}",
        ) from error  # fmt: skip
    results = result if isinstance(result, tuple) else (result,)
    return [item for item in results if isinstance(item, Tensor)]


def _compare(traced: Any, results: list[Tensor], expected: list[Tensor], what: str,
             tolerance: float) -> bool:  # fmt: skip
    same = True
    for number, (one, other) in enumerate(zip(results, expected, strict=False), 1):
        try:
            assert_close(one, other, rtol=tolerance, atol=0.0 if tolerance == 0 else tolerance,
                         equal_nan=True)  # fmt: skip
        except AssertionError as error:
            if same:
                _warn_of_chance(traced.graph)
            same = False
            warnings.warn(
                f"Output nr {number}. of the traced function does not match the corresponding "
                f"output of the {what}. Detailed error:\n{error}",
                TracerWarning,
                stacklevel=5,
            )
    return same


def _warn_of_chance(graph: Graph) -> None:
    found = [node for node in graph.walk() if is_random(node)]
    if found:
        listed = "\n".join(f"\t{node}" for node in found[:20])
        warnings.warn(
            "Trace had nondeterministic nodes. Did you forget call .eval() on your model? Nodes:\n"
            f"{listed}\nThis may cause errors in trace checking. To disable trace checking, pass "
            "check_trace=False to torch.jit.trace()",
            TracerWarning,
            stacklevel=6,
        )


def _differences(one: Graph, other: Graph) -> tuple[str, str]:
    """What differs: the graphs' texts, and the tensors that are constants in them."""
    first, second = _inlined(one), _inlined(other)
    first.erase_facts()
    second.erase_facts()
    texts = [_text(first), _text(second)]
    before, after = (text.splitlines(keepends=True) for text in texts)
    graphs = ""
    if texts[0] != texts[1]:
        shown = "".join(f"\t{line}" for line in difflib.ndiff(before, after))
        graphs = f"Graph diff:\n{shown}\n"
    constants = ""
    for a, b in zip(first.walk(), second.walk(), strict=False):
        if a.kind != b.kind:
            break
        values = [node.attributes.get("value") for node in (a, b)]
        if all(isinstance(value, Tensor) for value in values):
            try:
                assert_close(*values, equal_nan=True)
            except AssertionError as error:
                constants = f"Node:\n\t{a}\nComparison exception: \t{error}"
                break
    return graphs, constants


def _inlined(graph: Graph) -> Graph:
    copied = graph.copy()
    inline(copied)
    return copied


def _text(graph: Graph) -> str:
    """The text without places and values that may differ from run to run."""
    text = re.sub(r"___torch_mangle_\d+\.", "", graph_text(graph))
    return re.sub(r", scope: .*|\s*# .*|\{[^}]*\}", "", text)
