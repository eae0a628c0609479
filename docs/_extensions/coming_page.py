"""The page "Coming from PyTorch", whose tables come from compatibility.md and torch_names.txt."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from reference_pages import NAMESPACES, _absent, public_names

BEGINNING = """\
# Coming from PyTorch

What is the same, what differs, and what is missing. The tables are made from those of
[compatibility](compatibility.md), which say more, and from the list of PyTorch's public names.

## Which of the ways is mine

| You have | You write | Then |
|---|---|---|
| a script of your own | `import flambeau as torch` | nothing else changes |
| a script that says `import torch`, which you leave alone | `flambeau run script.py` | `-m module` and `-c code` work, too |
| a notebook | `%load_ext flambeau` in the first cell | `import torch` is ours from then on |
| a program that loads libraries written for PyTorch | `import flambeau.hook; flambeau.hook.install()` | before anything imports torch |
| libraries that ask pip for PyTorch | `flambeau provide-torch` | then `pip install` finds `torch` there ([libraries](libraries.md)) |

If you do not know: a program that starts from one file takes `flambeau run`; one that a server or a
framework starts takes `flambeau provide-torch`.

## Deploying

**In a container.** flambeau is one wheel for all platforms. With NumPy and LLVM it takes some 260 MB, without LLVM 90; PyTorch for CPUs
takes 750 and needs NumPy as well.

```dockerfile
FROM python:3.12-slim
COPY . /app
RUN pip install --no-cache-dir /app/flambeau && flambeau warmup
CMD ["flambeau", "run", "/app/serve.py"]
```

`flambeau warmup` compiles the usual kernels while the image is built, so that the first request does not wait.
`FLAMBEAU_CACHE_DIR` says where they are kept.

**In a function.** Where the size of the package is limited, leave out `llvmlite`: everything works on NumPy, more
slowly for large tensors (`pip install --no-deps`, then NumPy and ml_dtypes). Load weights with
`torch.load(path, mmap=True)`: only what is used is read.

**In a notebook.** `%load_ext flambeau`; tensors and modules show themselves as tables
([a page of the guide](gallery/index) downloads as a notebook).

## What is the same

Names, signatures, shapes, types and promotion, views that share memory, error types and their words, random
streams from the same seed, and files in both directions. How much of each namespace is there:

"""


def counts() -> list[str]:
    """A row for each namespace: how many public names are there, and how many are not."""
    lines = ["| Namespace | There | Missing |", "|---|---|---|"]
    for namespace in NAMESPACES:
        there = sum(1 for _ in public_names(namespace))
        absent = [n for n in _absent(namespace) if not n.startswith("_")]
        lines.append(f"| [{namespace}](reference/{namespace}) | {there} | {len(absent)} |")
    return [*lines, "", "The [names that are missing](reference/missing) are listed with what to use instead.", ""]  # fmt: skip


def sections(text: str) -> list[tuple[str, list[str]]]:
    """(heading, lines of its tables) of compatibility.md."""
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("## "):
            found.append((line.removeprefix("## "), []))
        elif line.startswith("|") and found:
            found[-1][1].append(line)
    return [(heading, table) for heading, table in found if table]


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def differences(text: str) -> list[str]:
    """The tables of differences, a list for each heading: what, and what flambeau does."""
    lines = ["## What differs", ""]
    for heading, table in sections(text):
        rows = [cells(line) for line in table if not set(line) <= set("|- ")]
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        lines += [f"### {plain}", ""]
        for row in rows:
            if len(row) >= 3 and row[0]:
                lines.append(f"* **{row[0]}**: {row[-1]} (PyTorch: {row[1]})")
            elif len(row) == 2 and row[0]:
                lines.append(f"* **{row[0]}**: {row[1]}")
        lines.append("")
    return lines


def write_page(app: Any) -> None:
    folder = Path(app.srcdir)
    text = (folder / "compatibility.md").read_text(encoding="utf-8")
    page = BEGINNING + "\n".join([*counts(), *differences(text)])
    target = folder / "coming.md"
    if not target.exists() or target.read_text(encoding="utf-8") != page:
        target.write_text(page, encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    app.connect("builder-inited", write_page, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
