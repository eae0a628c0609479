"""One program from beginning to end: whether the two libraries agree."""

from __future__ import annotations

import functools
import re

from conformance.autograd.generated import checking
from conformance.autograd.generated.comparing import Difference
from conformance.autograd.generated.observing import Outcome
from conformance.autograd.generated.words import Words
from conformance.jit.generated.comparing import EPSILON

from .comparing import difference
from .words import LayerWords

REACH = 16.0
"""A difference of so many times what a few roundings of all arguments do is still rounding."""
ROUNDINGS = 4.0
CALLED = re.compile(r"(?:torch|F|nn|rnn|fft|special)\.(\w+)\(|\.(\w+_?)\((?!memory_format|\()")
MADE = ("requires_grad_", "permute", "to", "abs", "parameters", "manual_seed")


def calls(text: str, wanted: Outcome | None = None, found: Difference | None = None) -> str:
    """What a program calls, for the name of its group."""
    names = [one or two for one, two in CALLED.findall(text)]
    return "".join(f"{name}(" for name in dict.fromkeys(names) if name not in MADE)


def _determined(text: str, wanted: Outcome, found: Difference, language: type[Words]) -> bool:
    """Whether a difference in values is more than rounding could make."""
    types = checking.types_in(wanted)
    shift = ROUNDINGS * max((EPSILON.get(name, 0.0) for name in types), default=0.0)
    return checking.moves_less(text, wanted, found, shift, found.size / REACH, language)


RULES = checking.Rules(difference, _determined, calls)
check = functools.partial(checking.check, language=LayerWords, rules=RULES)
