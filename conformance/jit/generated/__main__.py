"""python -m conformance.jit.generated: try the optimiser with drawn programs.

Every program runs plainly and optimised; with `--across 0.1`, one in ten runs in PyTorch, too. What
differs is made small and grouped. `--only 17` shows the 17th program of a seed and what comes of
it; `--replay FILE` runs a kept case.
"""

from __future__ import annotations

import argparse
import secrets
import sys
from pathlib import Path

from .workers import Plan, Total, run


def main() -> int:
    words = _arguments()
    if words.replay:
        return _replay(words.replay)
    if words.only is not None:
        return _only(f"{words.seed}/{words.only}")
    plan = Plan(words.seed, words.minutes, words.programs, words.workers, words.across,
                words.output, words.first)  # fmt: skip
    print(f"seed {words.seed}", flush=True)
    total = run(plan)
    report(total)
    return 1 if total.groups else 0


def _arguments() -> argparse.Namespace:
    parser = options("conformance.jit.generated", __doc__)
    parser.add_argument("--across", type=float, default=0.0, help="share that PyTorch runs, too")
    return parsed(parser)


def options(name: str, doc: str | None) -> argparse.ArgumentParser:
    """What every tester with drawn programs is told."""
    parser = argparse.ArgumentParser(name, None, doc)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--seed", default=secrets.token_hex(4), help="anything; printed")
    parser.add_argument("--minutes", type=float, default=0.0, help="how long")
    parser.add_argument("--seconds", type=float, default=0.0, help="the same, in seconds")
    parser.add_argument("--programs", type=int, default=0, help="how many, at most")
    parser.add_argument("--first", type=int, default=0, help="number of the first program")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--output", default="", help="file for findings, one line of JSON each")
    parser.add_argument("--only", type=int, help="show one program of the seed")
    parser.add_argument("--replay", help="run a kept case")
    return parser


def parsed(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """The words of the command line; a minute, if they do not say how long."""
    found = parser.parse_args()
    found.minutes += found.seconds / 60
    if not (found.minutes or found.programs or found.replay or found.only is not None):
        found.minutes = 1.0
    return found


def report(total: Total) -> None:
    """Print what was found: a group in a line, then the smallest case of each."""
    print(total.line())
    for name, count in total.groups.most_common():
        print(f"{count:6d}  {name}")
    for name, found in total.examples.items():
        print(f"\n---- {name}\n# {found['seed']}: {found.get('detail', '')[:400]}")
        print(found.get("case", ""))


def _replay(path: str) -> int:
    from . import keeping

    return _shown(keeping.read(Path(path).read_text("utf-8")))


def _only(seed: str) -> int:
    from . import keeping, programs

    case = programs.case(seed)
    print(keeping.written(case))
    return _shown(case)


def _shown(case: object) -> int:
    from . import checking, grouping

    result = checking.check(case)  # type: ignore[arg-type]
    if not result.compiled:
        print("does not compile")
    if result.finding is None:
        print("agrees")
        return 0
    print(f"call {result.finding.call}: {grouping.signature(result.finding)}")
    print(result.finding.difference.detail)
    return 1


if __name__ == "__main__":
    sys.exit(main())
