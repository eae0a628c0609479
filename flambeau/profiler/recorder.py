"""What is noted while a recording is on: operators, nodes of backward, labels, kernels, memory."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any

from flambeau._core.modes import Observer, observing
from flambeau._tensor.tensor import Tensor
from flambeau.profiler import composites, launches
from flambeau.profiler.active import active
from flambeau.profiler.arguments import given
from flambeau.profiler.frames import user_stack
from flambeau.profiler.memory import Allocations
from flambeau.profiler.modules import ModuleRanges

EVALUATE = "autograd::engine::evaluate_function: "
ACCUMULATE = "torch::autograd::"
LIMIT = 1_000_000
"""How many records a recording keeps."""


@dataclass(frozen=True)
class Options:
    """What to note beside times."""

    shapes: bool = False
    memory: bool = False
    stack: bool = False
    modules: bool = False
    kernels: bool = True
    limit: int = LIMIT


class Record:
    """Something that ran. Times in nanoseconds of `perf_counter_ns`; `end` is 0 while it runs."""

    __slots__ = (
        "end", "forward", "given", "inplace", "kind", "memory", "name", "parent", "repeats",
        "sequence", "stack", "start",
    )  # fmt: skip
    given: Any  # the arguments, an Argument for each tensor; None if they were not asked for
    stack: Any  # lines of the program, the innermost first

    def __init__(self, name: str, kind: str, parent: Record | None) -> None:
        self.name = name
        self.kind = kind  # "cpu_op", "node", "user_annotation", "module" or "kernel"
        self.parent = parent
        self.start = self.end = 0
        self.memory = 0  # bytes that it took and gave back itself, without the records below
        self.sequence = -1  # of the node that it made, or that it is
        self.inplace = False
        self.repeats = 0  # how often it was begun again, within itself
        self.given = self.stack = self.forward = None


class Recorder(Observer):
    """Notes what runs in the thread that starts it."""

    def __init__(self, options: Options | None = None) -> None:
        self.options = options or Options()
        self.records: list[Record] = []
        self.current: Record | None = None
        self.dropped = 0  # records beyond the limit
        self.thread = threading.get_ident()
        self.began = self.ended = 0
        self.allocations = Allocations(self)
        self._parts: list[Any] = []
        self._outer: Recorder | None = None

    def start(self) -> None:
        """From now on, note."""
        self.thread = threading.get_ident()
        parts: list[Any] = [ModuleRanges(self)] if self.options.modules else []
        parts += [composites.reporting, observing(self)]
        if self.options.kernels:
            parts.append(launches.watching)
        self._outer = active.recorder
        try:
            for part in parts:
                part.__enter__()
                self._parts.append(part)
            active.recorder = self
            self.began = perf_counter_ns()
        except BaseException:  # a signal's handler: nobody would stop what did not begin
            self.stop()
            raise

    def stop(self) -> None:
        """Note no more; what still runs ends now."""
        self.ended = perf_counter_ns()
        active.recorder = self._outer
        while self._parts:
            self._parts.pop().__exit__(None, None, None)
        while self.current is not None:
            self.close(self.current)
        self.allocations.stop()

    # ---- one record

    def open(self, name: str, kind: str) -> Record:
        """Something begins."""
        record = Record(name, kind, self.current)
        if len(self.records) < self.options.limit:
            self.records.append(record)
        else:
            self.dropped += 1
        if self.options.stack and kind != "kernel":
            record.stack = user_stack()
        self.current = record
        record.start = perf_counter_ns()
        return record

    def close(self, record: Record) -> None:
        """It is over, and with it whatever began within it and never ended."""
        end = perf_counter_ns()
        inner = self.current
        while inner is not None and inner is not record:
            inner.end = inner.end or end
            inner = inner.parent
        record.end = end
        self.current = record.parent

    # ---- what observers are told

    def before(self, name: str, values: tuple[Any, ...], functional: bool | None) -> Record | None:
        """An operator begins. Autocast calls it a second time, with other types: that is one."""
        current = self.current
        if current is not None and current.name == name and current.kind == "cpu_op":
            current.repeats += 1
            return None
        record = self.open(name, "cpu_op")
        record.inplace = not functional
        if self.options.shapes:
            record.given = given(values)
            record.start = perf_counter_ns()
        return record

    def after(self, name: str, values: tuple[Any, ...], result: Any, seen: Record | None) -> None:
        """An operator is done."""
        if seen is None:
            if self.current is not None:
                self.current.repeats -= 1
            return
        self.close(seen)
        if isinstance(result, Tensor):
            seen.inplace = seen.inplace and bool(values) and result is values[0]
            node = result._node
            if node is not None:
                seen.sequence = node.sequence_number
                if seen.stack is not None and "profiler" not in node.metadata:
                    node.metadata["profiler"] = seen
        if self.options.memory and not seen.inplace:
            self.allocations.note(values, result, seen)

    def failed(self) -> None:
        """What began last has raised."""
        current = self.current
        if current is None:
            return
        if current.repeats:
            current.repeats -= 1
            return
        self.close(current)
        if current.kind == "node" and current.parent is not None:
            self.close(current.parent)

    def before_node(self, node: Any, grad: Any) -> None:
        """A node of backward begins: the engine's part, and the node in it, as in PyTorch."""
        outer = self.open(EVALUATE + node.name(), "cpu_op")
        inner = self.open(node.name(), "node")
        outer.sequence = inner.sequence = node.sequence_number
        outer.forward = inner.forward = node.metadata.get("profiler")
        if self.options.shapes:
            inner.given = given(tuple(grad) if isinstance(grad, list) else (grad,))

    def node(self, node: Any, grad: Any, grads: tuple[Any, ...]) -> None:
        """A node of backward is done."""
        inner = self.current
        if inner is None or inner.kind != "node" or inner.parent is None:
            return  # it began before the recording did
        self.close(inner)
        self.close(inner.parent)
        if self.options.memory:
            self.allocations.note((grad,), grads, inner)

    def begin(self, name: str) -> Record:
        """A label, or the gradient of a leaf."""
        if not name.startswith(ACCUMULATE):
            return self.open(name, "user_annotation")
        outer = self.open(EVALUATE + name, "cpu_op")
        self.open(name, "node")
        return outer

    def end(self, begun: Record) -> None:
        """The end of a label."""
        self.close(begun)
