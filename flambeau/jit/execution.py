"""Settings of the executor, most of which change nothing here."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from flambeau._core.missing import NotImplementedInFlambeau, not_implemented_text
from flambeau.jit import state

FUSERS = ("fuser0", "fuser1", "fuser2", "fuser3", "none")


@contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """Functions that first run within it are optimised, or are not."""
    before = state.optimize
    checked = before == state.CHECKED
    state.optimize = before if should_optimize and checked else bool(should_optimize)
    try:
        yield
    finally:
        state.optimize = before


@contextmanager
def fuser(name: str) -> Iterator[None]:
    """Choose among torch's fusers. There is one here: "none" turns it off, the others on."""
    if name not in FUSERS:
        raise Exception(f"unrecognized fuser option (name: {name})")  # noqa: TRY002
    with optimized_execution(name != "none"):
        yield


def set_fusion_strategy(strategy: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Keep a list of pairs ("STATIC" or "DYNAMIC", how often), and return the one before.

    Kernels here serve all shapes, so that it changes nothing.
    """
    warnings.warn(
        "`torch.jit.set_fusion_strategy` is deprecated. Please use `torch.compile` instead.",
        DeprecationWarning,
        stacklevel=2,
    )
    for kind, _ in strategy:
        if kind not in ("STATIC", "DYNAMIC"):
            raise ValueError(f"FusionBehavior only supported 'STATIC' or 'DYNAMIC', got: {kind}")
    before, state.fusion_strategy = state.fusion_strategy, list(strategy)
    return before


_set_fusion_strategy = set_fusion_strategy


def enable_onednn_fusion(enabled: bool) -> None:
    """Remember the wish; there is no oneDNN here."""
    state.onednn = bool(enabled)


def onednn_fusion_enabled() -> bool:
    """What `enable_onednn_fusion` was last told."""
    return state.onednn


def export_opnames(m: Any) -> list[str]:
    """The operators that a module's methods and those of its submodules use, sorted."""
    from flambeau.jit.passes import inline

    names: set[str] = set()
    for module in m.modules():
        for function in module._type.methods.values():
            graph = function.graph.copy()
            inline(graph)
            schemas = [node.schema for node in graph.walk() if node.schema is not None]
            names.update(schema.full_name for schema in schemas)
    return sorted(names)


def last_executed_optimized_graph() -> NoReturn:
    """Not kept here."""
    raise NotImplementedInFlambeau(not_implemented_text("torch.jit.last_executed_optimized_graph"))


def jit_module_from_flatbuffer(f: Any) -> NoReturn:
    """Files of the mobile format are not read."""
    raise NotImplementedInFlambeau(not_implemented_text("torch.jit.jit_module_from_flatbuffer"))


def save_jit_module_to_flatbuffer(m: Any, f: Any, _extra_files: Any = None) -> NoReturn:
    """Files of the mobile format are not written."""
    raise NotImplementedInFlambeau(not_implemented_text("torch.jit.save_jit_module_to_flatbuffer"))


@contextmanager
def _hide_source_ranges() -> Iterator[None]:
    """Graphs printed within it do not say where their nodes come from."""
    from flambeau.jit.printing import graph_text

    before = getattr(graph_text, "show_places", True)
    graph_text.show_places = False  # type: ignore[attr-defined]
    try:
        yield
    finally:
        graph_text.show_places = before  # type: ignore[attr-defined]


def _unwrap_optional(x: Any) -> Any:
    """The value, which must not be None."""
    if x is None:
        raise AssertionError("Unwrapping null optional")
    return x
