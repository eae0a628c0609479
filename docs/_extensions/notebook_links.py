"""Links of the guide in its notebooks: a page of the guide is the notebook beside it.

The gallery's own translation to Markdown leaves references of Sphinx as they stand in the source.
"""

from __future__ import annotations

import re
from typing import Any

PAGE = re.compile(r":ref:`([^`<]+?)\s*<sphx_glr_gallery_(\w+)\.py>`")
OTHER = re.compile(r":(?:ref|doc):`([^`<]+?)\s*<[^`>]+>`")


def with_links(text: str) -> str:
    """A page's prose: references to pages as links of Markdown, other references as their words."""
    return OTHER.sub(r"\1", PAGE.sub(r"[\1](\2.ipynb)", text))


def setup(app: Any) -> dict[str, bool]:
    from sphinx_gallery import notebook

    translated = notebook.rst2md
    notebook.rst2md = lambda text, *rest, **named: translated(with_links(text), *rest, **named)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
