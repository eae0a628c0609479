"""The code of an archive, compiled: classes and functions come into being when they are named.

`__torch__.models.Net` stands in the record `code/__torch__/models.py`. The text is parsed by
Python's own parser (`dialect.py`) and compiled by `jit.frontend`, as any program; none of it runs
as Python. What a name may mean is said in `meanings.py`.
"""

from __future__ import annotations

import ast
import enum
import functools
import sys
from collections.abc import Callable
from typing import Any

from flambeau.jit.archive.dialect import (
    declaration,
    list_of_names,
    literal,
    parsed,
    statements,
)
from flambeau.jit.archive.meanings import Names, Older, sugar_of_type
from flambeau.jit.archive.names import check_attribute
from flambeau.jit.frontend.compiler import Compiler
from flambeau.jit.frontend.definitions import compile_function
from flambeau.jit.frontend.errors import FrontendError
from flambeau.jit.frontend.simple_value import FunctionValue
from flambeau.jit.frontend.source import Definition
from flambeau.jit.frontend.sugar import SugaredValue
from flambeau.jit.ir import types as T
from flambeau.jit.ir.function import CompilationUnit, Function
from flambeau.jit.ir.graph import Graph
from flambeau.jit.ir.source import ScriptError, Source
from flambeau.jit.ir.values import type_of
from flambeau.jit.modules.classes import class_type_of
from flambeau.jit.modules.contexts import IN_ARCHIVES
from flambeau.jit.modules.enums import types as enum_types

HOOKS = {"__forward_hooks__": "forward_hooks", "__forward_pre_hooks__": "forward_pre_hooks"}
PARAMETERS = (T.TENSOR, T.optional(T.TENSOR), T.NONE)
"""Types of parameters and buffers."""
LARGEST_TUPLE = 10_000


class Importer:
    """Compiles the code of one archive into a unit.

    read: the text of a record, None if there is none. constants: what `CONSTANTS.c0` &c. are.
    upgrade: changes graphs of code that was written for older operators; older: programs that stand
    for names of operators.
    """

    def __init__(self, unit: CompilationUnit, read: Callable[[str], str | None],
                 constants: tuple[Any, ...], upgrade: Callable[[Graph], None],
                 older: Older = lambda name: ()) -> None:  # fmt: skip
        self.unit = unit
        self.read = read
        self.constants = constants
        self.upgrade = upgrade
        self.older = older
        self.files: dict[str, dict[str, tuple[Source, ast.stmt]]] = {}
        self.origins: Callable[[str, str], Any] = lambda path, text: None
        self.open: set[str] = set()  # NamedTuples that are being made
        self.sizes: dict[str, int] = {}  # and of how many types those are made that are done

    # ---- what archives name

    def type(self, qualified: str) -> T.Type:
        """A class of the archive by its qualified name.

        Raises:
            ScriptError: there is none.
        """
        found = self.unit.types.get(qualified) or self._load_type(qualified)
        if found is None:
            raise ScriptError(f"Unknown type name '{qualified}'")
        return found

    def type_of_text(self, text: str) -> T.Type:
        """A type that a pickle gives as text: `Dict[str, __torch__.Net]`."""
        node = parsed(text, "eval").body
        return self._compiler(Source(text)).type_of(node)

    def find(self, qualified: str) -> SugaredValue | None:
        """What a qualified name means; None if nothing."""
        made = self.unit.types.get(qualified) or self._load_type(qualified)
        if made is not None:
            return sugar_of_type(made)
        function = self.unit.functions.get(qualified) or self._load_function(qualified)
        return None if function is None else FunctionValue(function)

    def _definition(self, qualified: str) -> tuple[Source, ast.stmt] | None:
        """The class or function of a name in its file."""
        module, _, name = qualified.rpartition(".")
        if module not in self.files:
            path = f"code/{module.replace('.', '/')}.py"
            text = self.read(path)
            origins = None if text is None else self.origins(path, text)
            source = Source(text or "", path, 1, origins)
            self.files[module] = {} if text is None else statements(source)
        return self.files[module].get(name)

    def _compiler(self, source: Source) -> Compiler:
        return Compiler(Graph(), source, Names(self))

    # ---- functions

    def _load_function(self, qualified: str) -> Function | None:
        found = self._definition(qualified)
        if found is None or not isinstance(found[1], ast.FunctionDef):
            return None
        return self.unit.add_function(self.function(qualified, Definition(found[1], found[0])))

    def function(self, qualified: str, definition: Definition,
                 owner: T.ClassType | None = None) -> Function:  # fmt: skip
        """A function, to be compiled when it is first needed."""
        define = functools.partial(self._define, definition=definition, owner=owner)
        return Function(qualified, self.unit, define=define)

    def _define(self, function: Function, *, definition: Definition,
                owner: T.ClassType | None) -> None:  # fmt: skip
        defaults = self._defaults(definition, function.qualified_name)
        try:
            compile_function(function, definition.node, definition.source, Names(self), None,
                             owner, defaults=defaults)  # fmt: skip
        except FrontendError as error:
            raise ScriptError(error.msg, error.source_range) from None
        except RecursionError:
            raise ScriptError(f"{function.qualified_name} is nested too deeply") from None
        graph = function._graph
        assert graph is not None
        if owner is not None and (not graph.inputs or graph.inputs[0].type is not owner):
            raise ScriptError(f"{function.qualified_name} should have `self: {owner}` first")
        self.upgrade(graph)

    def _defaults(self, definition: Definition, where: str) -> dict[str, Any]:
        """The values of the parameters that a call may leave out: archives write constants."""
        given = definition.node.args
        pairs = [
            *zip(given.args[::-1], given.defaults[::-1], strict=False),
            *zip(given.kwonlyargs, given.kw_defaults, strict=True),
        ]
        return {
            parameter.arg: self._constant(node, definition.source, where)
            for parameter, node in pairs if node is not None
        }  # fmt: skip

    # ---- classes

    def _load_type(self, qualified: str) -> T.Type | None:
        if qualified in IN_ARCHIVES:
            own = class_type_of(IN_ARCHIVES[qualified], {"torch": sys.modules["flambeau"]})
            return self.unit.types.setdefault(qualified, own)
        found = self._definition(qualified)
        if found is None or not isinstance(found[1], ast.ClassDef):
            return None
        source, node = found[0], found[1]
        bases = [ast.unparse(base) for base in node.bases]
        kind = bases[0] if len(bases) == 1 else "" if not bases else "?"
        make = KINDS.get(kind)
        if make is None:
            raise ScriptError(f"class {qualified} inherits from {', '.join(bases)}")
        return make(self, qualified, node, source)

    def _class(self, qualified: str, node: ast.ClassDef, source: Source,
               is_module: bool) -> T.Type:  # fmt: skip
        made = T.ClassType(qualified, self.unit, is_module=is_module)
        self.unit.types[qualified] = made
        lists: dict[str, list[str]] = {}
        declared = []
        for statement in node.body:
            if isinstance(statement, ast.FunctionDef):
                definition = Definition(statement, source)
                name = statement.name
                if name in made.methods or statement.decorator_list:
                    raise ScriptError(f"{made}.{name} is defined twice or decorated")
                made.methods[name] = self.function(f"{qualified}.{name}", definition, made)
            elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                lists[statement.targets[0].id] = list_of_names(statement.value, qualified)
            elif not isinstance(statement, ast.Pass):
                declared.append(declaration(statement, qualified))
        kinds = {name: kind for kind in ("parameter", "buffer")
                 for name in lists.get(f"__{kind}s__", ())}  # fmt: skip
        for name, note, value in declared:
            self._attribute(made, name, note, value, kinds.get(name, ""), source)
        for word, attribute in HOOKS.items():
            for name in lists.get(word, ()):
                if name not in made.methods:
                    raise ScriptError(f"{made} has no method {name!r} for its {word}")
                getattr(made, attribute).append(made.methods[name])
        return made

    def _attribute(self, made: T.ClassType, name: str, note: ast.expr, value: ast.expr | None,
                   kind: str, source: Source) -> None:  # fmt: skip
        check_attribute(name, str(made))
        if name in made.constants or name in made.attributes or name in made.methods:
            raise ScriptError(f"{made} has two things called {name!r}")
        if value is not None:
            made.constants[name] = self._constant(value, source, f"{made}.{name}")
            return
        found = self._compiler(source).type_of(note)
        is_module = getattr(found, "is_module", False)
        if kind and found not in PARAMETERS:
            raise ScriptError(f"{made}: the {kind} {name!r} should be a Tensor")
        made.add(name, found, kind or ("module" if is_module else "attribute"))

    def _constant(self, node: ast.expr, source: Source, where: str) -> Any:
        """The value of a constant of a class: a literal, or a call that gives one."""
        text = ast.unparse(node)
        if text in ("inf", "nan", "-inf"):
            return float(text)
        if text.startswith("__torch__."):
            return self._member(text, where)
        if isinstance(node, ast.Call) and text.startswith("torch.device("):
            from flambeau._core.device import device

            return device(literal(node.args[0], where))
        if isinstance(node, ast.Call) and text.startswith("float("):
            return float(literal(node.args[0], where))
        if isinstance(node, ast.Call) and text.startswith("annotate("):
            return self._constant(node.args[1], source, where)
        return literal(node, where)

    def _member(self, text: str, where: str) -> Any:
        """A member of an enumeration of the archive."""
        qualified, _, name = text.rpartition(".")
        owner = getattr(self.type(qualified), "python", None)
        if not isinstance(owner, type) or name not in getattr(owner, "__members__", ()):
            raise ScriptError(f"{where}: not a constant: {text}")
        return owner[name]  # type: ignore[index]

    def _module(self, qualified: str, node: ast.ClassDef, source: Source) -> T.Type:
        return self._class(qualified, node, source, True)

    def _plain(self, qualified: str, node: ast.ClassDef, source: Source) -> T.Type:
        return self._class(qualified, node, source, False)

    def _named_tuple(self, qualified: str, node: ast.ClassDef, source: Source) -> T.Type:
        fields, elements, defaults = [], [], []
        self._enter(qualified)
        for statement in node.body:
            name, note, value = declaration(statement, qualified)
            if name.startswith("_") or not name.isidentifier():
                raise ScriptError(f"{qualified}: a field cannot be called {name!r}")
            fields.append(name)
            elements.append(self._compiler(source).type_of(note))
            if value is not None:
                default = self._constant(value, source, qualified)
                if not isinstance(default, (int, float, str, type(None))):
                    raise ScriptError(f"{qualified}: not a default value: {default!r}")
                defaults.append(default)
        self.open.remove(qualified)
        if len(set(fields)) != len(fields):
            raise ScriptError(f"{qualified} has two fields of one name")
        self.sizes[qualified] = size = sum(map(self._size, elements))
        if size > LARGEST_TUPLE:
            raise ScriptError(f"{qualified} holds more than {LARGEST_TUPLE} values")
        made = T.TupleType(tuple(elements), qualified, tuple(fields), tuple(defaults))
        self.unit.types[qualified] = made
        return made

    def _size(self, type: T.Type) -> int:
        """How many types a type is made of. NamedTuples in NamedTuples may be made of very many."""
        name = getattr(type, "qualified_name", "")
        return self.sizes.get(name) or 1 + sum(map(self._size, type.parts))

    def _enter(self, qualified: str) -> None:
        """Note that a NamedTuple is being made, which cannot hold itself."""
        if qualified in self.open:
            raise ScriptError(f"{qualified} holds itself")
        self.open.add(qualified)

    def _enum(self, qualified: str, node: ast.ClassDef, source: Source) -> T.Type:
        members = {}
        for statement in node.body:
            if not isinstance(statement, ast.Assign) or not isinstance(
                statement.targets[0], ast.Name
            ):
                raise ScriptError(f"{qualified}: an enumeration holds assignments only")
            name = statement.targets[0].id
            if name.startswith("_") or name == "mro":
                raise ScriptError(f"{qualified}: a member cannot be called {name!r}")
            members[name] = literal(statement.value, qualified)
        kinds = set(map(type, members.values()))
        if len(kinds) != 1 or not kinds <= {int, float, str}:
            raise ScriptError(f"{qualified}: members should be all int, all float or all str")
        owner: Any = enum.Enum(qualified.rpartition(".")[2], members)  # type: ignore[misc]
        value_type = type_of(next(iter(members.values())))
        made = T.EnumType(qualified, value_type, owner)
        enum_types[owner] = made
        self.unit.types[qualified] = made
        return made

    def _interface(self, qualified: str, node: ast.ClassDef, source: Source) -> T.Type:
        from flambeau.jit.modules.signatures import declared_schema

        is_module = ast.unparse(node.bases[0]) == "ModuleInterface"
        made = T.InterfaceType(qualified, is_module=is_module)
        self.unit.types[qualified] = made
        for statement in node.body:
            if isinstance(statement, ast.FunctionDef):
                definition = Definition(statement, source)
                made.methods[statement.name] = declared_schema(definition, Names(self), made)
        return made


KINDS: dict[str, Any] = {
    "": Importer._plain, "Module": Importer._module, "NamedTuple": Importer._named_tuple,
    "Enum": Importer._enum, "Interface": Importer._interface,
    "ModuleInterface": Importer._interface,
}  # fmt: skip
"""What makes the classes that inherit from a word."""
