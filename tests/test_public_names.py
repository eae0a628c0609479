"""Every public name says what it does, and shows it: `help` of any of them helps.

Names are those of PyTorch that flambeau has (`_core/torch_names.txt`). What is no function and no
class (dtypes, layouts, numbers, modules) has no docstring of its own; a class of a feature that is
missing says so and has no example. Operators and layers say what they make of shapes.
"""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

import flambeau
from flambeau._core.absent import AbsentClass
from flambeau._core.missing import torch_names
from flambeau._ops.table.op import BY_NAME
from flambeau.nn import Module

NAMESPACES = (
    "torch", "torch.nn", "torch.nn.functional", "torch.nn.init", "torch.nn.utils", "torch.optim",
    "torch.optim.lr_scheduler", "torch.optim.swa_utils", "torch.utils.data", "torch.autograd",
    "torch.autograd.forward_ad", "torch.autograd.functional", "torch.autograd.graph",
    "torch.linalg", "torch.fft", "torch.Tensor",
)  # fmt: skip
OF_DEVICES = {"xpu", "ipu", "mtia"}
"""Methods of tensors that copy to devices which flambeau has not: they show no example."""
SHAPES = re.compile(
    r"\b([Ss]hapes?|sizes?|dims?|0-dim|scalars?|matrix|matrices|vectors?)\b"
    r"|[Ee]lement by element|[Ee]lementwise|broadcast"
    r"|[\[(](\*|[NCLHWDSTBMKV]\b)[^\])]*[\])]"  # (N, C, L), [*, D]
)
"""Words and signs that tell something about shapes."""
LINES_OF_EXAMPLES = re.compile(r"^(>>>|\.\.\.).*$", re.MULTILINE)


def public_names() -> Iterator[tuple[str, Any]]:
    """The functions and classes that flambeau has, with their names in PyTorch."""
    for dotted in sorted(torch_names()):
        space, _, name = dotted.rpartition(".")
        if space not in NAMESPACES:
            continue
        value = getattr(namespace(space), name, None)
        if space == "torch.Tensor" and (name in OF_DEVICES or shares_docstring(name, value)):
            continue  # the function of that name is asked
        if isinstance(value, property) or (callable(value) and not isinstance(value, AbsentClass)):
            yield dotted, value


def namespace(space: str) -> Any:
    if space == "torch.Tensor":
        return flambeau.Tensor
    return importlib.import_module(space.replace("torch", "flambeau", 1))


def shares_docstring(name: str, value: Any) -> bool:
    """Whether a method has the very docstring of the function of its name."""
    function = getattr(flambeau, name.removesuffix("_"), None)
    return callable(function) and inspect.getdoc(value) == inspect.getdoc(function)


NAMES = dict(public_names())


def docstring(value: Any) -> str:
    """A class's own docstring, not that of its base."""
    if inspect.isclass(value):
        return inspect.cleandoc(value.__dict__.get("__doc__") or "")
    return inspect.getdoc(value) or ""


def works_on_tensors(dotted: str, value: Any) -> bool:
    """Whether it is an operator, a layer, or a method that returns a tensor."""
    if inspect.isclass(value):
        return issubclass(value, Module)
    if dotted.startswith("torch.Tensor.") and callable(value):
        return "Tensor" in str(inspect.signature(value).return_annotation)
    rows = BY_NAME.get(dotted.removeprefix("torch."), [])
    return any("Tensor" in op.text for op in rows)


def test_there_are_names_of_every_namespace():
    assert {name.rpartition(".")[0] for name in NAMES} == set(NAMESPACES)
    assert len(NAMES) > 1000


@pytest.mark.parametrize("dotted", NAMES)
def test_docstring(dotted: str):
    value = NAMES[dotted]
    text = docstring(value)
    assert text, "no docstring"
    assert ">>> " in text, "no example"
    if works_on_tensors(dotted, value):
        assert SHAPES.search(LINES_OF_EXAMPLES.sub("", text)), f"nothing about shapes: {text}"


def examples() -> dict[str, str]:
    """Each docstring once, under the first of its names."""
    found: dict[str, str] = {}
    for dotted, value in NAMES.items():
        found.setdefault(docstring(value), dotted)
    return {dotted: text for text, dotted in found.items() if ">>> " in text}


EXAMPLES = examples()


@pytest.mark.parametrize("dotted", EXAMPLES)
def test_example(dotted: str, forgotten_names: None):
    """Also those of docstrings that a loop has made, which `test_docstrings` cannot read."""
    names = {"torch": flambeau, "__name__": "examples", dotted.rpartition(".")[2]: NAMES[dotted]}
    test = doctest.DocTestParser().get_doctest(EXAMPLES[dotted], names, dotted, None, None)
    said: list[str] = []
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
    runner.run(test, out=said.append)
    assert not said, "".join(said)


def test_there_are_many_examples():
    assert len(EXAMPLES) >= 600
