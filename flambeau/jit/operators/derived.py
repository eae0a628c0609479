"""Schemas that follow from another: that of its form with `out`, and that of its in-place form.

aten::acos(Tensor self) -> Tensor
aten::acos.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
aten::acos_(Tensor(a!) self) -> Tensor(a!)
"""

from __future__ import annotations

import re
from collections.abc import Sequence

SCHEMA = re.compile(r"([\w:]+)(?:\.(\w+))?\((.*)\) -> (.*)")
ALIAS = re.compile(r"\(\w+\)")
OPTIONS = ("ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
           "bool? pin_memory=None")  # fmt: skip
"""What `out` settles: forms with it do not take these."""
IN_PLACE = {"Tensor": ("Tensor(a!)", "Tensor(a!)"), "Tensor[]": ("Tensor(a!)[]", "()")}
"""The type of `self` that is written over, and of the result, by the result of the plain form."""


def out_overload(overload: str) -> str:
    """The overload that has `out` for another one."""
    return "out" if overload in ("", "Tensor") else f"{overload}_out"


def with_out(text: str) -> str | None:
    """A schema with parameters to write its results into; None where it writes already.

    >>> from flambeau.jit.operators.derived import with_out
    >>> with_out("aten::acos(Tensor self) -> Tensor")
    'aten::acos.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)'
    """
    name, overload, arguments, result = _parts(text)
    outputs = _outputs(result)
    if "!" in arguments or not outputs:
        return None
    arguments = ALIAS.sub("", arguments).replace(OPTIONS, "").rstrip(" ,*")
    taken = [arguments] if arguments else []
    if "*, " not in arguments:
        taken.append("*")
    taken += [f"{type} {output}" for output, type in outputs.items()]
    head = f"{name}.{out_overload(overload)}({', '.join(taken)})"
    if result == "Tensor[]":
        return f"{head} -> ()"
    named = result.startswith("(") and " " in result.split(", ")[0]
    given = [f"{type} {output}" if named else type for output, type in outputs.items()]
    return f"{head} -> {given[0]}" if len(given) == 1 else f"{head} -> ({', '.join(given)})"


def _outputs(result: str) -> dict[str, str]:
    """Names and types of the parameters that results are written into; none if it has no such."""
    result = ALIAS.sub("", result)
    if result in IN_PLACE:
        return {"out": IN_PLACE[result][0]}
    parts = result[1:-1].split(", ")
    names = [name or f"out{k}" for k, (_, _, name) in enumerate(p.partition(" ") for p in parts)]
    if any(part.split(" ")[0] != "Tensor" for part in parts):
        return {}
    return {name: f"Tensor({chr(ord('a') + k)}!)" for k, name in enumerate(names)}


def in_place(text: str) -> str | None:
    """A schema that writes its result over `self`; None where types do not allow it.

    >>> from flambeau.jit.operators.derived import in_place
    >>> in_place("aten::acos(Tensor self) -> Tensor")
    'aten::acos_(Tensor(a!) self) -> Tensor(a!)'
    """
    name, overload, arguments, result = _parts(text)
    if result not in IN_PLACE or not arguments.startswith(f"{result} self"):
        return None
    written, given = IN_PLACE[result]
    others = arguments.removeprefix(f"{result} self")
    return f"{name}_{f'.{overload}' if overload else ''}({written} self{others}) -> {given}"


def named(head: str, plain: Sequence[str], before: Sequence[str]) -> str | None:
    """The schema of a form by its full name.

    Args:
        head: "aten::acos.out", "aten::acos_".
        plain: the schemas of the operator of which it may be the in-place form.
        before: the schemas of its own operator that stand before it.
    """
    forms = [made for made in map(in_place, plain) if made]
    forms += [made for made in map(with_out, before) if made]
    return next((made for made in forms if made.partition("(")[0] == head), None)


def _parts(text: str) -> tuple[str, str, str, str]:
    """The name, the overload, the arguments and the results of a schema."""
    found = SCHEMA.fullmatch(text)
    if found is None:
        return "", "", "", ""
    name, overload, arguments, result = found.groups()
    return name, overload or "", arguments, result
