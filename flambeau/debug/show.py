"""`flambeau.debug.show`: a drawing of what a model does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from flambeau.debug.graph_svg import svg
from flambeau.debug.html import svg_image
from flambeau.debug.module_graph import Call, record
from flambeau.nn import Module


class Drawing:
    """A graph of calls, which a notebook shows.

    calls: the boxes, in the order in which they ran.
    svg: the text of the picture.
    """

    def __init__(self, calls: list[Call]) -> None:
        self.calls = calls
        self.svg = svg(calls)

    def save(self, path: str | Path) -> None:
        """Write the SVG file."""
        Path(path).write_text(self.svg, encoding="utf-8")

    def _repr_html_(self) -> str:
        return f'<div class="flambeau-graph">{svg_image(self.svg, repr(self))}</div>'

    def __repr__(self) -> str:
        """A line for each box."""
        return "\n".join(_line(call) for call in self.calls)


def _line(call: Call) -> str:
    shapes = " ".join(str(tuple(shape)) for shape in call.shapes)
    sources = ", ".join(source.path or source.title for source in call.before)
    name = f"{call.title} {call.path}".strip()
    return f"{name}: {shapes}" + (f" from {sources}" if sources else "")


def show(model: Module, inputs: Any) -> Drawing:
    """Draw the graph of a model: its modules and the functions between them, with shapes and times.

    model: any module; it is called once before, so that times are not those of first use.
    inputs: what it is called with: a tensor, or a tuple of arguments.

    Layers of `torch.nn` and modules that hold no others are one box each. It runs without recording
    gradients, in the mode that the model is in: random layers draw, batch norm counts. A notebook
    shows the drawing; `show(...).save("model.svg")` writes it.

    >>> import flambeau as torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU())
    >>> torch.debug.show(model, torch.ones(2, 4))
    input: (2, 4)
    Linear 0: (2, 8) from input
    ReLU 1: (2, 8) from 0
    output: (2, 8) from 1
    """
    given = inputs if isinstance(inputs, tuple) else (inputs,)
    record(model, given)
    return Drawing(record(model, given))
