"""What the rows of the operator table say, as reStructuredText for the pages of the reference."""

from __future__ import annotations

import html
import inspect
import textwrap

from docstring_text import inline
from formulas import latex, size

from flambeau._commands.row_facts import facts
from flambeau._ops.table.gates import own_code
from flambeau._ops.table.op import BY_NAME, Op
from flambeau.debug.kernel_text import expression, text_of

KINDS = {
    "pointwise": "element by element: broadcasts, and has one formula for all types",
    "rows": "a formula over the rows along a dim",
    "kernel": "an algorithm of its own",
    "view": "a view: the result shares the memory of the tensor",
    "composite": "made of other operators",
    "factory": "makes a new tensor",
}
LONGEST_FORMULA = 60
SHOWN = ("called", "operators", "types", "autocast", "gradient", "forward mode", "vmap", "meta",
         "below autograd")  # fmt: skip


def section(op: Op) -> list[str]:
    """What one row says."""
    parts = [
        _literal(f"{op.text}", "text"),
        [f"This overload is {KINDS[op.kind]}.", ""],
        _formula(op),
        _facts(op),
        _body(op),
        _kernel(op),
    ]
    return [line for part in parts for line in part]


def rows_of(name: str) -> list[Op]:
    """The rows of a public name ("softmax", "linalg.inv")."""
    return BY_NAME.get(name, [])


def _literal(text: str, language: str = "python") -> list[str]:
    return [f".. code-block:: {language}", "", *textwrap.indent(text, "   ").splitlines(), ""]


def _formula(op: Op) -> list[str]:
    if op.kind not in ("pointwise", "rows"):
        return []
    try:
        found = expression(op)
    except (TypeError, ValueError):  # a body that decides by its numbers has no one formula
        return []
    return (
        [f".. math:: {latex(found, index='i' if op.kind == 'rows' else '')}", ""]
        if size(found) <= LONGEST_FORMULA
        else []
    )


def _facts(op: Op) -> list[str]:
    """What follows from the row: a line each."""
    lines = [f"* **{title}**: {inline(words)}" for title, words in facts(op) if title in SHOWN]
    if op.dtypes:
        lines.append(f"* **types**: {inline(op.dtypes)}")
    return [*lines, ""]


def _body(op: Op) -> list[str]:
    function = own_code(op.formula.function if op.kind == "rows" else op.body)
    try:
        source = inspect.getsource(function)
    except (OSError, TypeError):
        return []
    place = (inspect.getsourcefile(function) or "").rpartition("flambeau/")[2]
    title = f"The row, from flambeau/{place}"
    return _folded(title, textwrap.dedent(source))


def _folded(title: str, source: str) -> list[str]:
    """Code that is unfolded by a click."""
    summary = f"<details><summary>{html.escape(title)}</summary>"
    return [
        ".. raw:: html", "", f"   {summary}", "", *_literal(source),
        ".. raw:: html", "", "   </details>", "",
    ]  # fmt: skip


def _kernel(op: Op) -> list[str]:
    text = text_of(op)
    return _folded("The kernel that is compiled of it (float32)", text) if text else []
