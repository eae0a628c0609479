"""Checkpointing without reentrance: what a function saves is computed again when it is needed.

The first run keeps a `Place` for every tensor that is saved for backward, and the arguments. The
first place that a backward pass asks for runs the function again, under hooks that collect what is
saved now; each backward pass has a collection of its own, from which every place is taken once.
With `early_stop` the second run ends with the last tensor that the first one saved.

A function may itself checkpoint parts of it, or run backward passes: what an inner checkpoint keeps
of its arguments is saved under the hooks of the outer one.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any

from flambeau._core import modes
from flambeau._tensor.tensor import Tensor
from flambeau.autograd import engine
from flambeau.autograd.grad_mode import enable_grad
from flambeau.autograd.graph import Packed, modified_error
from flambeau.autograd.saved import saved_tensors_hooks
from flambeau.autograd.versions import version_of
from flambeau.utils.recomputation_log import RecomputationLog


class CheckpointError(RuntimeError):
    """The second run of a checkpointed function did not match the first."""


class _StopRecomputationError(Exception):
    """Ends a second run that has saved all that is needed."""


TIP = (
    "\n\nTip: `debug=True`, or `with torch.utils.checkpoint.set_checkpoint_debug_enabled(True):`\n"
    "around the call, lists the operators of both runs.\n"
)
MORE = (
    "torch.utils.checkpoint: trying to save more tensors during recomputation than during the "
    "original forward pass."
)
TAKEN = (
    "torch.utils.checkpoint: Unpack is being triggered for a tensor that was already unpacked "
    "once. {}If you are calling ctx.saved_tensors in backward, make sure to do so only once. "
    "Otherwise please open an issue with details on your use case."
)
OVERLAPPING = (
    "Performing two backward calls that overlap (i.e. require the same saved activation in order "
    "to compute gradients) is not allowed while under the torch.utils.checkpoint.GraphExecGroup "
    "context. "
)


def _meta(tensor: Tensor) -> dict[str, Any] | None:
    return {"shape": tensor.shape, "dtype": tensor.dtype, "device": tensor.device}


def _nothing(tensor: Tensor) -> dict[str, Any] | None:
    return None


CHECKS = {"default": _meta, "none": _nothing}
"""What `determinism_check` compares of each saved tensor."""


class GraphExecGroup:
    """Backward passes within share what is computed again: each checkpoint runs once for all.

    Every saved tensor can then be taken once by all of them together.
    """

    def __enter__(self) -> GraphExecGroup:
        if entered.group is not None:
            raise RuntimeError(
                f"GraphExecGroup contexts cannot be nested. Already inside group {entered.group}"
            )
        entered.group = self
        self.notes: dict[Any, Collected] = {}
        return self

    def __exit__(self, *exc: object) -> None:
        entered.group = None
        self.notes = {}


class Entered(threading.local):
    """Per thread: the group of backward passes that is active."""

    group: GraphExecGroup | None = None


entered = Entered()


class Place:
    """Stands in a node for a tensor that is computed again. `of`: the checkpoint it belongs to."""

    __slots__ = ("__weakref__", "index", "of")

    def __init__(self, of: Recomputation, index: int) -> None:
        self.of, self.index = of, index


class KeptArgument:
    """An argument until the second run: the tensor, or what hooks around make of it."""

    def __init__(self, value: Any) -> None:
        self.value, self.version = value, 0
        if not isinstance(value, Tensor):
            return
        self.version = version_of(value)
        if modes.stacks.saved_hooks:
            self.value = Packed(value, *modes.stacks.saved_hooks[-1])

    def again(self) -> Any:
        """The argument, if nobody has written to it since."""
        value = self.value
        if isinstance(value, Packed):
            return value.unpacked(None)
        if isinstance(value, Tensor) and version_of(value) != self.version:
            raise modified_error(value, self.version)
        return value


class Collected:
    """What one second run has saved."""

    def __init__(self) -> None:
        self.count = 0
        self.tensors: dict[int, Tensor] = {}
        self.complete = False


class Recomputation:
    """One checkpoint: what its first run has saved, and how to run it again."""

    def __init__(self, function: Any, args: Any, kwargs: Any, context_fn: Any, conditions: Any,
                 check: str, early_stop: bool, log: RecomputationLog | None = None,
                 ) -> None:  # fmt: skip
        if check not in CHECKS:
            raise ValueError(f"determinism_check should be one of {list(CHECKS)}, but got {check}")
        self.function, self.kwargs = function, kwargs
        self.args = [KeptArgument(arg) for arg in args]
        first, second = context_fn()
        self.contexts, self.log = (first, second), log
        self.conditions = conditions
        self.facts, self.early_stop = CHECKS[check], early_stop
        self.places: list[tuple[Any, Any]] = []  # of each saved tensor: its place, and what it was
        self.running = False
        self.forgiving = False

    def first_run(self, args: Any) -> Any:
        """Run the function, which keeps numbers in place of what it saves."""
        self.running = True
        with saved_tensors_hooks(self._keep_place, _computed_again), self.contexts[0]:
            result = self.function(*args, **self.kwargs)
        self.running = False
        return result

    def _keep_place(self, tensor: Tensor) -> Place:
        place = Place(self, len(self.places))
        self.places.append((weakref.ref(place), self.facts(tensor)))
        return place

    def take(self, place: Place) -> Tensor:
        """What was saved at a place, out of the collection of the backward pass that runs now."""
        passes = entered.group or engine.running.task
        if passes is None:  # somebody looks at a node: nothing is kept for a second look
            return self._collect(Collected()).tensors[place.index]
        collected = passes.notes.get(self)
        if collected is None:
            collected = passes.notes[self] = Collected()
        if not collected.complete:
            self._collect(collected)
        if place.index not in collected.tensors:
            raise CheckpointError(TAKEN.format(OVERLAPPING if entered.group else ""))
        return collected.tensors.pop(place.index)

    def _collect(self, collected: Collected) -> Collected:
        """Run the function again."""

        def keep(tensor: Tensor) -> Any:
            self._put(collected, tensor)
            return tensor.detach()  # type: ignore[attr-defined]

        args = [arg.again() for arg in self.args]
        hooks = saved_tensors_hooks(keep, _as_it_is)
        try:
            with self.conditions, enable_grad(), self.contexts[1], hooks:
                self.function(*args, **self.kwargs)
        except _StopRecomputationError:
            pass
        collected.complete = True
        self._compare(collected)
        return collected

    def _put(self, collected: Collected, tensor: Tensor) -> None:
        index = collected.count
        collected.count += 1
        if index >= len(self.places):
            self._saved_more()
            return
        place, _ = self.places[index]
        if place() is not None:
            kept = tensor.detach() if tensor.requires_grad else tensor  # type: ignore[attr-defined]
            collected.tensors[index] = kept
        if self.early_stop and collected.count == len(self.places):
            raise _StopRecomputationError

    def _saved_more(self) -> None:
        """More is saved than in the first run, which is right while that still runs: the function
        runs backward itself."""
        if not self.running:
            raise CheckpointError(MORE + TIP)
        self.forgiving = True

    def _compare(self, collected: Collected) -> None:
        if self.forgiving:
            return
        if collected.count != len(self.places):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the "
                f"original forward and recomputation.\nNumber of tensors saved during forward: "
                f"{len(self.places)}\nNumber of tensors saved during recomputation: "
                f"{collected.count}.{TIP}"
            )
        pairs = [(i, self.places[i][1], self.facts(t)) for i, t in collected.tensors.items()]
        differing = [
            f"tensor at position {index}:\nsaved metadata: {was}\nrecomputed metadata: {now}"
            for index, was, now in pairs
            if was != now
        ]
        if differing:
            listed = "\n".join(differing)
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have "
                f"different metadata than during the forward pass.\n{listed}\n.{TIP}"
            )


def _computed_again(place: Place) -> Tensor:
    log = place.of.log
    if log is None:
        return place.of.take(place)
    try:
        return place.of.take(place)
    except CheckpointError as error:
        raise CheckpointError(log.text()) from error


def _as_it_is(tensor: Tensor) -> Tensor:
    return tensor
