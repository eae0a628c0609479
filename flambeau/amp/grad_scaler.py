"""Gradient scaling: losses are multiplied so that small gradients do not vanish in float16."""

from __future__ import annotations

import inspect
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Any

import numpy as np

from flambeau._core.dtype import float16, float32, int32
from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.amp import unscaled
from flambeau.amp.autocast_mode import amp_definitely_not_available
from flambeau.autograd.grad_mode import no_grad

UNUSED = (
    "This may indicate your script did not use scaler.scale(loss or outputs) earlier in the "
    "iteration."
)


PASSES_ITSELF = (
    "GradScaler is going to stop passing itself as a keyword argument to the passed optimizer. In "
    "the near future GradScaler registers `grad_scale: Tensor` and `found_inf: Tensor` to the "
    "passed optimizer and let the optimizer use them directly."
)


class OptState(Enum):
    """What was done to an optimizer's gradients since the last `update`."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _refresh_per_optimizer_state() -> dict[str, Any]:
    return {"stage": OptState.READY, "found_inf_per_device": {}}


def _no_states() -> defaultdict[int, Any]:
    return defaultdict(_refresh_per_optimizer_state)


class _MultiDeviceReplicator:
    """Copies of one tensor, made for each device that asks."""

    def __init__(self, master_tensor: Any) -> None:
        self.master = master_tensor
        self._per_device_tensors: dict[Any, Any] = {}

    def get(self, device: Any) -> Any:
        """The copy on a device."""
        found = self._per_device_tensors.get(device)
        if found is None:
            found = self._per_device_tensors[device] = self.master.to(device, copy=True)
        return found


def _check_factors(growth: float, backoff: float) -> None:
    if not growth > 1.0:
        raise AssertionError("The growth factor must be > 1.0.")
    if not backoff < 1.0:
        raise AssertionError("The backoff factor must be < 1.0.")


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
        _check_factors(growth_factor, backoff_factor)
        self._init_scale, self._growth_interval = init_scale, growth_interval
        self._growth_factor, self._backoff_factor = growth_factor, backoff_factor
        self._init_growth_tracker = 0
        self._scale: Any = None  # tensors, made when something is first scaled
        self._growth_tracker: Any = None
        self._per_optimizer_states: defaultdict[int, Any] = defaultdict(
            _refresh_per_optimizer_state
        )

    # ---- an iteration: scale, step, update

    def scale(self, outputs: Any) -> Any:
        """A tensor times the scale; tensors in a container likewise."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            if self._scale is None:
                self._lazy_init_scale_growth_tracker(outputs.device)
            return outputs * self._scale.to(outputs.device)
        if isinstance(outputs, Iterable):
            scaled = map(self.scale, outputs)
            return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else scaled  # type: ignore[call-arg]
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def unscale_(self, optimizer: Any) -> None:
        """Divide an optimizer's gradients by the scale, before they are clipped or looked at."""
        if not self._enabled:
            return
        scale, _ = self._check_scale_growth_tracker("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the "
                               "last update().")  # fmt: skip
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        with np.errstate(divide="ignore", over="ignore"):
            inverse = scale.double().reciprocal().float()
        found = ops.zeros((), dtype=float32, device=scale.device)
        state["found_inf_per_device"] = self._unscale_grads_(optimizer, inverse, found, False)
        state["stage"] = OptState.UNSCALED

    @no_grad()
    def _unscale_grads_(self, optimizer: Any, inv_scale: Any, found_inf: Any,
                        allow_fp16: bool) -> dict[Any, Any]:  # fmt: skip
        """Multiply an optimizer's gradients by a tensor; whether one is infinite, by device.

        Subclasses and trainers replace it, to allow gradients in float16.
        """
        inverses, found = _MultiDeviceReplicator(inv_scale), _MultiDeviceReplicator(found_inf)
        for grads in by_device(gradients_of(optimizer, allow_fp16)):
            device = grads[0].device
            unscaled._amp_foreach_non_finite_check_and_unscale_(
                grads, found.get(device), inverses.get(device)
            )
        return found._per_device_tensors

    def _check_inf_per_device(self, optimizer: Any) -> dict[Any, Any]:
        """Whether a gradient is infinite, by device; the gradients stay as they are."""
        scale, _ = self._check_scale_growth_tracker("_check_inf_per_device")
        one = ops.ones((), dtype=float32, device=scale.device)
        found = ops.zeros((), dtype=float32, device=scale.device)
        state = self._per_optimizer_states[id(optimizer)]
        state["found_inf_per_device"] = self._unscale_grads_(optimizer, one, found, True)
        return state["found_inf_per_device"]  # type: ignore[no-any-return]

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """`optimizer.step(...)` on unscaled gradients, unless one is infinite or NaN.

        A fused optimizer is told the scale and whether to step: `grad_scale` and `found_inf`.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check_scale_growth_tracker("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            result = self._step_scaled(optimizer, state, args, kwargs)
            state["stage"] = OptState.STEPPED
            return result
        if state["stage"] is OptState.READY:
            self.unscale_(optimizer)
        if not state["found_inf_per_device"]:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        result = self._maybe_opt_step(optimizer, state, *args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def _maybe_opt_step(self, optimizer: Any, optimizer_state: dict[str, Any], *args: Any,
                        **kwargs: Any) -> Any:  # fmt: skip
        """The step, unless a gradient is infinite. Subclasses that share gradients replace it."""
        if any(found.item() for found in optimizer_state["found_inf_per_device"].values()):
            return None
        return optimizer.step(*args, **kwargs)

    def _step_scaled(self, optimizer: Any, state: dict[str, Any], args: tuple[Any, ...],
                     kwargs: dict[str, Any]) -> Any:  # fmt: skip
        """A step of an optimizer that divides its gradients and leaves steps out by itself."""
        if "grad_scaler" in inspect.signature(optimizer.step).parameters:
            warnings.warn(PASSES_ITSELF, FutureWarning, stacklevel=3)
            return optimizer.step(*args, **kwargs, grad_scaler=self)
        given = getattr(optimizer, "grad_scale", None)
        if state["stage"] is OptState.READY:
            self._check_inf_per_device(optimizer)
            scale = self._get_scale_async()
            optimizer.grad_scale = scale if given is None else scale * given
        else:
            optimizer.grad_scale = given
        device = self._scale.device
        optimizer.found_inf = sum(f.to(device) for f in state["found_inf_per_device"].values())
        result = optimizer.step(*args, **kwargs)
        del optimizer.grad_scale, optimizer.found_inf
        return result

    def update(self, new_scale: Any = None) -> None:
        """Grow or shrink the scale after the steps of an iteration, or set it."""
        if not self._enabled:
            return
        scale, tracker = self._check_scale_growth_tracker("update")
        if new_scale is None:
            unscaled._amp_update_scale_(scale, tracker, self._found(), self._growth_factor,
                                        self._backoff_factor, self._growth_interval)  # fmt: skip
        elif isinstance(new_scale, float):
            scale.fill_(new_scale)
        else:
            self._take(new_scale)
        self._per_optimizer_states = _no_states()

    def _found(self) -> Any:
        """How many optimizers and devices have met infinite gradients."""
        found = [
            found.to(self._scale.device)
            for state in self._per_optimizer_states.values()
            for found in state["found_inf_per_device"].values()
        ]
        if not found:
            raise AssertionError("No inf checks were recorded prior to update.")
        return sum(found[1:], found[0])

    def _take(self, new_scale: Any) -> None:
        fits = new_scale.device.type == self._device and new_scale.numel() == 1
        if not fits or new_scale.requires_grad:
            raise AssertionError(
                "new_scale should be a float or a 1-element torch.cuda.FloatTensor or "
                "torch.FloatTensor with requires_grad=False."
            )
        self._scale.copy_(new_scale)

    # ---- the scale

    def _lazy_init_scale_growth_tracker(self, dev: Any) -> None:
        if self._growth_tracker is not None:
            raise AssertionError("_growth_tracker initialized before _scale")
        self._scale = ops.full((), self._init_scale, dtype=float32, device=dev)
        self._growth_tracker = ops.full((), self._init_growth_tracker, dtype=int32, device=dev)

    def _check_scale_growth_tracker(self, funcname: str) -> tuple[Any, Any]:
        """The scale and the tracker; raises AssertionError where nothing was scaled yet."""
        for name in ("_scale", "_growth_tracker"):
            if getattr(self, name) is None:
                raise AssertionError(f"Attempted {funcname} but {name} is None.  {UNUSED}")
        return self._scale, self._growth_tracker

    def _get_scale_async(self) -> Any:
        """The scale as a tensor, None before anything was scaled."""
        return self._scale

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
            self._scale.fill_(self._init_scale)
        if self._growth_tracker is not None:
            self._growth_tracker.fill_(self._init_growth_tracker)

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

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def _found_inf_per_device(self, optimizer: Any) -> dict[Any, Any]:
        return self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]  # type: ignore[no-any-return]


def gradients_of(optimizer: Any, allow_fp16: bool) -> Iterator[Any]:
    """The gradients of an optimizer's parameters, of sparse ones the values."""
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            grad = parameter.grad
            if grad is None:
                continue
            if grad.dtype is float16 and not allow_fp16:
                raise ValueError("Attempting to unscale FP16 gradients.")
            if grad.is_sparse and grad.dtype is float16:  # sums may overflow where parts do not
                grad = parameter.grad = grad.coalesce()
            yield grad._values() if grad.is_sparse else grad


def by_device(gradients: Iterable[Any]) -> list[list[Any]]:
    """Gradients of one device together."""
    groups: dict[Any, list[Any]] = {}
    for grad in gradients:
        groups.setdefault(grad.device, []).append(grad)
    return list(groups.values())
