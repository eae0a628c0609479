"""Freezing: parameters and attributes of a module in evaluation mode become constants."""

from __future__ import annotations

import warnings
from typing import Any

from flambeau.jit.modules.script_module import RecursiveScriptModule, ScriptModule

SCRIPT_FIRST = "Please use torch.jit.script or torch.jit.trace to script your 'nn.Module'."


def _deprecated(name: str) -> None:
    warnings.warn(
        f"`torch.jit.{name}` is deprecated. Please use `torch.compile` instead.",
        DeprecationWarning,
        stacklevel=3,
    )


def freeze(
    mod: Any, preserved_attrs: list[str] | None = None, optimize_numerics: bool = True
) -> RecursiveScriptModule:
    """A copy of a compiled module with everything inlined into `forward`.

    preserved_attrs: attributes and methods that are kept; other attributes are gone.
    optimize_numerics: also do what changes results by rounding, as putting batch normalization
        into the convolution before it.

    Raises:
        RuntimeError: the module is not compiled, or in training mode.
    """
    _deprecated("freeze")
    return _frozen(mod, preserved_attrs or [], optimize_numerics)


def _frozen(mod: Any, preserved: list[str], optimize_numerics: bool) -> RecursiveScriptModule:
    if not isinstance(mod, ScriptModule):
        raise RuntimeError(f"Freezing expects a ScriptModule as input. {SCRIPT_FIRST}")
    if mod.training:
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. "
            "Please call .eval() on your module before freezing."
        )
    from flambeau.jit.passes.freezing import freeze_module

    frozen = freeze_module(mod, preserved)
    methods = [name for name in preserved if name in mod._type.methods]
    run_frozen_optimizations(frozen, optimize_numerics, methods)
    return frozen


def run_frozen_optimizations(
    mod: ScriptModule, optimize_numerics: bool = True, preserved_methods: list[str] | None = None
) -> None:
    """Improve the graphs of a frozen module: dropout goes, batch normalization is folded, …"""
    from flambeau.jit.passes.frozen import optimize_frozen_graph

    for name in ["forward", *(preserved_methods or ())]:
        if name in mod._type.methods:
            optimize_frozen_graph(mod._type.methods[name].graph, optimize_numerics)


def optimize_for_inference(
    mod: ScriptModule, other_methods: list[str] | None = None
) -> ScriptModule:
    """Freeze a module, unless it is frozen, and improve its graphs.

    Raises:
        RuntimeError: the module is not compiled, or has no `forward`.
    """
    _deprecated("optimize_for_inference")
    if not isinstance(mod, ScriptModule):
        raise RuntimeError(
            f"optimize_for_inference expects a ScriptModule as input. {SCRIPT_FIRST}"
        )
    if hasattr(mod, "training"):
        mod = _frozen(mod.eval(), other_methods or [], optimize_numerics=True)
    if "forward" not in mod._type.methods:
        raise RuntimeError("Method 'forward' is not defined.")
    return mod
