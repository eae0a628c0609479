"""From what a recorder noted to the events that users see."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from flambeau.profiler import arguments, flops, names
from flambeau.profiler.event_list import EventList
from flambeau.profiler.function_event import FunctionEvent
from flambeau.profiler.kinds import RecordScope, next_id
from flambeau.profiler.recorder import Record, Recorder

SCOPES = {
    "cpu_op": RecordScope.FUNCTION.value,
    "node": RecordScope.BACKWARD_FUNCTION.value,
    "user_annotation": RecordScope.USER_SCOPE.value,
    "module": RecordScope.FUNCTION.value,
}
STEP = "ProfilerStep#"


def event_list(recorder: Recorder, config: Any) -> EventList:
    """The events, in the order in which they began. config: the options of `profile`."""
    with no_collection():
        builder = Builder(recorder, config)
        events = EventList(builder.events(), use_device=None, profile_memory=config.profile_memory,
                           with_flops=config.with_flops)  # fmt: skip
        events._drop_repeated()
        events._set_backward_stacks()
        events._tree_built = True
    return events


@contextmanager
def no_collection() -> Iterator[None]:
    """No garbage is collected meanwhile: of very many new objects, all in use, Python's collector
    looks at each again and again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def keys_of(record: Record) -> tuple[str, ...]:
    """The names of a record's events, the outermost first."""
    if record.kind != "cpu_op" or record.name.startswith("autograd::"):
        return (record.name,)
    keys = names.chain(record.name)
    return (keys[0] + "_",) if record.inplace and not keys[0].endswith("_") else keys


def shapes_of(record: Record, key: str) -> list[Any]:
    """The shapes of one of a record's events; [] if they were not asked for."""
    if not record.given:
        return []
    shapes = [arguments.shape(value) for value in record.given]
    return names.shapes_for(record.name, key, shapes, record.given)


def flops_of(record: Record, key: str, shapes: list[Any]) -> int:
    """The floating-point operations of one of a record's events."""
    if record.kind != "cpu_op" or not record.given or key not in flops.FORMULAS:
        return 0
    return flops.FORMULAS[key](shapes, record.given)


class Builder:
    """Makes events of records, and knits them together."""

    def __init__(self, recorder: Recorder, config: Any) -> None:
        self.recorder, self.config = recorder, config
        self.innermost: dict[Record, FunctionEvent] = {}
        self.made: list[FunctionEvent] = []

    def events(self) -> list[FunctionEvent]:
        """All of them, with parents and children, memory and floating-point operations."""
        for record in self.recorder.records:
            if record.kind == "kernel":
                self._add_kernel(record)
            else:
                self._add(record)
        for event in reversed(self.made):  # the inner ones first
            if event.cpu_parent is not None:
                event.cpu_parent.cpu_memory_usage += event.cpu_memory_usage
        if self.config.profile_memory:
            self.made += self._freed_outside()
            self.made.sort(key=lambda event: (event.time_range.start, -event.time_range.end))
        return self.made

    def _around(self, record: Record) -> FunctionEvent | None:
        parent = record.parent
        while parent is not None and parent not in self.innermost:
            parent = parent.parent
        return None if parent is None else self.innermost[parent]

    def _add(self, record: Record) -> None:
        parent = self._around(record)
        for key in keys_of(record):
            event = self._event(record, key)
            if parent is not None:
                parent.append_cpu_child(event)
                event.set_cpu_parent(parent)
            self.made.append(event)
            parent = event
        assert parent is not None
        parent.cpu_memory_usage = record.memory
        self.innermost[record] = parent

    def _event(self, record: Record, key: str) -> FunctionEvent:
        began = self.recorder.began
        given = record.given or ()
        shapes = shapes_of(record, key)
        label = record.kind == "user_annotation"
        return FunctionEvent(
            next_id(),
            STEP.replace("#", "*") if label and key.startswith(STEP) else key,
            1,
            (record.start - began) / 1e3,
            (record.end - began) / 1e3,
            overload_name="",
            trace_name=key,
            fwd_thread=1 if record.kind == "node" else 0,
            input_shapes=[[] if is_list_of_lists(shape) else shape for shape in shapes],
            structured_input_shapes=shapes,
            structured_input_strides=[arguments.strides(value) for value in given],
            input_dtypes=[arguments.type_name(value) for value in given],
            concrete_inputs=[arguments.number(value) for value in given],
            kwinputs={},
            stack=list(record.stack or ()),
            scope=SCOPES[record.kind],
            sequence_nr=record.sequence,
            flops=flops_of(record, key, shapes) if self.config.with_flops else 0,
            is_user_annotation=label,
            activity_type="user_annotation" if label else "cpu_op",
        )

    def _add_kernel(self, record: Record) -> None:
        event = self._around(record)
        if event is not None:
            event.append_kernel(record.name, 0, (record.end - record.start) / 1e3)

    def _freed_outside(self) -> Iterator[FunctionEvent]:
        """Memory that was given back between operators."""
        for change in self.recorder.allocations.changes:
            if change.record is None:
                time = (change.time - self.recorder.began) / 1e3
                yield FunctionEvent(next_id(), "[memory]", 1, time, time, overload_name="",
                                    input_shapes=[], stack=[], cpu_memory_usage=change.bytes,
                                    fwd_thread=1, flops=0)  # fmt: skip


def is_list_of_lists(shape: Any) -> bool:
    """Whether a shape is that of a list of tensors."""
    return bool(shape) and isinstance(shape[0], list)
