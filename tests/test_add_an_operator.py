"""docs/add-an-operator.md, carried out word for word in a copy of the package."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import flambeau

PACKAGE = Path(flambeau.__file__).parent
PAGE = Path(__file__).parents[1] / "docs" / "add-an-operator.md"
BLOCK = re.compile(r"^```python\n# ([^\n]+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
ROW = re.compile(r"^@.*?(?=\n\n|\Z)", re.DOTALL | re.MULTILINE)


def run(root: Path, *words: str) -> str:
    """What Python prints that finds the copy."""
    environment = {**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-W", "ignore::DeprecationWarning", *words]
    done = subprocess.run(command, env=environment, cwd=root, text=True, capture_output=True,
                          check=False)  # fmt: skip
    assert not done.returncode, done.stderr
    return done.stdout


def test_the_page_works(tmp_path: Path) -> None:
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PACKAGE, tmp_path / PACKAGE.name, ignore=ignored)
    blocks = BLOCK.findall(PAGE.read_text("utf-8"))
    *rows, (title, program) = blocks
    assert len(rows) == 2 and title == "try it"
    for name, text in rows:
        row = ROW.search(text)
        assert row is not None and row[0].count("\n") < 10, "a row of ten lines at most"
        path = tmp_path / name
        before = path.read_text("utf-8") + "\n\n" if path.exists() else ""
        path.write_text(before + text, "utf-8")
    run(tmp_path, "-m", "flambeau._ops.table.write_index")
    (tmp_path / "try_it.py").write_text(program, "utf-8")
    run(tmp_path, "try_it.py")
    shown = run(tmp_path, "-m", "flambeau", "ops", "sech", "sum_of_cubes")
    assert "aten::sech, aten::sech.out" in shown and "flambeau/_ops/reductions/cubes.py" in shown
