"""The profiler with nothing to set: a table, a trace and a flame graph of what runs."""

from __future__ import annotations

import sys
from contextlib import ContextDecorator
from pathlib import Path
from time import perf_counter_ns
from typing import TextIO

from flambeau._ops.table.namespace import get
from flambeau.debug import flame
from flambeau.profiler import trace
from flambeau.profiler.build import event_list
from flambeau.profiler.event_list import EventList
from flambeau.profiler.recorder import Options, Recorder

TRIALS, CALLS = 5, 100


class profile(ContextDecorator):
    """Say what takes the time within the `with` statement, or a decorated function.

        with flambeau.debug.profile("train.json"):
            train_one_epoch()

    prints a table, the operators with the most time of their own first, and writes two files:
    `train.json`, a trace for ui.perfetto.dev, and `train.html`, a flame graph that a browser shows.
    `torch.profiler.profile` is the same with PyTorch's many options.

    path: of the trace; None: write no files.
    rows: how many rows the table has.
    memory: whether memory is noted, too.
    max_events: how many events the trace holds: the longest; the table and the flame graph are of
        all that were recorded.
    file: where to print; None: standard error, as `advise` does.
    """

    def __init__(self, path: str | None = "profile.json", *, rows: int = 20, memory: bool = True,
                 max_events: int = 100_000, file: TextIO | None = None) -> None:  # fmt: skip
        if max_events < 1:
            raise ValueError(f"max_events should be positive, but got {max_events}")
        self.path, self.rows, self.max_events, self.file = path, rows, max_events, file
        self.profile_memory, self.with_flops = memory, True
        self.recorder = Recorder(self._options())
        self.cost = 0.0
        self._open: list[Recorder] = []

    def _options(self) -> Options:
        return Options(shapes=True, memory=self.profile_memory, stack=True, modules=True)

    def __enter__(self) -> profile:
        self.recorder = Recorder(self._options())
        self._open.append(self.recorder)
        self.recorder.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.recorder = self._open.pop()
        self.recorder.stop()
        self.cost = cost_of_event(self._options())
        self.report()

    def events(self) -> EventList:
        """All events, as those of `torch.profiler.profile`."""
        return event_list(self.recorder, self)

    def report(self) -> None:
        """Print the table and what the recording cost, and write the files."""
        out = sys.stderr if self.file is None else self.file
        averages = self.events().key_averages()
        table = averages.table(sort_by="self_cpu_time_total", row_limit=self.rows)
        print(table or "nothing was recorded", file=out)
        if len(averages) > self.rows:
            print(f"{len(averages) - self.rows} more rows are not shown", file=out)
        print(self.facts(), file=out)
        if self.path is not None:
            self._write(out)

    def facts(self) -> str:
        """How long it took, and how much of that the recording."""
        recorder = self.recorder
        elapsed = (recorder.ended - recorder.began) / 1e6
        count = len(recorder.records) + recorder.dropped
        kernels = sum(record.kind == "kernel" for record in recorder.records)  # they cost little
        cost = (count - kernels) * self.cost / 1e3
        share = min(100.0, 100 * cost / elapsed) if elapsed else 0.0
        text = (f"{count:,} events in {elapsed:,.1f} ms; recording them took about {cost:,.1f} ms "
                f"of it ({share:.0f} %, {self.cost:.1f} us each).")  # fmt: skip
        if recorder.dropped:
            text += f" The last {recorder.dropped:,} were not kept."
        return text

    def _write(self, out: TextIO) -> None:
        assert self.path is not None
        dropped = trace.write(self.recorder, self.path, {}, "flambeau", self.max_events)
        note = f", without {dropped:,} of the shortest events" if dropped else ""
        print(f"trace: {self.path}{note} (open it in ui.perfetto.dev)", file=out)
        page = Path(self.path.removesuffix(".gz")).with_suffix(".html")
        flame.write(self.recorder, str(page), f"Profile {page.stem}", self.facts())
        print(f"flame graph: {page}", file=out)


def cost_of_event(options: Options) -> float:
    """Microseconds that an operator takes longer while a recording is on, measured here and now."""
    x = get("ones")(4)
    add = get("add")

    def trial() -> int:
        start = perf_counter_ns()
        for _ in range(CALLS):
            add(x, x)
        return perf_counter_ns() - start

    trial()
    plain = min(trial() for _ in range(TRIALS))
    recorded = []
    for _ in range(TRIALS):
        recorder = Recorder(options)
        recorder.start()
        recorded.append(trial())
        recorder.stop()
    return max(0.0, (min(recorded) - plain) / CALLS / 1e3)
