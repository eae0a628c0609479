"""Pictures of the guide are links to themselves: on a phone a tap shows one in its full size."""

from __future__ import annotations

import re
from typing import Any

PICTURE = re.compile(r'<img src="([^"]+)"[^>]*class = "sphx-glr-single-img"/>')


def linked(body: str) -> str:
    """The HTML of a page, its pictures as links to their files."""
    return PICTURE.sub(r'<a class="picture" href="\1">\g<0></a>', body)


def link_pictures(app: Any, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    if page.startswith("gallery/") and "body" in context:
        context["body"] = linked(context["body"])


def setup(app: Any) -> dict[str, bool]:
    app.connect("html-page-context", link_pictures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
