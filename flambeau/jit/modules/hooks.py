"""Forward hooks and pre-hooks of modules, compiled as functions of the module's class."""

from __future__ import annotations

from typing import Any

from flambeau.jit.ir import types as T
from flambeau.jit.ir.function import Function
from flambeau.jit.modules.concrete import ConcreteType
from flambeau.jit.modules.methods import ModuleSelf, add_method, source_of
from flambeau.nn import Module


def compile_hooks(module: Module, concrete: ConcreteType) -> None:
    """Compile the hooks of a module and note them in its class type.

    Raises:
        RuntimeError: two hooks have one name, or a signature does not fit `forward`.
    """
    seen: dict[str, Any] = {}
    type = concrete.type
    for hook in module._forward_hooks.values():
        _check_name("Hook", hook, module, seen)
    for hook in module._forward_pre_hooks.values():
        _check_name("Pre-hook", hook, module, seen)
        function = _compiled(concrete, hook)
        _PreHook(type, function).check(hook)
        type.forward_pre_hooks.append(function)
    for hook in module._forward_hooks.values():
        function = _compiled(concrete, hook)
        _Hook(type, function).check(hook)
        type.forward_hooks.append(function)


def _check_name(kind: str, hook: Any, module: Module, seen: dict[str, Any]) -> None:
    if seen.setdefault(hook.__name__, hook) is not hook:
        raise RuntimeError(
            f"{kind} '{hook.__name__}' on {type(module).__name__} has at least two different "
            "python definitions. Please use unique names for all hooks."
        )


def _compiled(concrete: ConcreteType, hook: Any) -> Function:
    name = hook.__name__
    if name in concrete.type.methods:
        raise RuntimeError(
            f"Can't define hook: {name} on class: {concrete.type} because a method or hook with "
            "that name already exists."
        )
    found = source_of(hook)
    function = add_method(
        concrete.type, found.definition, found.scope, found.original, ModuleSelf(concrete)
    )
    try:
        function.ensure_defined()
    finally:
        del concrete.type.methods[name]
    return function


class _Signature:
    """What a hook has to look like. `forward`: the schema of the method that it stands around."""

    kind = ""

    def __init__(self, type: T.ClassType, function: Function) -> None:
        self.type = type
        self.name = function.name
        self.schema = function.schema
        forward = type.methods.get("forward")
        self.inputs = () if forward is None else tuple(
            argument.type for argument in forward.schema.arguments[1:]
        )  # fmt: skip
        self.output = T.TENSOR if forward is None else forward.schema.returns[0].type

    @property
    def wanted_input(self) -> str:
        return T.TupleType(self.inputs).annotation

    def expected(self) -> str:
        """The sentences at the end of all errors."""
        raise NotImplementedError

    def fail(self, reason: str) -> RuntimeError:
        return RuntimeError(f"{self.kind} '{self.name}' on module '{self.type.name}' {reason}"
                            f"{self.expected()}\n")  # fmt: skip

    def check_count(self, count: int) -> None:
        found = len(self.schema.arguments)
        if found != count:
            raise self.fail(
                f"was expected to only have exactly {count} inputs but it had {found} inputs. "
            )

    def check_input(self) -> None:
        found = self.schema.arguments[1].type
        if not isinstance(found, T.TupleType):
            raise self.fail(
                "expected the input argument to be typed as a Tuple but found type: "
                f"'{found.annotation}' instead.\n"
            )
        if found.elements != self.inputs:
            raise self.fail(
                "has the wrong inner types for the input tuple argument. "
                f"Received type: '{found.annotation}'.\n"
            )


class _PreHook(_Signature):
    kind = "Pre-hook"

    def expected(self) -> str:
        single = f"'{self.inputs[0].annotation}', " if len(self.inputs) == 1 else ""
        return (
            f"This error occurred while scripting the forward pre-hook '{self.name}' on module "
            f"'{self.type.name}'. If you did not want to script this pre-hook remove it from the "
            f"original NN module before scripting. Pre-hooks for module '{self.type.name}' are "
            f"expected to have the following signature: {self.name}(self, input: "
            f"{self.wanted_input}) with a return type of either 'None', {single}"
            f"or '{self.wanted_input}'."
        )

    def check(self, hook: Any) -> None:
        self.check_count(2)
        self.check_input()
        if "return" not in hook.__annotations__:
            raise self.fail(
                "is missing a return annotation. Return annotations are required, please add one.\n"
            )
        found = self.schema.returns[0].type
        allowed = [T.NONE, T.TupleType(self.inputs)]
        if len(self.inputs) == 1:
            allowed.append(self.inputs[0])
        if found not in allowed:
            raise self.fail(f"returned the wrong type of: '{found.annotation}'.")


class _Hook(_Signature):
    kind = "Hook"

    def __init__(self, type: T.ClassType, function: Function) -> None:
        super().__init__(type, function)
        for earlier in type.forward_hooks:
            given = earlier.schema.returns[0].type
            self.output = self.output if given == T.NONE else given

    def expected(self) -> str:
        return (
            f"This error occurred while scripting the forward hook '{self.name}' on module "
            f"{self.type.name}. If you did not want to script this hook remove it from the "
            "original NN module before scripting. This hook was expected to have the following "
            f"signature: {self.name}(self, input: {self.wanted_input}, output: "
            f"{self.output.annotation}). The type of the output arg is the returned type from "
            "either the forward method or the previous hook if it exists. Note that hooks can "
            "return anything, but if the hook is on a submodule the outer module is expecting the "
            "same return type as the submodule's forward."
        )

    def check(self, hook: Any) -> None:
        self.check_count(3)
        self.check_input()
        found = self.schema.arguments[2].type
        if found != self.output:
            raise self.fail(
                f"has the wrong type for the output argument. Received type: '{found.annotation}'. "
                f"Expected type: '{self.output.annotation}'.\n"
            )
