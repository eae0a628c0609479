"""`torch.random.fork_rng`: random streams are put back after a block."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

from flambeau._core.device import device
from flambeau._core.missing import as_torch_name
from flambeau._ops.random.draws import get_rng_state, set_rng_state


@contextlib.contextmanager
def fork_rng(
    devices: Iterable[Any] | None = None,
    enabled: bool = True,
    _caller: str = "fork_rng",
    _devices_kw: str = "devices",
    device_type: str | None = None,
) -> Iterator[None]:
    """Leave the random streams as they were before the block: the CPU's, and those of `devices`.

    By default these are all devices of a type, with a warning if there are several; the type is
    that of the accelerator that is there, or "cuda". Nothing happens unless `enabled`.
    """
    kind = device("cuda" if device_type is None else device_type).type
    if kind == "meta" or not enabled:
        yield
        return
    module = _module_of(kind)
    chosen = _all_of(module, kind, _caller, _devices_kw) if devices is None else list(devices)
    state = get_rng_state()
    states = [module.get_rng_state(index) for index in chosen]
    try:
        yield
    finally:
        set_rng_state(state)
        for index, kept in zip(chosen, states, strict=True):
            module.set_rng_state(kept, index)


def _module_of(kind: str) -> Any:
    """`torch.cuda` for "cuda"."""
    name = f"flambeau.{kind}"
    if importlib.util.find_spec(name) is None:
        known = as_torch_name(name)
        raise RuntimeError(
            f"Device '{kind}' does not have a corresponding module registered as '{known}'."
        )
    return importlib.import_module(name)


def _all_of(module: Any, kind: str, caller: str, option: str) -> list[int]:
    count = module.device_count()
    if count > 1:
        warnings.warn(
            f"{kind.upper()} reports that you have {count} available devices, and {caller} is used "
            "without explicitly noting which of them are used. The random streams of all of them "
            f"are saved, which takes time; say which by `{option}` ([] for the CPU alone).",
            stacklevel=4,
        )
    return list(range(count))
