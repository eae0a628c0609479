"""TorchScript: so far, modules written as `ScriptModule` classes, run by Python.

`ScriptModule` and `script_method` give programs of that form their meaning: parameters, modes,
autograd and state as in every Module. Compiling, tracing and archives raise an error that names
them.
"""

from __future__ import annotations

from typing import Any

from flambeau.jit.script_module import ScriptModule, script_method

__all__ = ["ScriptModule", "script_method"]


def is_scripting() -> bool:
    """Whether the code is being compiled: never, Python runs it."""
    return False


def is_tracing() -> bool:
    """Whether the code is being traced: never."""
    return False


def __getattr__(name: str) -> Any:
    from flambeau._core.missing import missing

    return missing(__name__, name)
