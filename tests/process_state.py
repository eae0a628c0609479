"""What a test may not leave behind: the switches of the process, and of the thread of the tests.

A test that leaves one switched changes what other tests see, depending on their order. The files
`conftest.py` of tests and conformance ask `changes` after every test. What stays once it is there
is no switch: inference tensors, classes with `__torch_function__`, emulated devices.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

from flambeau._core import autocast, device, dtype, file_options, modes, precision, settings
from flambeau._tensor import printing
from flambeau.jit import state as jit
from flambeau.jit.optimise import settings as optimise
from flambeau.nn.module_hooks import GlobalHooks
from flambeau.profiler import composites
from flambeau.profiler.active import active as profiler

watch, stacks, grad, regions = modes.watch, modes.stacks, modes.grad, autocast.settings

SWITCHES: dict[str, Callable[[], Any]] = {
    "watch.active": lambda: watch.active,
    "watch.nodes": lambda: watch.nodes,
    "watch.saving": lambda: watch.saving - watch.inference_tensors,
    "anomaly mode": lambda: watch.anomaly,
    "grad mode": lambda: grad.enabled,
    "inference mode": lambda: grad.inference,
    "function modes": lambda: len(stacks.function_modes),
    "saved-tensor hooks": lambda: len(stacks.saved_hooks),
    "observers": lambda: len(stacks.observers),
    "autocast": lambda: [*regions.enabled.values(), regions.nesting, regions.cache_enabled],
    "types of autocast": lambda: list(regions.lower_types.values()),
    "the default dtype": lambda: dtype.Defaults.dtype,
    "the default device": lambda: (device.thread.chosen, list(device.thread.blocks)),
    "set_num_threads": settings.get_num_threads,
    "deterministic algorithms": lambda: settings.Determinism.enabled,
    "deterministic warnings": lambda: settings.Determinism.warn_only,
    "float32 matmul precision": lambda: precision.Precision.matmul,
    "set_printoptions": lambda: printing._current.options,
    "skip_data": lambda: file_options.thread.skip_data,
    "global module hooks": lambda: GlobalHooks.active,
    "the profiler": lambda: profiler.recorder,
    "composites that are recorded": lambda: len(composites._redirection.befores),
    "the tracer": lambda: jit.tracer,
    "optimized_execution": lambda: jit.optimize,
    "enable_onednn_fusion": lambda: jit.onednn,
    "set_fusion_strategy": lambda: jit.fusion_strategy,
    "jit.optimise.settings": lambda: optimise.current,
}
"""How each is read. All of them are read after every test: 5 µs for it."""

_before: list[Any] = []


def note() -> None:
    """Tests begin: this is how the switches should stay."""
    _before[:] = [read() for read in SWITCHES.values()]


def changes() -> list[str]:
    """What has changed since the last question, in words."""
    now = [read() for read in SWITCHES.values()]
    if now == _before:
        return []
    gc.collect()  # wrapped tensors that nothing holds any more are still counted
    now = [read() for read in SWITCHES.values()]
    named = zip(SWITCHES, _before, now, strict=True)
    found = [f"{name}: {old} before, {new} after" for name, old, new in named if old != new]
    _before[:] = now
    return found
