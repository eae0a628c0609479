"""Formulas as MathML, which browsers draw themselves: no script, and nothing from a network."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math import latex2mathml


def text_of(node: nodes.Element, display: bool) -> str:
    tree = latex2mathml.tex2mathml(node.astext(), as_block=display)
    return str(tree).replace("\n", "")


def visit_inline(self: Any, node: nodes.Element) -> None:
    self.body.append(f'<span class="formula">{text_of(node, False)}</span>')
    raise nodes.SkipNode


def visit_display(self: Any, node: nodes.Element) -> None:
    self.body.append(f'<div class="formula">{text_of(node, True)}</div>')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_display, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
