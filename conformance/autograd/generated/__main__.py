"""python -m conformance.autograd.generated: try autograd with drawn programs.

Every program runs here and in PyTorch. What differs is made small and grouped. `--only 17` shows
the 17th program of a seed and what comes of it; `--replay FILE` runs a kept program.
"""

from __future__ import annotations

import argparse
import secrets
import sys
from pathlib import Path

from conformance.jit.generated.__main__ import report
from conformance.jit.generated.workers import Plan, run

JUDGE = "conformance.autograd.generated.judging"
FOREIGN = ("drawing", "running in PyTorch")


def main() -> int:
    words = _arguments()
    if words.replay:
        return _shown(Path(words.replay).read_text("utf-8"))
    if words.only is not None:
        return _only(f"{words.seed}/{words.only}")
    plan = Plan(words.seed, words.minutes, words.programs, words.workers, 0.0, words.output,
                words.first, JUDGE, FOREIGN)  # fmt: skip
    print(f"seed {words.seed}", flush=True)
    total = run(plan)
    report(total)
    return 1 if total.groups else 0


def _arguments() -> argparse.Namespace:
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("conformance.autograd.generated", None, __doc__)
    parser.formatter_class = plain
    parser.add_argument("--seed", default=secrets.token_hex(4), help="anything; printed")
    parser.add_argument("--minutes", type=float, default=0.0, help="how long")
    parser.add_argument("--programs", type=int, default=0, help="how many, at most")
    parser.add_argument("--first", type=int, default=0, help="number of the first program")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--output", default="", help="file for findings, one line of JSON each")
    parser.add_argument("--only", type=int, help="show one program of the seed")
    parser.add_argument("--replay", help="run a kept program")
    found = parser.parse_args()
    if not (found.minutes or found.programs or found.replay or found.only is not None):
        found.minutes = 1.0
    return found


def _only(seed: str) -> int:
    from . import programs

    text = programs.case(seed)
    print(text)
    return _shown(text)


def _shown(text: str) -> int:
    from . import checking, judging

    result = checking.check(text)
    if result.difference is None:
        print("not determined" if result.undetermined else "agrees")
        return 0
    print(judging.signature(result))
    print(result.difference.place, result.difference.detail)
    return 1


if __name__ == "__main__":
    sys.exit(main())
