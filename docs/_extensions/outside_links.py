"""Links to files outside of `docs`, which are no pages of the site, become their names."""

from __future__ import annotations

import re
from typing import Any

OUTSIDE = re.compile(r"\[([^]]*)\]\(\.\./([^)]*)\)")


def without_links(text: str) -> str:
    """`[RESULTS](../benchmarks/RESULTS.md)` becomes `` `benchmarks/RESULTS.md` ``."""
    return OUTSIDE.sub(lambda found: f"`{found[2]}`", text)


def on_source_read(app: Any, name: str, source: list[str]) -> None:
    source[0] = without_links(source[0])


def setup(app: Any) -> dict[str, bool]:
    app.connect("source-read", on_source_read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
