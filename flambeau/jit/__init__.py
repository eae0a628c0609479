"""TorchScript: programs in a typed subset of Python, compiled, traced, saved and loaded.

Where a program passes on its way:

    Python source ── frontend/ ──► Graph ── passes/ ──► Function ──┬─ printing/  `.graph`, `.code`
    nn.Module ── modules/ ──► class type and methods               ├─ optimise/, run/  it runs
    example call ── trace/ ──► Graph                               └─ archive/   files, both ways

`ir/` holds types, graphs and functions, `operators/` the operators that a program may use,
`library/` what programs have for themselves where Python's text is no program yet.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from types import ModuleType
from typing import Any

FILES = {
    "markers": (
        "Attribute Final annotate export ignore is_scripting is_tracing script_if_tracing "
        "strict_fusion unused _drop _script_if_tracing _overload _overload_method "
        "_IgnoreContextManager"
    ),
    "execution": (
        "enable_onednn_fusion fuser jit_module_from_flatbuffer onednn_fusion_enabled "
        "optimized_execution save_jit_module_to_flatbuffer set_fusion_strategy "
        "_set_fusion_strategy export_opnames _unwrap_optional last_executed_optimized_graph "
        "_hide_source_ranges"
    ),
    "type_tests": "isinstance _isinstance",
    "asynchronous": "Future fork wait _fork _wait",
    "freezing": "freeze optimize_for_inference run_frozen_optimizations",
    "errors": "Error ScriptWarning TracerWarning TracingCheckError",
    "modules.functions": "ScriptFunction",
    "modules.script_module": "RecursiveScriptModule ScriptModule",
    "modules.scripting": "script",
    "modules.methods": "script_method",
    "modules.classes": "RecursiveScriptClass",
    "modules.interfaces": "interface",
    "modules.units": "CompilationUnit",
    "trace": "TopLevelTracedModule TracedModule trace trace_module",
    "archive": "load save",
    "run.limits": "Limits",
}
"""File below `flambeau.jit` and the names in it."""

HOME = {name: file for file, names in FILES.items() for name in names.split()}

__all__ = [  # noqa: PLE0604, PLE0605
    "Attribute", "CompilationUnit", "Error", "Future", "ScriptFunction", "ScriptModule",
    "annotate", "enable_onednn_fusion", "export", "export_opnames", "fork", "freeze", "ignore",
    "interface", "isinstance", "load", "onednn_fusion_enabled", "optimize_for_inference", "save",
    "script", "script_if_tracing", "set_fusion_strategy", "strict_fusion", "trace",
    "trace_module", "unused", "wait",
]  # fmt: skip  # noqa: F822


def __getattr__(name: str) -> Any:
    file = HOME.get(name)
    if file is not None and _is_there(file):
        found = globals()[name] = getattr(importlib.import_module(f"{__name__}.{file}"), name)
        return found
    from flambeau._core.missing import missing

    return missing(__name__, name)


def _is_there(file: str) -> bool:
    return importlib.util.find_spec(f"{__name__}.{file}") is not None


def __dir__() -> list[str]:
    return sorted({*globals(), *HOME})


class _Package(ModuleType):
    """This package: where a package in it is imported that has a function of its own name, as
    `trace` has, the function stands here, and not the package.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, ModuleType) and name in HOME:
            value = getattr(value, name)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
