"""Calls that PyTorch takes, each of which shows what one parameter does."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass

from conformance.calls.generated.drawing import Call, joined, seen_there
from conformance.calls.generated.signatures import Parameter, Target
from conformance.calls.generated.values import INDICES, Context

SHAPES = ((3,), (2, 3), (3, 3), (3, 3), (2, 2, 3), (2, 3, 3), (2, 3, 4), (2, 3, 4, 4),
          (2, 2, 3, 4, 4))  # fmt: skip
FILLS = ("normal", "normal", "small", "ones")
TRIES = 25
"""Calls that are drawn for one that PyTorch takes."""
WANTED = 2
"""Calls that are looked for, for each signature."""
LARGE, SMALL = 256, "8"
"""Sizes from `LARGE` on that a layer has by default are given as `SMALL`: a `Transformer` of its
own sizes has 44 million weights, of which every outcome is a copy."""


@dataclass
class Plain(Context):
    """Arguments in which nothing is odd: tensors have elements, and those are numbers."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.shape = self.random.choice(SHAPES)
        self.plain = True

    def _shape(self, named: str) -> tuple[int, ...]:
        found = super()._shape(named)
        return found if all(found) else self.shape

    def tensor(self, named: str = "", learns: float = 0.12) -> str:
        name = super().tensor(named, learns)
        if named not in INDICES:
            fill = self.random.choice(FILLS)
            self.made[-1] = FILL.sub(f"'rows', {fill!r})", self.made[-1])
        return name


FILL = re.compile(r"'rows', '\w+'\)")


@dataclass
class Base:
    """A call that succeeds, and where its values came from."""

    call: Call
    context: Context
    given: dict[str, str]
    signature: tuple[Parameter, ...]

    def text(self, name: str, value: str) -> str:
        """The program in which one parameter has a value."""
        given = {**self.given, name: value}
        call = Call(self.call.function)
        _give(call, self.signature, given)
        return joined(self.context.made, call)


def bases(target: Target, seed: str) -> Iterator[Base]:
    """Some calls of every signature of a target."""
    for number, signature in enumerate(target.signatures):
        drawn = random.Random(f"{seed} {target.path} {number}")
        left = WANTED
        for _ in range(TRIES):
            base = _drawn(target, signature, drawn)
            if base is not None:
                yield base
                left -= 1
            if not left:
                break


def _drawn(target: Target, signature: tuple[Parameter, ...], drawn: random.Random) -> Base | None:
    context = Plain(drawn)
    function = target.path
    if target.is_method:
        function = f"{context.tensor('self')}.{target.path.partition('.')[2]}"
    given = {p.name: _value(p, context) for p in signature if _is_given(p, context)}
    call = Call(function)
    _give(call, signature, given)
    seen = seen_there(joined(context.made, call))
    if seen is None or any(line.error for line in seen.lines):
        return None
    return Base(call, context, given, signature)


def _is_given(parameter: Parameter, context: Context) -> bool:
    if parameter.kind == "out":
        return False
    wanted = parameter.required or parameter.variadic or is_large(parameter)
    return wanted or context.chance(0.2)


def is_large(parameter: Parameter) -> bool:
    """Whether the default of a parameter is a size that makes a layer large."""
    return (
        parameter.kind == "int"
        and isinstance(parameter.default, int)
        and (parameter.default >= LARGE)
    )


def _value(parameter: Parameter, context: Context) -> str:
    if is_large(parameter):
        return SMALL
    if not parameter.variadic:
        return context.right(parameter)
    if parameter.kind in ("tensor", "tensors"):
        return f"*[{context.tensor(parameter.name)}, {context.tensor(parameter.name)}]"
    return f"*{context._sizes()}"


def _give(call: Call, signature: tuple[Parameter, ...], given: dict[str, str]) -> None:
    """By position as long as there is no gap, then by name."""
    by_name = False
    for parameter in signature:
        if parameter.name not in given:
            by_name = not parameter.variadic
        elif by_name or parameter.keyword_only:
            call.named.append((parameter.name, given[parameter.name]))
        else:
            call.positional.append(given[parameter.name])
