"""Nothing leads out of the site: links to files outside of `docs` become their names, and
animations take the theme's own icons instead of fetching some."""

from __future__ import annotations

import re
from typing import Any

OUTSIDE = re.compile(r"\[([^]]*)\]\(\.\./([^)]*)\)")


def without_links(text: str) -> str:
    """`[RESULTS](../benchmarks/RESULTS.md)` becomes `` `benchmarks/RESULTS.md` ``."""
    return OUTSIDE.sub(lambda found: f"`{found[2]}`", text)


def on_source_read(app: Any, name: str, source: list[str]) -> None:
    source[0] = without_links(source[0])


FETCHED = re.compile(r"<link[^>]*font-awesome[^>]*>")


def on_page(app: Any, name: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    if "body" in context:
        context["body"] = FETCHED.sub("", context["body"])


def setup(app: Any) -> dict[str, bool]:
    app.connect("source-read", on_source_read)
    app.connect("html-page-context", on_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
