"""A recording in the Trace Event Format, for ui.perfetto.dev and chrome://tracing.

https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

from __future__ import annotations

import gzip
import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from flambeau.profiler import arguments
from flambeau.profiler.build import keys_of, no_collection
from flambeau.profiler.memory import Change
from flambeau.profiler.recorder import ACCUMULATE, EVALUATE, Record, Recorder

CATEGORIES = {"cpu_op": "cpu_op", "node": "cpu_op", "user_annotation": "user_annotation",
              "module": "python_function", "kernel": "kernel"}  # fmt: skip
JsonObject = dict[str, Any]


def write(recorder: Recorder, path: str, metadata: dict[str, str], trace_id: str,
          limit: int | None = None) -> int:  # fmt: skip
    """Write a recording to a file, compressed if its name ends in ".gz".

    metadata: key -> JSON text, written beside the events.
    limit: how many events there may be. The longest are kept, so that whatever lies around an event
        that is kept is kept, too. Of changes of memory, the largest are kept.

    Returns:
        How many events were left out: by the limit here, and by that of the recorder.
    """
    records, shortest = longest(recorder.records, limit)
    dropped = recorder.dropped + len(recorder.records) - len(records)
    head = _head(metadata, trace_id)
    if dropped:
        head["droppedEvents"] = {
            "count": dropped,
            "note": f"{dropped} events were left out: the recording keeps "
            f"{recorder.options.limit}, this file the {len(records)} longest "
            f"(from {shortest / 1e3:.3f} us)",
        }
    head["traceName"] = path
    changes = largest(recorder.allocations.changes, limit)
    with no_collection():
        content = json.dumps({**head, "traceEvents": list(events(recorder, records, changes))})
    if path.endswith(".gz"):
        with gzip.open(path, "wt", encoding="utf-8") as file:
            file.write(content)
    else:
        Path(path).write_text(content, encoding="utf-8")
    return dropped


def longest(records: list[Record], limit: int | None) -> tuple[list[Record], int]:
    """At most `limit` of the records, and nanoseconds of the shortest that is there."""
    if limit is None or len(records) <= limit:
        return records, 0
    lengths = sorted((record.end - record.start for record in records), reverse=True)
    shortest = lengths[limit - 1]
    over = lengths[:limit].count(shortest)  # how many of exactly that length may stay
    kept = []
    for record in records:
        length = record.end - record.start
        if length == shortest:
            over -= 1
        if length > shortest or (length == shortest and over >= 0):
            kept.append(record)
    return kept, shortest


def largest(changes: list[Change], limit: int | None) -> list[Change]:
    """At most `limit` of the changes of memory, in the order of time."""
    if limit is None or len(changes) <= limit:
        return changes
    by_size = sorted(range(len(changes)), key=lambda place: -abs(changes[place].bytes))
    return [changes[place] for place in sorted(by_size[:limit])]


def _head(metadata: dict[str, str], trace_id: str) -> JsonObject:
    head = {"schemaVersion": 1, "deviceProperties": [], "trace_id": trace_id}
    head.update({key: json.loads(value) for key, value in metadata.items()})
    head.update(host_name=socket.gethostname(), displayTimeUnit="ms", baseTimeNanoseconds=0)
    return head


def events(
    recorder: Recorder, records: list[Record], changes: list[Change]
) -> Iterator[JsonObject]:
    """The events of a trace: names, then spans, arrows from forward to backward, and memory."""
    process, thread = os.getpid(), threading.get_native_id()
    # Times of perf_counter become microseconds since 1970, as in PyTorch's traces.
    shift = time.time_ns() - time.perf_counter_ns()
    common = {"pid": process, "tid": thread}
    began = (recorder.began + shift) / 1e3
    yield from _names(common, began)
    for number, record in enumerate(records):
        start, end = (record.start + shift) / 1e3, (record.end + shift) / 1e3
        for name in keys_of(record):
            yield {"ph": "X", "cat": CATEGORIES[record.kind], "name": name, **common, "ts": start,
                   "dur": end - start, "args": _arguments(record, number)}  # fmt: skip
    yield from _arrows(records, common, shift)
    for change in changes:
        yield {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", **common,
               "ts": (change.time + shift) / 1e3,
               "args": {"Total Allocated": change.total, "Bytes": change.bytes, "Device Id": -1,
                        "Device Type": 0, "Addr": change.address}}  # fmt: skip
    yield {"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans",
           "tid": "PyTorch Profiler", "ts": began,
           "dur": (recorder.ended - recorder.began) / 1e3, "args": {"Op count": 0}}  # fmt: skip


def _names(common: JsonObject, began: float) -> Iterator[JsonObject]:
    process, thread = common["pid"], common["tid"]
    for name, given in (
        ("process_name", {"name": "python"}),
        ("process_labels", {"labels": "CPU"}),
        ("process_sort_index", {"sort_index": process}),
        ("thread_name", {"name": f"thread {thread} (python)"}),
        ("thread_sort_index", {"sort_index": thread}),
    ):
        of_process = name.startswith("process")
        yield {"ph": "M", "name": name, "ts": began, "pid": process,
               "tid": 0 if of_process else thread, "args": given}  # fmt: skip


def _arguments(record: Record, number: int) -> JsonObject:
    found: JsonObject = {"External id": number + 1, "Ev Idx": number}
    if record.sequence >= 0:
        found["Sequence number"] = record.sequence
        found["Fwd thread id"] = 1 if record.kind == "node" else 0
    if record.given is not None:
        found["Concrete Inputs"] = [_as_text(arguments.number(value)) for value in record.given]
        found["Input type"] = [arguments.type_name(value) for value in record.given]
        found["Input Strides"] = [arguments.strides(value) for value in record.given]
        found["Input Dims"] = [arguments.shape(value) for value in record.given]
    stack = record.stack
    if not stack and record.forward is not None:
        stack = record.forward.stack
    if stack:
        found["Call stack"] = ";\n".join(stack)
    return found


def _as_text(value: Any) -> str:
    return str(value) if isinstance(value, (bool, int, float, list, tuple)) else ""


def _arrows(records: list[Record], common: JsonObject, shift: int) -> Iterator[JsonObject]:
    """From each forward operator to its node of backward."""
    forward: dict[int, Record] = {}
    for record in records:
        if record.sequence < 0 or record.name.startswith((EVALUATE, ACCUMULATE)):
            continue
        if record.kind == "cpu_op":
            forward.setdefault(record.sequence, record)
        elif record.kind == "node" and record.sequence in forward:
            arrow = {"id": record.sequence, **common, "cat": "fwdbwd", "name": "fwdbwd"}
            yield {"ph": "s", **arrow, "ts": (forward[record.sequence].start + shift) / 1e3}
            yield {"ph": "f", **arrow, "ts": (record.start + shift) / 1e3, "bp": "e"}
