"""What is switched on right now: gradient recording, and modes that watch every operator."""

from __future__ import annotations

import threading
from typing import Any


class GradState(threading.local):
    """Per thread: whether operators are recorded for backward; None in inference mode.

    It is one field because operators read it once; reading it costs as much as a short function.
    """

    enabled: bool | None = True
    inside = False
    """What recording was switched to inside inference mode, where nothing is recorded all the same:
    `is_grad_enabled` tells it."""
    above: bool = True
    """Below autograd, where nothing is recorded: what it was above."""

    @property
    def inference(self) -> bool:
        """Whether inference mode is on."""
        return self.enabled is None


class Watch:
    """Whether anything stands between a caller and an operator.

    `active` counts the reasons in the whole process (autocast regions, traces, function modes,
    observers). It is one test in every operator; what is active in which thread is found out behind
    it. `nodes` does the same for the nodes of backward, and `results` for what operators give:
    tensors that gained history from a write, and regions of inference mode.
    """

    __slots__ = (
        "active", "anomaly", "filled", "inference_tensors", "nodes", "overriding", "devices",
        "partial", "renewed", "results", "saving",
    )  # fmt: skip

    def __init__(self) -> None:
        self.active = 0
        self.devices = 0  # how much of `active` is there because of tensors on devices
        self.nodes = 0  # anomaly mode, observers, emulated devices, refitted results
        self.partial = 0  # backward passes that were asked for some gradients only
        self.renewed = False  # whether a leaf was ever given other memory while it was known
        self.results = 0
        self.saving = 0  # saved-tensor hooks, anomaly mode, or inference tensors exist
        self.anomaly = False
        self.filled = False  # whether leaves have, or had, hooks: they are filled early
        self.inference_tensors = False
        self.overriding = False  # whether classes with `__torch_function__` exist

    def interferes(self) -> bool:
        """Whether anything may change, or wants to see, what operators on plain tensors compute or
        save."""
        return bool(self.active) or self.saving > self.inference_tensors


class Observer:
    """What looks on while operators and nodes run, and changes nothing. It is one per thread:
    `with observing(observer)`. Names are public ones, `log` or `linalg.norm`."""

    def before(self, name: str, values: tuple[Any, ...], functional: bool | None) -> Any:
        """An operator is called; what this returns `after` gets as `seen`."""

    def after(self, name: str, values: tuple[Any, ...], result: Any, seen: Any) -> None:
        """An operator is done."""

    def before_node(self, node: Any, grad: Any) -> None:
        """A node of backward is about to run."""

    def node(self, node: Any, grad: Any, grads: tuple[Any, ...]) -> None:
        """A node of backward is done: what came in, what goes on to its inputs."""

    def begin(self, name: str) -> Any:
        """A named stretch of the program begins; what this returns `end` gets as `begun`."""

    def end(self, begun: Any) -> None:
        """A named stretch of the program is over."""

    def failed(self) -> None:
        """The operator or node that was begun last has raised."""


class Stacks(threading.local):
    """Per thread: the handlers that are active, innermost last."""

    def __init__(self) -> None:
        self.function_modes: list[Any] = []
        self.dispatch_modes: list[Any] = []
        self.saved_hooks: list[Any] = []
        self.observers: list[Observer] = []
        self.levels: list[Any] = []  # of transforms: see `autograd.tangents`, `autograd.batches`
        self.refusals = 0  # of these, how many refuse random numbers


grad = GradState()
watch = Watch()
stacks = Stacks()


def expect_inference_tensors() -> None:
    """From now on what is saved for backward is checked: it may be an inference tensor."""
    if not watch.inference_tensors:
        watch.inference_tensors = True
        watch.saving += 1


class Switch:
    """A reason for `watch.active`, to be used as a context manager by modes."""

    def __enter__(self) -> None:
        watch.active += 1

    def __exit__(self, *exc: object) -> None:
        watch.active -= 1


class observing:
    """Let an observer look on in this thread."""

    def __init__(self, observer: Observer) -> None:
        self.observer = observer

    def __enter__(self) -> Observer:
        stacks.observers += [self.observer]  # no call: no signal comes between
        watch.active += 1
        watch.nodes += 1
        return self.observer

    def __exit__(self, *exc: object) -> None:
        watch.active -= 1
        watch.nodes -= 1
        stacks.observers.remove(self.observer)


class labelled:
    """A named stretch of the program, for the observers of this thread. Code that runs often asks
    `watch.active` first."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> None:
        self.begun = [(observer, observer.begin(self.name)) for observer in stacks.observers]

    def __exit__(self, *exc: object) -> None:
        for observer, begun in reversed(self.begun):
            observer.end(begun)
