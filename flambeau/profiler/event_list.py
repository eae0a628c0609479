"""The events of a recording as a list, with tables, sums and files made of them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from flambeau.profiler import table
from flambeau.profiler.function_event import FunctionEvent, FunctionEventAvg
from flambeau.profiler.kinds import DeviceType

METRICS = ["self_cpu_time_total", "self_cuda_time_total", "self_xpu_time_total",
           "self_privateuse1_time_total"]  # fmt: skip
BACKWARD = 1


class EventList(list[Any]):
    """A list of FunctionEvents, in the order in which they began, or of FunctionEventAvgs."""

    def __init__(self, events: Iterable[Any] = (), *, use_device: str | None = None,
                 profile_memory: bool = False, with_flops: bool = False) -> None:  # fmt: skip
        super().__init__(events)
        self._use_device = use_device
        self._profile_memory = profile_memory
        self._with_flops = with_flops
        self._tree_built = False

    def __str__(self) -> str:
        return self.table()

    def _like(self, events: Iterable[Any]) -> EventList:
        return EventList(events, use_device=self._use_device, with_flops=self._with_flops,
                         profile_memory=self._profile_memory)  # fmt: skip

    # ---- the tree

    def _build_tree(self) -> None:
        """Find each event's parent and children, from the times."""
        self._nest()
        self._drop_repeated()
        self._set_backward_stacks()
        self._tree_built = True

    def _nest(self) -> None:
        """An event lies in the innermost one, of its thread, that began before and ends after."""
        threads: dict[Any, list[FunctionEvent]] = {}
        for event in self:
            if not event.is_async and event.device_type == DeviceType.CPU:
                threads.setdefault((event.thread, event.node_id), []).append(event)
        for events in threads.values():
            around: list[FunctionEvent] = []
            events.sort(key=lambda event: (event.time_range.start, -event.time_range.end))
            for event in events:
                time = event.time_range
                while around and (time.start >= around[-1].time_range.end
                                  or time.end > around[-1].time_range.end):  # fmt: skip
                    around.pop()
                if around:
                    around[-1].append_cpu_child(event)
                    event.set_cpu_parent(around[-1])
                around.append(event)

    def _drop_repeated(self) -> None:
        """Take out each event that is all that an event of the same name consists of."""
        kept = []
        for event in self:
            parent = event.cpu_parent
            if parent is None or parent.name != event.name or len(parent.cpu_children) != 1:
                kept.append(event)
                continue
            parent.cpu_children = event.cpu_children
            parent.kernels = event.kernels
            for child in event.cpu_children:
                child.cpu_parent = parent
        self[:] = kept

    def _set_backward_stacks(self) -> None:
        """Give what ran in backward the stack of the forward call that it belongs to."""
        stacks: dict[Any, Any] = {}
        for event in self:
            if event.sequence_nr >= 0 and event.stack and backward_of(event) is None:
                stacks.setdefault((event.sequence_nr, event.thread), event.stack)
        for event in self:
            node = backward_of(event)
            if node is not None and event.stack:
                event.stack = stacks.get((node.sequence_nr, node.fwd_thread), [])

    # ---- sums

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of all events together."""
        return sum(event.self_cpu_time_total for event in self)

    def key_averages(self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0,
                     group_by_overload_name: bool = False) -> EventList:  # fmt: skip
        """The sums over events of one name; on request also of one list of shapes, of one overload,
        or of the same `group_by_stack_n` innermost lines of the stack.
        """
        if not self._tree_built:
            raise AssertionError("Expected tree to be built before calling key_averages")
        sums: dict[Any, FunctionEventAvg] = {}
        for event in self:
            key = [event.key, event.node_id, event.device_type, event.is_legacy,
                   event.is_user_annotation]  # fmt: skip
            if group_by_overload_name:
                key.append(event.overload_name)
            if group_by_input_shapes:
                key.append(str(event.input_shapes))
            key += (event.stack or [])[:group_by_stack_n]
            sums.setdefault(tuple(key), FunctionEventAvg()).add(event)
        for found in sums.values():
            found.stack = (found.stack or [])[:group_by_stack_n]
            if not group_by_input_shapes:
                found.input_shapes = ""
            if not group_by_overload_name:
                found.overload_name = ""
        return self._like(sums.values())

    def total_average(self) -> FunctionEventAvg:
        """The sum over all events, whatever they are; its key is "Total"."""
        total = FunctionEventAvg()
        for event in self:
            total.key = None  # events of any name may be added
            total += event
        total.key = "Total"
        return total

    # ---- texts and files

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int | None = 75,
        max_name_column_width: int | None = 55,
        max_shapes_column_width: int | None = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """A table with a row for each event.

        sort_by: an attribute of events, the largest first, such as "self_cpu_time_total",
            "cpu_memory_usage" or "count"; None keeps the order.
        row_limit: how many rows there are; -1: all.
        top_level_events_only: leave out what lies in other events.
        time_unit: "s", "ms" or "us" for all times; None: what suits each.
        """
        events = self
        if sort_by is not None:
            name = sort_by
            for device in ("cuda", "xpu", "privateuse1"):
                name = name.replace(device, "device")
            events = self._like(sorted(self, key=lambda event: getattr(event, name), reverse=True))
        layout = table.Layout(row_limit, max_src_column_width, max_name_column_width,
                              max_shapes_column_width, header, top_level_events_only,
                              time_unit)  # fmt: skip
        return table.build(events, layout, memory=self._profile_memory, flops=self._with_flops)

    def export_chrome_trace(self, path: str) -> None:
        """Write the events for chrome://tracing or ui.perfetto.dev."""
        listed = [
            {"name": event.trace_name, "ph": "X", "ts": event.time_range.start,
             "dur": event.time_range.elapsed_us(), "tid": event.thread, "pid": "CPU functions",
             "args": {}}
            for event in self
            if event.trace_name is not None
        ]  # fmt: skip
        Path(path).write_text(json.dumps(listed), encoding="utf-8")

    def supported_export_stacks_metrics(self) -> list[str]:
        """What `export_stacks` can weigh stacks by."""
        return list(METRICS)

    def export_stacks(self, path: str, metric: str) -> None:
        """Write each event's stack, the outermost line first, and its microseconds: a line each, in
        the form that flamegraph.pl and speedscope read.

        Raises:
            ValueError: an unknown metric.
        """
        if metric not in METRICS:
            raise ValueError(f"metric should be one of: {METRICS}")
        name = metric.replace("cuda", "device").replace("xpu", "device")
        name = name.replace("privateuse1", "device")
        blanks = str.maketrans(" ;\t\n", "____")
        with Path(path).open("w", encoding="utf-8") as file:
            for event in self:
                value = int(getattr(event, name))
                if event.stack and value > 0:
                    lines = [entry.translate(blanks) for entry in reversed(event.stack)]
                    file.write(f"{';'.join(lines)} {value}\n")


def backward_of(event: FunctionEvent | None) -> FunctionEvent | None:
    """The node of backward that an event is or lies in."""
    while event is not None and event.scope != BACKWARD:
        event = event.cpu_parent
    return event
