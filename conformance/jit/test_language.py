"""The language: graphs, code and results of programs under both libraries."""

from __future__ import annotations

import copy
import math
import random
from pathlib import Path
from typing import Any

import pytest
import torch as reference

import flambeau

from .both import compiled, functions, in_order, load
from .reading import numbered

FILES = sorted(Path(__file__).with_name("programs").glob("*.py"))
PROGRAMS = [pytest.param(file, name, id=name) for file in FILES for name in functions(file)]


@pytest.mark.parametrize(("file", "name"), PROGRAMS)
def test_graph(file: Path, name: str) -> None:
    """The graph is torch's: nodes, their order, constants, names of places."""
    ours, theirs = (str(compiled(file, name, library).graph) for library in ("flambeau", "torch"))
    assert in_order(ours) == in_order(theirs)


@pytest.mark.parametrize(("file", "name"), PROGRAMS)
def test_schema(file: Path, name: str) -> None:
    """Parameters, defaults and result have torch's types."""
    ours, theirs = (compiled(file, name, library).schema for library in ("flambeau", "torch"))
    assert [a.name for a in ours.arguments] == [a.name for a in theirs.arguments]
    assert [a.type.annotation for a in ours.arguments] == [
        a.type.annotation_str for a in theirs.arguments
    ]
    assert ours.returns[0].type.annotation == theirs.returns[0].type.annotation_str


@pytest.mark.parametrize(("file", "name"), PROGRAMS)
def test_code(file: Path, name: str) -> None:
    """The code is torch's, but for the numbers of temporaries."""
    ours, theirs = (compiled(file, name, library).code for library in ("flambeau", "torch"))
    assert numbered(ours, r"\b_\d+\b") == numbered(theirs, r"\b_\d+\b")


SAMPLES: dict[str, list[Any]] = {
    "int": [0, 1, 2, 4], "float": [0.5, 3.0], "bool": [True, False], "str": ["abc", "a"],
    "List[int]": [[3, 1, 2], [4]], "Dict[str, int]": [{"a": 2, "b": 3}], "NoneType": [None],
    "List[float]": [[1.5, 2.0]], "List[List[int]]": [[[1, 2], [3]]],
}  # fmt: skip


def sample(type: Any, choose: random.Random, torch: Any) -> Any:
    """A value of a type of torch's schema."""
    kind, name = type.kind(), type.annotation_str
    if name in SAMPLES:
        return copy.deepcopy(choose.choice(SAMPLES[name]))
    if kind == "TensorType":
        values = [[choose.randrange(1, 4) / 2 for _ in range(4)] for _ in range(4)]
        return torch.tensor(values)
    if kind == "OptionalType":
        inner = sample(type.getElementType(), choose, torch)
        return choose.choice([None, inner])
    if kind == "ListType":
        return [sample(type.getElementType(), choose, torch) for _ in range(2)]
    if kind == "TupleType":
        return tuple(sample(part, choose, torch) for part in type.elements())
    return choose.choice([2, 2.5, "s"])


def outcome(function: Any, arguments: list[Any]) -> Any:
    """What a program returns and leaves in its arguments, or that it raises."""
    try:
        return plain((function(*arguments), arguments))
    except Exception:  # noqa: BLE001
        return "raises"


def plain(value: Any) -> Any:
    """A result without anything of the library in it."""
    if isinstance(value, (reference.Tensor, flambeau.Tensor)):
        return str(value.dtype), value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if value is None or isinstance(value, (bool, int, float, complex, str)):
        return value if value == value else "nan"
    return str(value).removeprefix("flambeau.").removeprefix("torch.")


def same(ours: Any, theirs: Any) -> bool:
    """Equal, numbers up to the rounding of float32."""
    if type(ours) is not type(theirs):
        return False
    if isinstance(ours, float):
        return math.isclose(ours, theirs, rel_tol=1e-5, abs_tol=1e-6)
    if isinstance(ours, (list, tuple)):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(ours, dict):
        return list(ours) == list(theirs) and all(same(ours[k], theirs[k]) for k in ours)
    return bool(ours == theirs)


NOT_RUN = {"python_functions", "generator", "tensor_functions"}  # random numbers; other shapes


@pytest.mark.parametrize(("file", "name"), [p for p in PROGRAMS if p.id not in NOT_RUN])
@pytest.mark.parametrize("seed", range(3))
def test_results(file: Path, name: str, seed: int) -> None:
    """The results are torch's; a program raises where torch's raises."""
    found = []
    types = [a.type for a in compiled(file, name, "torch").schema.arguments]
    if any(t.kind() in ("ClassType", "EnumType", "FutureType") for t in types):
        types = []
    for library, torch in (("torch", reference), ("flambeau", flambeau)):
        choose = random.Random(seed)
        function = compiled(file, name, library)
        found.append(outcome(function, [sample(type, choose, torch) for type in types]))
    assert same(found[1], found[0]), found


def test_programs_are_many() -> None:
    """At least 60, each a function of its file."""
    assert len(PROGRAMS) >= 60
    assert all(callable(getattr(load(file, "torch"), name)) for file, name in
               (p.values for p in PROGRAMS))  # fmt: skip
