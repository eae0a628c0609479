"""python -m conformance.unread: which parameters are taken and then ignored.

First by reading, then by calls that are drawn, then by the programs written by hand. Calls of each
thirty functions run in a process of their own, as PyTorch dies of some; these are forked before any
program has started threads or a profiler, which a fork doesn't survive.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
from collections.abc import Iterator
from dataclasses import replace

from conformance.calls.generated.signatures import Target
from conformance.calls.generated.sources import targets

from .effects import Finding, findings, told_apart
from .programs import PROGRAMS
from .reading import unread
from .reasons import PAGE, reason, with_table

AT_ONCE = 30
MEMORY = 6 << 30
"""Bytes that a process may take."""


def by_reading() -> Iterator[tuple[str, str, str]]:
    for found in unread():
        yield found.path, found.parameter, f"not read in {found.place}"


def by_programs(only: str) -> Iterator[Finding]:
    for program in PROGRAMS:
        if only in program.path:
            finding, acts = told_apart(program.path, program.parameter, program.texts())
            if finding is not None:
                yield replace(finding, never=not acts)


def drawn(only: str, seed: str) -> None:
    """Draw calls of every function, and tell what is found."""
    wanted = [target for target in targets() if only in target.path]
    while wanted:
        part, wanted = wanted[:AT_ONCE], wanted[AT_ONCE:]
        _in_a_process(part, seed)


def _in_a_process(part: list[Target], seed: str) -> None:
    sys.stdout.flush()  # or the child would write it once more
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        if status:
            print(f"died: one of {', '.join(target.path for target in part)}")
        return
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))  # sizes are drawn, too
    for target in part:
        for finding in findings(target, seed):
            tell(finding)
    sys.stdout.flush()
    os._exit(0)


def tell(finding: Finding) -> bool:
    """Show a finding that has no reason, and whether it has none."""
    if reason(finding.path, finding.parameter) is not None:
        return False
    always = "without effect" if finding.never else "not told apart"
    print(f"{finding.path}, {finding.parameter}: {always}; in PyTorch {finding.how}")
    print("    " + finding.first.strip().replace("\n", "\n    "))
    print("    " + finding.second.strip().rpartition("\n")[2])
    print(f"    {finding.said}")
    return True


def main(arguments: list[str]) -> int:
    """Look for ignored parameters, or write the table; 1 if something was found by sure ways."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="a part of a function's name")
    parser.add_argument("--seed", default="1", help="of the calls that are drawn")
    parser.add_argument("--write", action="store_true", help="write the table")
    words = parser.parse_args(arguments)
    if words.write:
        PAGE.write_text(with_table(PAGE.read_text("utf-8")), "utf-8")
        return 0
    faults = 0
    for path, parameter, told in by_reading():
        if words.only in path and reason(path, parameter) is None:
            print(f"{path}, {parameter}: {told}")
            faults += 1
    drawn(words.only, words.seed)
    faults += sum([tell(finding) for finding in by_programs(words.only)])
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
