"""`torch.jit.save`."""

from __future__ import annotations

import sys
from typing import Any

from flambeau.jit.archive import upgraders
from flambeau.jit.archive.names import check_written
from flambeau.jit.archive.origins import places_pickle
from flambeau.jit.archive.pickle_writer import ValuePickler
from flambeau.jit.errors import warn_of_age
from flambeau.jit.ir import types as T
from flambeau.jit.ir.function import CompilationUnit, Function, FunctionSchema, Parameter
from flambeau.jit.ir.graph import Graph
from flambeau.jit.ir.values import type_of
from flambeau.jit.modules.functions import ScriptFunction
from flambeau.jit.modules.script_module import RecursiveScriptModule, ScriptModule
from flambeau.jit.printing.archive_text import ArchiveCode
from flambeau.serialization.api import _write_storages, folder_name, open_sink
from flambeau.serialization.archive_writer import ArchiveWriter
from flambeau.serialization.pickler import SavedStorages


def save(m: Any, f: Any, _extra_files: dict[str, Any] | None = None) -> None:
    """Write a compiled module or function as an archive that libtorch, too, can load and run.

    m: a ScriptModule; of a ScriptFunction a module is made whose `forward` it is.
    f: a path, which is replaced at once when all is written, or a file object with `write`.
    _extra_files: further records: names and contents (str or bytes).

    Raises:
        AttributeError: it is not compiled.
        RuntimeError: it holds something that archives cannot.
    """
    warn_of_age("torch.jit.save", "`torch.export`")
    module = placeholder(m._function) if isinstance(m, ScriptFunction) else m
    if not isinstance(module, ScriptModule) or "_type" not in module.__dict__:
        raise AttributeError(f"'{type(m).__name__}' object has no attribute 'save'")
    write_module(module, f, _extra_files or {})


def placeholder(function: Function) -> RecursiveScriptModule:
    """A module whose `forward` is a function; as in torch, it forgets the defaults."""
    unit = CompilationUnit()
    kind = unit.add_class("__torch__.PlaceholderModule", is_module=True)
    kind.add("training", T.BOOL)
    graph = function.graph.copy()
    graph.block.add_input(kind, "self")
    inputs = graph.block.inputs
    inputs.insert(0, inputs.pop())
    schema = function.schema
    plain = [Parameter(argument.name, argument.type) for argument in schema.arguments]
    arguments = (Parameter("self", kind), *plain)
    kind.methods["forward"] = Function(
        f"{kind.qualified_name}.forward", unit, graph=graph,
        schema=FunctionSchema("forward", "", arguments, schema.returns),
    )  # fmt: skip
    return RecursiveScriptModule.build(kind, {"training": True})


def write_module(module: ScriptModule, f: Any, extra_files: dict[str, Any]) -> None:
    """Write all records; nothing is opened for a module that cannot be saved."""
    classes: dict[T.Type, None] = {}

    def name_of(type: T.Type) -> str:
        classes.setdefault(type)
        return type.qualified_name  # type: ignore[attr-defined,no-any-return]

    storages, constant_storages = SavedStorages(), SavedStorages()
    data = ValuePickler(storages, name_of).dump(module, module._type)
    code = ArchiveCode([module._type, *classes])
    for entry in code.entries:
        if isinstance(entry, T.Type):
            check_written(entry)
    values = tuple(code.constants)
    constants_type = T.TupleType(tuple(map(type_of, values)))
    constants = ValuePickler(constant_storages, name_of).dump(values, constants_type)
    version = upgraders.version_needed(_graphs(code))
    with open_sink(f) as sink:
        writer = ArchiveWriter(sink, folder_name(f))
        for name, content in extra_files.items():
            raw = content.encode() if isinstance(content, str) else bytes(content)
            writer.write(f"extra/{name}", raw)
        _write_storages(writer, _contents("data", storages))
        writer.write("data.pkl", data)
        for path, text in code.files.items():
            writer.write(path, text.encode())
            writer.write(f"{path}.debug_pkl", places_pickle(code.pieces[path]))
        _write_storages(writer, _contents("constants", constant_storages))
        writer.write("constants.pkl", constants)
        writer.write("byteorder", sys.byteorder.encode())
        writer.finish(version)


def _graphs(code: ArchiveCode) -> list[Graph]:
    """The graphs of all functions and methods of an archive."""
    functions: list[Function] = []
    for entry in code.entries:
        methods = [entry] if isinstance(entry, Function) else getattr(entry, "methods", {}).values()
        functions += [method for method in methods if isinstance(method, Function)]
    return [function.graph for function in functions]


def _contents(folder: str, storages: SavedStorages) -> dict[str, Any]:
    return {f"{folder}/{key}": storages.content(key) for key in storages.by_key}
