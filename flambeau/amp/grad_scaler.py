"""Gradient scaling: losses are multiplied so that small gradients do not vanish in float16."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Any

import numpy as np

from flambeau._core.dtype import float16, float32, int32
from flambeau._ops.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.amp import unscaled
from flambeau.amp.autocast_mode import amp_definitely_not_available
from flambeau.autograd.grad_mode import no_grad

UNUSED = (
    "This may indicate your script did not use scaler.scale(loss or outputs) earlier in the "
    "iteration."
)


class OptState(Enum):
    """What was done to an optimizer's gradients since the last `update`."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _fresh_state() -> dict[str, Any]:
    return {"stage": OptState.READY, "found_inf_per_device": {}}


class GradScaler:
    """Scales losses, unscales gradients, and skips steps whose gradients are infinite or NaN.

    The scale grows by `growth_factor` after `growth_interval` good steps and shrinks by
    `backoff_factor` after a skipped one (Micikevicius et al., 2018).

    >>> import flambeau as torch
    >>> weight = torch.ones(2, requires_grad=True)
    >>> optimizer = torch.optim.SGD([weight], lr=0.5)
    >>> scaler = torch.amp.GradScaler("cpu")
    >>> scaler.scale(weight.sum()).backward()
    >>> scaler.step(optimizer)
    >>> scaler.update()
    >>> weight
    tensor([0.5000, 0.5000], requires_grad=True)
    """

    def __init__(self, device: str = "cuda", init_scale: float = 2.0**16,
                 growth_factor: float = 2.0, backoff_factor: float = 0.5,
                 growth_interval: int = 2000, enabled: bool = True) -> None:  # fmt: skip
        self._device = device
        self._enabled = enabled
        if device == "cuda" and enabled and amp_definitely_not_available():
            warnings.warn("torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  "
                          "Disabling.", stacklevel=2)  # fmt: skip
            self._enabled = False
        if not self._enabled:
            return
        if growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale = init_scale
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._init_growth_tracker = 0
        self._scale: Any = None  # tensors, made when something is first scaled
        self._growth_tracker: Any = None
        self._per_optimizer_states: defaultdict[int, Any] = defaultdict(_fresh_state)

    # ---- an iteration: scale, step, update

    def scale(self, outputs: Any) -> Any:
        """A tensor times the scale; tensors in a container likewise."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            if self._scale is None:
                self._start(outputs.device)
            return outputs * self._scale.to(outputs.device)
        if isinstance(outputs, Iterable):
            scaled = map(self.scale, outputs)
            return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else scaled  # type: ignore[call-arg]
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def unscale_(self, optimizer: Any) -> None:
        """Divide an optimizer's gradients by the scale, before they are clipped or looked at."""
        if not self._enabled:
            return
        self._check_started("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the "
                               "last update().")  # fmt: skip
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        with np.errstate(divide="ignore", over="ignore"):
            inverse = np.float32(1 / np.float64(self._scale.item()))
        state["found_inf_per_device"] = unscale(gradients_of(optimizer), inverse)
        state["stage"] = OptState.UNSCALED

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """`optimizer.step(...)` on unscaled gradients, unless one is infinite or NaN."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check_started("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if state["stage"] is OptState.READY:
            self.unscale_(optimizer)
        if not state["found_inf_per_device"]:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        state["stage"] = OptState.STEPPED
        if any(found.item() for found in state["found_inf_per_device"].values()):
            return None
        return optimizer.step(*args, **kwargs)

    def update(self, new_scale: Any = None) -> None:
        """Grow or shrink the scale after the steps of an iteration, or set it."""
        if not self._enabled:
            return
        self._check_started("update")
        if new_scale is None:
            self._adapt()
        elif isinstance(new_scale, float):
            self._scale.fill_(new_scale)
        else:
            self._take(new_scale)
        self._per_optimizer_states = defaultdict(_fresh_state)

    def _adapt(self) -> None:
        found = [
            found.item()
            for state in self._per_optimizer_states.values()
            for found in state["found_inf_per_device"].values()
        ]
        if not found:
            raise AssertionError("No inf checks were recorded prior to update.")
        if any(found):
            self._scale.fill_(self._times(self._backoff_factor))
            self._growth_tracker.fill_(0)
            return
        successes = self._growth_tracker.item() + 1
        if successes == self._growth_interval:
            grown = self._times(self._growth_factor)
            if np.isfinite(grown):
                self._scale.fill_(grown)
            successes = 0
        self._growth_tracker.fill_(successes)

    def _times(self, factor: float) -> float:
        """The scale times a factor, rounded once to float32."""
        with np.errstate(over="ignore"):
            return float(np.float32(self._scale.item() * factor))

    def _take(self, new_scale: Any) -> None:
        fits = new_scale.device.type == self._device and new_scale.numel() == 1
        if not fits or new_scale.requires_grad:
            raise AssertionError(
                "new_scale should be a float or a 1-element torch.cuda.FloatTensor or "
                "torch.FloatTensor with requires_grad=False."
            )
        self._scale.copy_(new_scale)

    # ---- the scale

    def _start(self, device: Any) -> None:
        self._scale = ops.full((), self._init_scale, dtype=float32, device=device)
        self._growth_tracker = ops.full((), self._init_growth_tracker, dtype=int32, device=device)

    def _check_started(self, function: str) -> None:
        for name in ("_scale", "_growth_tracker"):
            if getattr(self, name) is None:
                raise AssertionError(f"Attempted {function} but {name} is None.  {UNUSED}")

    def get_scale(self) -> float:
        """The scale; 1.0 where scaling is off."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def get_growth_factor(self) -> float:
        """What the scale is multiplied by to grow."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set what the scale is multiplied by to grow."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """What the scale is multiplied by to shrink."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set what the scale is multiplied by to shrink."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """How many good steps in a row make the scale grow."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set how many good steps in a row make the scale grow."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        tracker = self._growth_tracker
        return self._init_growth_tracker if tracker is None else tracker.item()

    def is_enabled(self) -> bool:
        """Whether anything is scaled."""
        return self._enabled

    # ---- checkpoints

    def state_dict(self) -> dict[str, Any]:
        """The scale and what governs it; empty where scaling is off."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(), "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor, "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }  # fmt: skip

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a state."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError("The source state dict is empty, possibly because it was saved from "
                               "a disabled instance of GradScaler.")  # fmt: skip
        self._init_scale = state_dict["scale"]
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._scale is not None:
            self._start(self._scale.device)

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        if not self._enabled:
            return state
        if self._per_optimizer_states:
            raise AssertionError("A GradScaler instance may only be pickled at the beginning of an "
                                 "iteration, or at the end after scaler.update().")  # fmt: skip
        state.update(_init_scale=self.get_scale(), _scale=None, _growth_tracker=None,
                     _init_growth_tracker=self._get_growth_tracker())  # fmt: skip
        return state

    def _found_inf_per_device(self, optimizer: Any) -> dict[Any, Any]:
        return self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]


def gradients_of(optimizer: Any) -> Iterator[Any]:
    """The gradients of an optimizer's parameters."""
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            grad = parameter.grad
            if grad is None:
                continue
            if grad.dtype is float16:
                raise ValueError("Attempting to unscale FP16 gradients.")
            yield grad


@no_grad()
def unscale(gradients: Iterable[Any], inverse: Any) -> dict[Any, Any]:
    """Multiply gradients in place; whether one was infinite or NaN, by device.

    Dense gradients of one type are one kernel, which reads and writes each element once.
    """
    found: dict[Any, Any] = {}
    dense: dict[Any, list[Any]] = {}
    for grad in gradients:
        values = grad._values() if grad.is_sparse else grad
        dense.setdefault((values.device, values._data.dtype), []).append(values)
    for (device, _), grads in dense.items():
        bad = unscaled.unscale(grads, inverse)
        known = found.setdefault(device, ops.zeros((), dtype=float32, device=device))
        if bad:
            known.fill_(1.0)
    return found
