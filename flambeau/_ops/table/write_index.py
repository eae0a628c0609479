"""Writes `index.py`: which module of rows holds which name, and what Tensor has not.

    python -m flambeau._ops.table.write_index          # write it
    python -m flambeau._ops.table.write_index --check  # exit 1 if it is not up to date

Modules are imported one after the other in alphabetical order, each into what the ones before have
left, and what is new on the tables is noted. A name is filed under the module whose code it is.
"""

from __future__ import annotations

import importlib
import re
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

from flambeau._core.missing import torch_names
from flambeau._ops.table import op as table
from flambeau._ops.table.loading import PACKAGE, LazyAttribute, module_of_rows
from flambeau._tensor.tensor import Tensor, constructors

FOLDER = Path(__file__).parent
HEAD = "Which module holds which name. Written by `python -m flambeau._ops.table.write_index`."
HOLDS_ROWS = re.compile(
    r"^from flambeau\._ops\.table\.(op|rows|writers) import (?!Op$)"
    r"|^from flambeau\._ops\.table import [^#\n]*\bop\b"
    r"|^from flambeau\._tensor\.tensor import [^#]*?\b(method|provides|constructors)\b",
    re.MULTILINE,
)
"""What a module of rows imports: the kinds of rows, or what gives Tensor an attribute."""


def modules() -> list[str]:
    """All modules of rows, by their names in the package."""
    package = FOLDER.parent
    found = []
    for path in package.rglob("*.py"):
        name = ".".join(path.relative_to(package).with_suffix("").parts)
        if not name.startswith("table.") and HOLDS_ROWS.search(path.read_text(encoding="utf-8")):
            found.append(name)
    return sorted(found)


class Findings:
    """Names by module, for each of the tables."""

    def __init__(self) -> None:
        self.names: dict[str, set[str]] = {module: set() for module in modules()}
        self.attributes: dict[str, set[str]] = {}
        self.provides: dict[str, set[str]] = {}
        self.settable: set[str] = set()
        for module in modules():
            self._import(module)
        self._file_rows()

    def _import(self, module: str) -> None:
        attributes, provided = dict(Tensor.__dict__), dict(constructors)
        importlib.import_module(f"{PACKAGE}.{module}")
        for name, value in Tensor.__dict__.items():
            if attributes.get(name) is not value and not isinstance(value, LazyAttribute):
                self.attributes.setdefault(_home(value, module), set()).add(name)
                if isinstance(value, property) and value.fset is not None:
                    self.settable.add(name)
        for name, value in constructors.items():
            if provided.get(name) is not value:
                self.provides.setdefault(_home(value, module), set()).add(name)

    def _file_rows(self) -> None:
        for public, ops in dict.items(table.BY_NAME):
            for op in ops:
                self._file_row(public, op)

    def _file_row(self, public: str, op: Any) -> None:
        module = table.ALIAS_MODULES.get(public) or op.module
        self.names[module].add(public)
        if "." in public or not op.method:
            return
        mine = self.attributes.setdefault(module, set())
        if not _is_own(public):
            mine.add(public)
        if op.inplace and not _is_own(f"{public}_"):
            mine.add(f"{public}_")


def _is_own(name: str) -> bool:
    """Whether Tensor has an attribute written by hand under this name."""
    value = Tensor.__dict__.get(name)
    return value is not None and not isinstance(value, LazyAttribute) and _home(value, "") != ""


def _home(value: Any, fallback: str) -> str:
    """The module of rows whose code a function or property is."""
    function = value.fget if isinstance(value, property) else value
    name = getattr(function, "__module__", "") or ""
    scope = getattr(function, "__globals__", {})  # twins have PyTorch's names in `__module__`
    return module_of_rows(name) or module_of_rows(scope.get("__name__", "")) or fallback


def _missing(present: set[str]) -> set[str]:
    """Attributes of PyTorch's tensors that ours have not."""
    prefix = "torch.Tensor."
    names = {name.removeprefix(prefix) for name in torch_names() if name.startswith(prefix)}
    return {name for name in names - present if "." not in name and not hasattr(Tensor, name)}


def text() -> str:
    """The text of `index.py`."""
    found = Findings()
    missing = _missing(set().union(*found.attributes.values()))
    parts = [
        f'"""{HEAD}"""\n',
        _table("NAMES", found.names), _table("ATTRIBUTES", found.attributes),
        _table("PROVIDES", found.provides), _aliases(),
        _table("FACTS", _facts()), f"SETTABLE = {_words(found.settable)}\n",
        f"MISSING = {_words(missing)}\n",
    ]  # fmt: skip
    return "\n".join(parts)


def _table(name: str, entries: dict[str, set[str]]) -> str:
    lines = [f"{name} = {{"]
    for module in sorted(entries):
        lines.append(f'    "{module}": {_words(entries[module])},')
    return "\n".join([*lines, "}", ""])


def _aliases() -> str:
    """Further names of operators: they can be looked up without importing rows."""
    lines = [f'    "{new}": "{table.ALIASES[new]}",' for new in sorted(table.ALIASES)]
    return "\n".join(["ALIASES = {", *lines, "}", ""])


FACTS: dict[str, Callable[[table.Op], bool]] = {
    "any_entries": lambda op: op.sparse_entries == "any",
    "builtin": lambda op: op.builtin,
    "program": lambda op: op.program,
    "distinct_entries": lambda op: op.sparse_entries == "distinct",
    "elementwise": lambda op: op.elementwise,
    "fused": lambda op: op.fused,
    "may_give_input": lambda op: op.may_give_input,
    "regular": lambda op: op.is_regular,
    "undetermined": lambda op: op.undetermined,
}
"""What is asked of all rows at once, without importing them: see `op.Op` and `op.Further`."""


def _facts() -> dict[str, set[str]]:
    rows = table.REGISTRY.values()
    return {fact: {op.name for op in rows if holds(op)} for fact, holds in FACTS.items()}


def _words(words: set[str]) -> str:
    joined = " ".join(sorted(words))
    if len(joined) < 70:
        return f'"{joined}"'
    return f'"""\n{textwrap.fill(joined, 98, break_long_words=False, break_on_hyphens=False)}\n"""'


def main() -> None:
    path = FOLDER / "index.py"
    written = text()
    if "--check" in sys.argv:
        sys.exit(written != path.read_text(encoding="utf-8"))
    path.write_text(written, encoding="utf-8")


if __name__ == "__main__":
    main()
