"""Programs of one call, drawn while PyTorch runs them: most of them succeed."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import torch as reference

from conformance.autograd.generated.observing import Outcome, Seen
from conformance.autograd.generated.running import outcome

from .signatures import Parameter, Target
from .sources import targets
from .values import TYPES, Context
from .words import CallWords

TRIES = 6
"""Calls that are drawn for one that PyTorch takes."""
MISTAKES = 0.2
"""The share of programs in which the first call drawn is taken, whatever comes of it."""
RENAMED = {
    "dim": ("axis",), "keepdim": ("keepdims",), "input": ("self",), "self": ("input",),
    "other": ("value",), "size": ("shape",),
}  # fmt: skip
"""Names that NumPy, or somebody, uses for parameters."""


@dataclass
class Call:
    """A call as text."""

    function: str
    positional: list[str] = field(default_factory=list)
    named: list[tuple[str, str]] = field(default_factory=list)

    def text(self) -> str:
        listed = [*self.positional, *(f"{name}={value}" for name, value in self.named)]
        return f"{self.function}({', '.join(listed)})"


def case(seed: str) -> str:
    """The program of a seed."""
    drawn = random.Random(seed)
    target = drawn.choice(targets())
    text = ""
    tries = 1 if drawn.random() < MISTAKES else TRIES
    for _ in range(tries):
        text, call, context = _program(target, drawn)
        seen = seen_there(text)
        if seen is not None and not seen.lines[-1].error:
            return _written_to(text, call, context, target, seen) or text
    return text


def seen_there(text: str) -> Outcome | None:
    """What comes of a program in PyTorch; None where it makes tensors that nobody can look at, as
    those of negative sizes."""
    try:
        return outcome(text, reference, language=CallWords)
    except RuntimeError:
        return None


def _program(target: Target, drawn: random.Random) -> tuple[str, Call, Context]:
    context = Context(drawn)
    call = drawn_call(target, context)
    return joined(context.made, call), call, context


def joined(made: list[str], call: Call) -> str:
    return "\n".join([*made, f"r = {call.text()}"]) + "\n"


def drawn_call(target: Target, context: Context) -> Call:
    """A call of one of a target's signatures."""
    call = Call(target.path)
    if target.is_method:
        call.function = f"{context.tensor('self')}.{target.path.partition('.')[2]}"
    signature = context.random.choice(target.signatures)
    given = [p for p in signature if p.kind != "out" and (_is_given(p, context))]
    _give(call, signature, given, context)
    if not context.plain and context.chance(0.2):
        _spoil(call, context)
    return call


def _is_given(parameter: Parameter, context: Context) -> bool:
    return parameter.required or context.chance(0.35)


def _give(call: Call, signature: tuple[Parameter, ...], given: list[Parameter],
          context: Context) -> None:  # fmt: skip
    """The first arguments by position, the others by name; behind a gap all by name."""
    by_name = context.chance(0.25)
    for parameter in signature:
        if parameter not in given:
            by_name = True
            continue
        if parameter.variadic:
            _give_several(call, parameter, context)
            continue
        by_name = by_name or parameter.keyword_only or context.chance(0.1)
        value = context.value(parameter)
        if by_name:
            call.named.append((_name_of(parameter, context), value))
        else:
            call.positional.append(value)


def _give_several(call: Call, parameter: Parameter, context: Context) -> None:
    """Arguments for `*size` and the like, loose or as one list."""
    if parameter.kind in ("tensor", "tensors"):
        call.positional += [context.tensor(parameter.name) for _ in range(2)]
    elif context.chance(0.6):
        sizes = context.shape if context.chance(0.4) else (2, 3)
        call.positional += [str(size) for size in sizes]
    else:
        call.positional.append(context._sizes())


def _name_of(parameter: Parameter, context: Context) -> str:
    others = RENAMED.get(parameter.name, ())
    if others and context.chance(0.15):
        return context.random.choice(others)
    return parameter.name


def _spoil(call: Call, context: Context) -> None:
    """An argument too many, too few, twice, or of a name that there is not."""
    form = context.random.choice(("more", "less", "twice", "unknown", "swapped"))
    if form == "more":
        call.positional.append(context.random.choice(("1", "None", "2.0", "True", "'a'")))
    elif form == "less" and call.positional:
        call.positional.pop()
    elif form == "twice" and call.positional:
        call.named.append(("tensors", call.positional[0]))
    elif form == "unknown":
        call.named.append((context.random.choice(("foo", "nope", "shapes")), "1"))
    elif len(call.positional) > 1:
        call.positional.reverse()


# ---- results written elsewhere


def _written_to(text: str, call: Call, context: Context, target: Target,
                seen: Outcome) -> str | None:  # fmt: skip
    """The same call with `out=`, if it takes one and it is wanted."""
    takes_out = any(p.kind == "out" for signature in target.signatures for p in signature)
    if not takes_out or not context.chance(0.35):
        return None
    found = seen.lines[-1].values.get("r")
    results = found if isinstance(found, list) else [found]
    if not all(isinstance(result, Seen) for result in results):
        return None
    outs = [_out(result, context) for result in results]
    written = f"({', '.join(outs)},)" if isinstance(found, list) else outs[0]
    call.named.append(("out", written))
    return joined(context.made, call)


def _out(result: Seen, context: Context) -> str:
    form = context.random.choice(("right", "type", "size", "lies", "empty", "input", "learns"))
    inputs = [line.partition(" ")[0] for line in context.made]
    if form == "input" and inputs:
        return context.random.choice(inputs)
    dtype = context.random.choice(TYPES) if form == "type" else result.dtype
    shape = {"size": (2, 2), "empty": (0,)}.get(form, result.shape)
    layout = context.random.choice(("transposed", "sliced", "expanded", "offset"))
    name = context.name()
    text = f"make(7, {tuple(shape)}, {dtype!r}, {layout if form == 'lies' else 'rows'!r})"
    if form == "learns" and "float" in dtype:
        text += ".requires_grad_()"
    context.made.append(f"{name} = {text}")
    return name
