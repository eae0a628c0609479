"""`flambeau ops [NAME ...]`: rows of the operator table, and what follows from each."""

from __future__ import annotations

import argparse
import sys
import textwrap
from difflib import get_close_matches
from typing import Any

from flambeau._commands.common import Refused, make_parser, run

DESCRIPTION = """\
Show rows of the operator table with all that is derived from them: names, operators of scripts,
gradient, forward mode, vmap, layout on "meta", and the texts that run. Without a name, list them.
"""
EPILOG = """\
examples:
  flambeau ops softmax
  flambeau ops nn.functional.gelu aten::mul
  flambeau ops --table > operators.md
"""
WIDTH = 17
COLUMNS = ("gradient", "forward mode", "vmap", "meta", "stands in")
"""What the table shows of a row besides its schema and kind."""


def main(words: list[str]) -> int:
    """Carry out the command."""
    parser = make_parser("ops", DESCRIPTION, EPILOG)
    parser.add_argument("names", metavar="NAME", nargs="*")
    parser.add_argument("--table", action="store_true", help="all rows as a page in Markdown")
    return run(parser, words, _act)


def _act(options: argparse.Namespace) -> int:
    try:
        if options.table:
            _table()
        elif options.names:
            for name in options.names:
                _show(name)
        else:
            _list()
    except Refused as error:
        sys.stderr.write(f"flambeau ops: {error}\n")
        return 1
    return 0


def _show(name: str) -> None:
    from flambeau._commands.row_facts import facts, rows_of, texts

    rows = rows_of(name)
    if not rows:
        raise Refused(f"no operator is called {name!r}{_suggestion(name)}")
    for op in rows:
        sys.stdout.write(f"{op.text}\n")
        if op.doc:
            sys.stdout.write(textwrap.indent(op.doc.partition("\n")[0], "  ") + "\n")
        sys.stdout.write("\n")
        for title, words in facts(op):
            hanging = " " * (WIDTH + 2)
            lines = textwrap.wrap(words, 100 - len(hanging))
            sys.stdout.write(f"  {title:{WIDTH}}" + f"\n{hanging}".join(lines) + "\n")
        for title, text in texts(op):
            sys.stdout.write(f"\n  {title}\n{textwrap.indent(text.rstrip(), ' ' * 6)}\n")
        sys.stdout.write("\n")


def _suggestion(name: str) -> str:
    from flambeau._ops.table.op import BY_NAME

    close = get_close_matches(name, list(BY_NAME), n=3)
    return f"; did you mean {' or '.join(close)}?" if close else ""


def _list() -> None:
    for public, op in _all():
        sys.stdout.write(f"{op.kind:10} {public}\n")


def _table() -> None:
    """A line for each row."""
    from flambeau._commands.row_facts import facts

    sys.stdout.write("# The operator table\n\nWritten by `flambeau ops --table`.\n\n")
    sys.stdout.write(f"| row | kind | {' | '.join(COLUMNS)} |\n|{' --- |' * (len(COLUMNS) + 2)}\n")
    for _, op in _all():
        known = dict(facts(op))
        cells = [f"`{op.full_name}`", op.kind, *[known[column] for column in COLUMNS]]
        sys.stdout.write(f"| {' | '.join(cells)} |\n")


def _all() -> list[tuple[str, Any]]:
    """The public name and row of every row, by names."""
    from flambeau._ops.table.op import BY_NAME

    return [(public, op) for public in sorted(BY_NAME) for op in BY_NAME[public]]
