"""Cases as files of TOML: people can read and change them, and NaN and -0.0 have a spelling."""

from __future__ import annotations

import dataclasses
import math
import tomllib
from pathlib import Path
from typing import Any

from .cases import After, Call, Case, TensorArgument, Write

FOUND = Path(__file__).with_name("found")


def written(case: Case, heading: str = "") -> str:
    """The text of a file."""
    lines = [f"# {line}" for line in heading.splitlines()]
    lines += [f"small_kernels = {_told(case.small_kernels)}", f"seed = {_told(case.seed)}"]
    lines += ["program = '''", *case.text.rstrip("\n").splitlines(), "'''"]
    for call in case.calls:
        lines += ["", "[[calls]]", f"mode = {_told(call.mode)}"]
        lines += ["arguments = ["]
        lines += [f"    {_told(argument)}," for argument in call.arguments]
        lines += ["]", f"after = {_told(call.after)}"]
    return "\n".join(lines) + "\n"


def read(text: str) -> Case:
    """The case that a file describes."""
    found = tomllib.loads(text)
    calls = tuple(_call(call) for call in found["calls"])
    return Case(found["program"], calls, found["small_kernels"], found.get("seed", ""))


def kept() -> list[Path]:
    """The files of all cases that are kept."""
    return sorted(FOUND.glob("*.toml"))


def _told(value: Any) -> str:
    """A value in TOML; what is as it is by default is left out of tables."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, int):
        # TOML has integers of 64 bits; larger ones are told as text.
        return str(value) if -(2**63) <= value < 2**63 else f'{{ int = "{value}" }}'
    if isinstance(value, complex):
        return f"{{ complex = [{_float(value.real)}, {_float(value.imag)}] }}"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, (tuple, list)):
        return "[" + ", ".join(map(_told, value)) + "]"
    if value is None:
        return '{ none = "" }'
    if isinstance(value, dict):
        return "{ dict = [" + ", ".join(_told([k, v]) for k, v in value.items()) + "] }"
    return _table(value)


def _float(value: float) -> str:
    return repr(value) if not math.isnan(value) else "nan"


def _table(value: Any) -> str:
    pairs = []
    for entry in dataclasses.fields(value):
        given = getattr(value, entry.name)
        if given != entry.default or entry.name == "shape":
            pairs.append(f"{entry.name} = {_told(given)}")
    return "{ " + ", ".join(pairs) + " }" if pairs else "{}"


def _call(found: dict[str, Any]) -> Call:
    after = dict(found.get("after", {}))
    after["writes"] = tuple(Write(**write) for write in after.get("writes", ()))
    arguments = tuple(_argument(argument) for argument in found.get("arguments", ()))
    return Call(arguments, found.get("mode", "grad"), After(**after))


def _argument(found: Any) -> Any:
    if isinstance(found, list):
        return [_argument(item) for item in found]
    if not isinstance(found, dict):
        return found
    for name, make in _SPELLED.items():
        if name in found:
            return make(found[name])
    return TensorArgument(**{**found, "shape": tuple(found.get("shape", ()))})


_SPELLED = {
    "none": lambda _: None,
    "int": int,
    "complex": lambda parts: complex(*parts),
    "dict": lambda pairs: {_argument(key): _argument(value) for key, value in pairs},
}
