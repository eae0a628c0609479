"""`flambeau doctor PACKAGE ...`: does a package import, and what does it want that is missing?"""

from __future__ import annotations

import argparse
import subprocess
import sys

from flambeau._commands.common import make_parser, plural, run
from flambeau._commands.names import is_there, used_names

DESCRIPTION = """\
Import packages under `flambeau run`, each in a process of its own, and say which names of PyTorch
their source uses that flambeau has not.
"""
EPILOG = """\
A package that imports can still use a missing name later. The exit code is 1 if a package does
not import.
"""
SHOWN = 20


def main(words: list[str]) -> int:
    """Carry out the command."""
    parser = make_parser("doctor", DESCRIPTION, EPILOG)
    parser.add_argument("packages", metavar="PACKAGE", nargs="+")
    return run(parser, words, _act)


def _act(options: argparse.Namespace) -> int:
    from flambeau import hook

    hook.install()
    # A list first: every package is looked at, also after one that does not import.
    return max([_examine(package) for package in options.packages])


def _examine(package: str) -> int:
    counted = used_names(package)
    absent = sorted((name for name in counted if not is_there(name)), key=lambda n: -counted[n])
    code, error = _import(package)
    sys.stdout.write(f"{package}: {'imports' if code == 0 else f'does not import: {error}'}\n")
    told = plural(len(counted), "name")
    sys.stdout.write(f"  uses {told} of PyTorch, {len(absent)} of them missing\n")
    for name in absent[:SHOWN]:
        sys.stdout.write(f"  missing: {name} ({plural(counted[name], 'use')})\n")
    if len(absent) > SHOWN:
        sys.stdout.write(f"  and {len(absent) - SHOWN} more: `flambeau names {package}`\n")
    return code


def _import(package: str) -> tuple[int, str]:
    """Exit code 0, or 1 and the last line of what it said."""
    code = f"import importlib; importlib.import_module({package!r})"
    command = [sys.executable, "-m", "flambeau", "run", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = done.stderr.strip().splitlines()
    return int(done.returncode != 0), lines[-1] if lines else f"exit code {done.returncode}"
