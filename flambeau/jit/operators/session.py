"""What the surroundings of a program know: grad mode, autocast, warnings, seeds, time, futures."""

from __future__ import annotations

import time
import warnings
from typing import Any

from flambeau._core.generator import Generator
from flambeau.autograd import backward, grad_mode
from flambeau.autograd import grad as gradients
from flambeau.jit.ir.values import dtype_number
from flambeau.jit.operators.registry import functions, implements, pieces

pieces({"wait": "{0}.wait()", "is_scripting": "True", "has_torch_function": "False"})


@implements("warn")
def warn(message: str, stacklevel: int) -> None:
    """A UserWarning."""
    warnings.warn(message, stacklevel=2)


@implements("is_grad_enabled")
def is_grad_enabled() -> bool:
    """Whether operators are recorded."""
    from flambeau.autograd.grad_mode import is_grad_enabled as enabled

    return bool(enabled())


@implements("set_grad_enabled")
def set_grad_enabled(value: bool) -> None:
    """Record operators, or do not."""
    grad_mode.set_grad_enabled(value)


@implements("grad")
def grad(outputs: list[Any], inputs: list[Any], grad_outputs: Any, retain_graph: Any,
         create_graph: bool, allow_unused: bool) -> list[Any]:  # fmt: skip
    """`torch.autograd.grad`, whose result is a list here."""
    return list(gradients(outputs, inputs, grad_outputs, retain_graph, create_graph,
                          allow_unused=allow_unused))  # fmt: skip


@implements("backward.TensorList")
def backward_of_list(tensors: list[Any], grad_tensors: Any, retain_graph: Any,
                     create_graph: bool) -> None:  # fmt: skip
    """`torch.autograd.backward`."""
    backward(tensors, grad_tensors, retain_graph, create_graph)


@implements("is_autocast_enabled")
def is_autocast_enabled() -> bool:
    """Whether a region for GPUs is active."""
    from flambeau.amp.settings import is_autocast_enabled as enabled

    return bool(enabled("cuda"))


@implements("is_autocast_cpu_enabled")
def is_autocast_cpu_enabled() -> bool:
    """Whether a region for the CPU is active."""
    from flambeau.amp.settings import is_autocast_enabled as enabled

    return bool(enabled("cpu"))


@implements("get_autocast_dtype")
def get_autocast_dtype(device_type: str) -> int:
    """The element type of regions of a device type, by its number."""
    from flambeau.amp.settings import get_autocast_dtype as chosen

    return dtype_number(chosen(device_type))


@implements("manual_seed")
def manual_seed(seed: int) -> None:
    """Seed the generator of the process."""
    from flambeau.random import manual_seed as seed_all

    seed_all(seed)


@implements("manual_seed.generator")
def seed_generator(generator: Generator, seed: int) -> Generator:
    """Seed a generator."""
    generator.manual_seed(seed)
    return generator


functions({
    "prim::TimePoint": time.monotonic_ns,
    "initial_seed": lambda generator: int(generator.initial_seed()),
})  # fmt: skip


@implements("seed")
def seed(generator: Generator) -> int:
    """Seed a generator by chance."""
    return int(generator.seed())


@implements("Generator")
def make_generator(place: Any, seed: int | None) -> Generator:
    """A generator, seeded if a seed is given."""
    made = Generator() if place is None else Generator(device=place)
    if seed is not None:
        made.manual_seed(seed)
    return made
