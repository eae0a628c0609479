"""python -m conformance.autograd.generated: try autograd with drawn programs.

Every program runs here and in PyTorch. What differs is made small and grouped. `--only 17` shows
the 17th program of a seed and what comes of it; `--replay FILE` runs a kept program.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from conformance.jit.generated.__main__ import options, parsed, report
from conformance.jit.generated.workers import Plan, run

from . import checking, programs
from .words import Words

JUDGE = "conformance.autograd.generated.judging"
Check = Callable[..., checking.Checked]
FOREIGN = ("drawing", "running in PyTorch")


def run_language(name: str, doc: str | None, judge: str, programs: ModuleType,
                 language: type[Words], check: Check = checking.check) -> int:  # fmt: skip
    """The command line of a tester whose programs are Python."""
    words = parsed(options(name, doc))
    if words.replay:
        return _shown(Path(words.replay).read_text("utf-8"), language, check)
    if words.only is not None:
        text = programs.case(f"{words.seed}/{words.only}")
        print(text)
        return _shown(text, language, check)
    plan = Plan(words.seed, words.minutes, words.programs, words.workers, 0.0, words.output,
                words.first, judge, FOREIGN)  # fmt: skip
    print(f"seed {words.seed}", flush=True)
    total = run(plan)
    report(total)
    return 1 if total.groups else 0


def _shown(text: str, language: type[Words], check: Check) -> int:
    from . import judging

    result = check(text, language=language)
    if result.difference is None:
        print("not determined" if result.undetermined else "agrees")
        return 0
    print(judging.signature(result))
    print(result.difference.place, result.difference.detail)
    return 1


if __name__ == "__main__":
    sys.exit(run_language("conformance.autograd.generated", __doc__, JUDGE, programs, Words))
