"""Ctrl-C while a module of rows is imported, which happens when one of its names is first used."""

from __future__ import annotations

import copy
import subprocess
import sys

import pytest

import flambeau as torch
from flambeau._ops.table.op import REGISTRY, register

SCRIPT = """
import flambeau as torch
from flambeau._ops.table.op import BY_NAME, LISTENERS

stopped = []

def interrupt(op):
    if op.public == "softmax" and not stopped:
        stopped.append(op)
        raise KeyboardInterrupt

LISTENERS.append(interrupt)
try:
    torch.softmax
except KeyboardInterrupt:
    LISTENERS.remove(interrupt)
assert torch.softmax(torch.ones(2), 0).tolist() == [0.5, 0.5]
assert stopped and stopped[0] not in BY_NAME["softmax"] and len(BY_NAME["softmax"]) == 1
"""


def test_an_interrupted_import_can_be_tried_again() -> None:
    """The rows of the first try make way; nothing is left half made."""
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True,
                          timeout=120, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_two_rows_of_one_name_are_still_refused() -> None:
    assert torch.exp
    with pytest.raises(ValueError, match="two rows for exp"):
        register(copy.copy(REGISTRY["exp"]))
