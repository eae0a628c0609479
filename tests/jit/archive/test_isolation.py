"""What Python itself sees while hostile archives are loaded and run: see `watched.py`.

No file is opened, nothing is imported, no socket, no process. Text is compiled and executed only
where flambeau writes it: `<torchscript 7>`, the program as Python, and `<string>`, what calls it.
No word of an archive is in either. `<archive>`, the code itself, is parsed, and never executed.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
HARMLESS = frozenset((
    "builtins.id", "object.__getattr__", "object.__setattr__", "object.__delattr__",
    "sys._getframe", "sys._getframemodulename", "ctypes.cdata", "ctypes.addressof",
    "gc.get_objects",
))  # fmt: skip
"""Events that read what the process has already, and only say so."""
TEMPLATES = re.compile(r"<torchscript \d+>|<string>")


@pytest.fixture(scope="module")
def events():
    command = [sys.executable, "-m", "tests.jit.archive.watched"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [event for event in json.loads(done.stdout) if event[0] not in HARMLESS]


def test_only_our_templates_are_executed(events):
    executed = [place for event, place, _ in events if event == "exec"]
    assert executed
    assert [place for place in executed if not TEMPLATES.fullmatch(place)] == []


def test_templates_hold_no_word_of_an_archive(events):
    texts = [(place, has_word) for event, place, has_word in events if event == "compile"]
    assert any(place == "<archive>" and has_word for place, has_word in texts)
    assert [place for place, has_word in texts if has_word and place != "<archive>"] == []
    assert all(place == "<archive>" or TEMPLATES.fullmatch(place) for place, _ in texts)


def test_nothing_else_happens(events):
    """But that Python's parser looks for a file `<archive>`, to show the line of an error."""
    others = {(event, place) for event, place, _ in events if event not in ("exec", "compile")}
    assert others <= {("open", "<archive>")}
