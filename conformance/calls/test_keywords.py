"""Every public signature with all arguments by name, and NumPy's names for some of them.

Which functions there are, and what their parameters are called, comes from the installed PyTorch:
see `generated/`. What it takes must be taken here.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import flambeau
from conformance.autograd.generated.running import outcome
from tests.random_seeds import generator

from .generated import drawing
from .generated.signatures import Parameter, Target
from .generated.sources import targets
from .generated.values import Context
from .generated.words import CallWords

NUMPY = {"dim": "axis", "keepdim": "keepdims"}
NAMED = ("self", "names", "dimname")
"""Parameters of forms that are given by position, or of tensors whose dims have names."""
TRIES = 10
BY_NAME = "do not fit"


def test_all_arguments_by_name() -> None:
    """As many functions as there is time for, others in each run."""
    rng: random.Random = generator("keywords")
    tried, wrong = 0, []
    for target in rng.sample(targets(), 120):
        for text in _calls(target, rng):
            tried += 1
            line = outcome(text, flambeau, language=CallWords).lines[-1]
            if BY_NAME in line.said:
                wrong.append(text)
    assert tried > 60
    assert not wrong


def _calls(target: Target, rng: random.Random) -> Iterator[str]:
    """Calls that PyTorch takes: one of each signature, and one with NumPy's names."""
    for signature in target.signatures:
        if not _by_name(signature):
            continue
        for names in ({}, NUMPY):
            if names and not any(p.name in names for p in signature):
                continue
            text = _taken(target, signature, names, rng)
            if text:
                yield text


def _by_name(signature: tuple[Parameter, ...]) -> bool:
    return not any(
        p.variadic or p.name in NAMED or (p.kind == "out" and p.required) for p in signature
    )


def _taken(target: Target, signature: tuple[Parameter, ...], names: dict[str, str],
           rng: random.Random) -> str:  # fmt: skip
    for _ in range(TRIES):
        context = Context(rng)
        context.plain = True
        call = drawing.Call(target.path)
        if target.is_method:
            call.function = f"{context.tensor('self')}.{target.path.partition('.')[2]}"
        given = [p for p in signature if p.kind != "out" and _is_given(p, names, rng)]
        call.named = [(names.get(p.name, p.name), context.value(p)) for p in given]
        text = drawing.joined(context.made, call)
        seen = drawing.seen_there(text)
        if seen is not None and not seen.lines[-1].error:
            return text
    return ""


def _is_given(parameter: Parameter, names: dict[str, str], rng: random.Random) -> bool:
    return parameter.required or parameter.name in names or rng.random() < 0.5
