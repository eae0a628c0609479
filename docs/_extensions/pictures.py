"""What phones need: pictures of the guide are links to themselves, so that a tap shows one in its
full size, downloads have short names, so that the three stand in one row, and long names may break
after a dot or an underscore instead of anywhere."""

from __future__ import annotations

import re
from typing import Any

PICTURE = re.compile(r'<img src="([^"]+)"[^>]*class = "sphx-glr-single-img"/>')
DOWNLOADS = {
    "Download Jupyter notebook:": "Notebook:",
    "Download Python source code:": "Script:",
    "Download zipped:": "Both, zipped:",
    "Download all examples in Jupyter notebooks:": "All notebooks:",
    "Download all examples in Python source code:": "All scripts:",
}
NAME = re.compile(r'(<h1>|<span class="(?:doc|pre)">)([A-Za-z_]\w*(?:\.\w+)*)(?=<)')
BREAKS = re.compile(r"(?<=[a-z0-9])([._])(?=[A-Za-z])")


def breakable(body: str) -> str:
    """The HTML of a page, with places in its names where a line may end."""
    return NAME.sub(lambda name: name[1] + BREAKS.sub(r"\1<wbr>", name[2]), body)


def linked(body: str) -> str:
    """The HTML of a page, its pictures as links to their files."""
    return PICTURE.sub(r'<a class="picture" href="\1">\g<0></a>', body)


def named_short(body: str) -> str:
    """The HTML of a page, its buttons for downloads with short names."""
    for long, short in DOWNLOADS.items():
        words = [
            " ".join(f'<span class="pre">{word}</span>' for word in text.split())
            for text in (long, short)
        ]
        body = body.replace(words[0], words[1])
    return body


def link_pictures(app: Any, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    if page.startswith("gallery/") and "body" in context:
        context["body"] = named_short(linked(context["body"]))
    if page.startswith("reference/") and "body" in context:
        context["body"] = breakable(context["body"])


def setup(app: Any) -> dict[str, bool]:
    app.connect("html-page-context", link_pictures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
