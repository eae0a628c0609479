"""`flambeau verify FILE ...`: is every byte where it belongs, and what it was when written?"""

from __future__ import annotations

import argparse
import sys

from flambeau._commands.common import Refused, about, complain, make_parser, run
from flambeau._commands.progress import Progress
from flambeau.serialization.description.tree import printable
from flambeau.serialization.file_bytes import bytes_of_file
from flambeau.serialization.verification import verify

DESCRIPTION = """\
Check the structure of files, the checksum of every record and the place of every tensor,
without running any code that is in them.
"""
EPILOG = """\
The exit code is 0 if all files are sound, 1 if not. Only zip archives have checksums; of other
formats the structure is checked.
"""


def main(words: list[str]) -> int:
    """Carry out the command; the exit code is 1 if a file is damaged."""
    parser = make_parser("verify", DESCRIPTION, EPILOG)
    parser.add_argument("files", metavar="FILE", nargs="+")
    return run(parser, words, _verify_all)


def _verify_all(options: argparse.Namespace) -> int:
    # A list first: every file is looked at, also after one that is damaged.
    return max([_verify(path) for path in options.files])


def _verify(path: str) -> int:
    try:
        with about(path):
            data = bytes_of_file(path)
            with Progress(f"verify {printable(path)}", len(data)) as progress:
                verdict = verify(data, path, progress.advance)
    except Refused as error:
        complain(f"flambeau verify: {error}")
        return 1
    for problem in verdict.problems:
        complain(f"flambeau verify: {path}: {problem}")
    if not verdict.problems:
        sys.stdout.write(f"{printable(path)}: sound: {verdict.checked}\n")
    return int(bool(verdict.problems))
