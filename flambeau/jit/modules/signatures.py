"""Signatures without bodies: interfaces, overloads, functions that stay Python."""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping
from typing import Any

from flambeau.jit.frontend.compiler import Compiler, Resolver
from flambeau.jit.frontend.source import Definition
from flambeau.jit.ir import types as T
from flambeau.jit.ir.function import REQUIRED, FunctionSchema, Parameter
from flambeau.jit.ir.graph import Graph


def declared_schema(definition: Definition, scope: Resolver, owner: T.Type | None = None,
                    defaults: Mapping[str, Any] | None = None) -> FunctionSchema:  # fmt: skip
    """The schema that a definition declares; without annotations, tensors.

    owner: the type of the first parameter of a method.
    """
    from flambeau.jit.frontend.constants import default_value
    from flambeau.jit.frontend.definitions import literal_defaults
    from flambeau.jit.frontend.type_comments import apply_type_comment

    node = copy.deepcopy(definition.node)
    apply_type_comment(node, definition.source, is_method=owner is not None)
    c = Compiler(Graph(), definition.source, scope)
    given = literal_defaults(node, c) if defaults is None else defaults
    parameters = []
    for index, argument in enumerate([*node.args.args, *node.args.kwonlyargs]):
        if index == 0 and owner is not None:
            parameters.append(Parameter(argument.arg, owner))
            continue
        note = argument.annotation
        type = T.INFERRED_TENSOR if note is None else c.type_of(note)
        default = REQUIRED
        if argument.arg in given:
            default = default_value(given[argument.arg], type, argument.arg, c.place(node))
        parameters.append(Parameter(argument.arg, type, default))
    result = T.TENSOR if node.returns is None else c.type_of(node.returns)
    return FunctionSchema(node.name, "", tuple(parameters), (Parameter("", result),))


def with_signature(implementation: Definition, declaration: Definition, name: str) -> Definition:
    """A function with the body of one definition and the parameters of another one."""
    body = implementation.node
    parameters = copy.deepcopy(declaration.node.args)
    returns = copy.deepcopy(declaration.node.returns)
    for root in (parameters, returns):
        for node in ast.walk(root) if root is not None else ():
            # The declaration stands in another text: errors show where the body begins.
            ast.copy_location(node, body)
    node = ast.FunctionDef(name, parameters, body.body, [], returns, None)
    return Definition(ast.copy_location(node, body), implementation.source)
