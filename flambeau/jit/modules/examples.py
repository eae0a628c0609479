"""Types of parameters from example inputs."""

from __future__ import annotations

import ast
import copy
import inspect
from typing import Any

from flambeau.jit.frontend.source import Definition
from flambeau.jit.ir import types as T
from flambeau.jit.modules.inference import NoType, inferred

noted: dict[Any, dict[str, T.Type]] = {}
"""The types that the parameters of functions had in the examples of modules."""


def annotated(definition: Definition, function: Any, example_inputs: Any) -> Definition:
    """The definition with annotations where it has none and the examples agree on a type."""
    if not isinstance(example_inputs, list):
        raise ValueError(
            "Error: Unable to infer types. Please format the inputs to type `List[Tuple]`"
            " or `Dict[Callable, List[Tuple]]` to be run with MonkeyType."
        )
    types = types_of(function, example_inputs)
    node = copy.deepcopy(definition.node)
    for argument in node.args.args:
        found = types.get(argument.arg)
        if argument.annotation is None and found is not None:
            note = ast.parse(found.annotation, mode="eval").body
            for part in ast.walk(note):
                ast.copy_location(part, argument)
            argument.annotation = note
    return Definition(node, definition.source)


def types_of(function: Any, examples: list[Any]) -> dict[str, T.Type]:
    """The type that each parameter has in all examples."""
    signature = inspect.signature(function)
    found: dict[str, T.Type] = {}
    for example in examples:
        given = signature.bind(*example).arguments
        for name, value in given.items():
            try:
                one = inferred(value)
            except NoType:
                continue
            both = T.unify(found[name], one) if name in found else one
            found[name] = both if both is not None else T.union((found[name], one))
    return found


def note_calls(example_inputs: Any) -> None:
    """Remember the types of the arguments of modules' `forward`."""
    if not isinstance(example_inputs, dict):
        raise ValueError(
            "Error: Unable to infer types. Please format the inputs to type `List[Tuple]`"
            " or `Dict[Callable, List[Tuple]]` to be run with MonkeyType."
        )
    for module, examples in example_inputs.items():
        forward = type(module).forward
        noted[forward] = types_of(forward.__get__(module), examples)
