"""What the commands share: the command line, errors as one line, sizes in words."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pickle import PicklingError, UnpicklingError

from flambeau.serialization.description.tree import printable
from flambeau.serialization.safetensors.header import SafetensorError

# What a file that is damaged, missing or in the wrong place raises. Other errors are ours.
BAD_FILE = (
    OSError, RuntimeError, EOFError, ValueError, UnpicklingError, PicklingError, SafetensorError,
)  # fmt: skip
UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")


class Refused(Exception):
    """A file that the command does not take; the text says why and, where there is, a way out."""


def make_parser(command: str, description: str, epilog: str = "") -> argparse.ArgumentParser:
    """A parser for `flambeau COMMAND`; wrong use ends with exit code 2."""
    return argparse.ArgumentParser(
        prog=f"flambeau {command}",
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def run(
    parser: argparse.ArgumentParser,
    words: list[str],
    action: Callable[[argparse.Namespace], int],
) -> int:
    """Parse, act, and turn a file's fault into one line on stderr and exit code 1."""
    try:
        code = action(parser.parse_args(words))
        sys.stdout.flush()
    except SystemExit as exit:
        return int(exit.code or 0)
    except BrokenPipeError:
        # The reader, say `head`, has seen enough; Python must not complain when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Refused as error:
        complain(f"{parser.prog}: {error}")
        return 1
    return code


@contextmanager
def about(path: str) -> Iterator[None]:
    """Whatever a bad file raises in the block becomes Refused, one line that begins with its name.

    Raises:
        Refused: the file is damaged, missing or not what the command takes.
    """
    try:
        yield
    except (*BAD_FILE, Refused) as error:
        detail = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        line = " ".join(detail.split()) or type(error).__name__
        raise Refused(f"{path}: {line}") from error


def complain(line: str) -> None:
    """One line on stderr, whatever the file has put into it."""
    sys.stderr.write(printable(line) + "\n")


def in_units(count: int) -> str:
    """A number of bytes with three digits: "512 B", "3.07 kB", "1.50 GB"."""
    value, unit = float(count), 0
    while value >= 999.5 and unit < len(UNITS) - 1:
        value /= 1000
        unit += 1
    if unit == 0:
        return f"{count} B"
    digits = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:.{digits}f} {UNITS[unit]}"


def plural(count: int, word: str) -> str:
    """ "1 tensor", "2,000 tensors"."""
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"
