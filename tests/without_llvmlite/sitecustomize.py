"""With this folder in PYTHONPATH, Python and the processes it starts find no llvmlite.

It is as if it were not installed: for imports, `find_spec` and `importlib.metadata`. What a process
should load despite of it cannot be had: finders are replaced before anything else is imported.
"""

from __future__ import annotations

import sys
from typing import Any

HIDDEN = ("llvmlite",)


class WithoutHidden:
    """A finder that knows all that another one knows, except for the hidden packages."""

    def __init__(self, finder: Any) -> None:
        self.finder = finder

    def __getattr__(self, name: str) -> Any:
        return getattr(self.finder, name)

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        """None for hidden packages and what is in them."""
        if fullname.partition(".")[0] in HIDDEN:
            return None
        return self.finder.find_spec(fullname, path, target)

    def find_distributions(self, *context: Any) -> Any:
        """The installed distributions but the hidden ones."""
        find = getattr(self.finder, "find_distributions", None)
        found = find(*context) if find is not None else ()
        return (one for one in found if one.metadata["Name"] not in HIDDEN)


sys.meta_path[:] = [WithoutHidden(finder) for finder in sys.meta_path]
