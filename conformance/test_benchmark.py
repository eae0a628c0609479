"""`torch.utils.benchmark`: what measurements say, and tables."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import pytest

from conformance.side_by_side import attempt, compare

pytest.importorskip("torch")

Make = Callable[..., Any]


def library(module: Any) -> tuple[Any, Make]:
    """The package, and what makes measurements."""
    package = importlib.import_module(f"{module.__name__}.utils.benchmark")
    common = importlib.import_module(f"{module.__name__}.utils.benchmark.utils.common")

    def make(times: list[float], runs: int = 1, **words: Any) -> Any:
        return common.Measurement(runs, times, common.TaskSpec("f(x)", "pass", **words))

    return package, make


TIMES = {
    "spread": ([1e-3, 1.1e-3, 0.9e-3, 1e-3], 1, {}),
    "single": ([1e-3], 1, {}),
    "short": ([5e-6] * 3, 100, {"label": "a"}),
    "wild": ([1e-3, 5e-3, 9e-3, 1e-3, 1e-2], 1, {"sub_label": "b"}),
    "two": ([2.0, 3.0], 1, {"label": "a", "sub_label": "b", "description": "c"}),
    "threads": ([1e-9 * k for k in range(100, 120)], 10, {"num_threads": 2, "env": "E"}),
}


@pytest.mark.parametrize("name", TIMES)
def test_measurements(name: str) -> None:
    """The same numbers and the same lines."""

    def scenario(module: Any) -> Any:
        _, make = library(module)
        times, runs, words = TIMES[name]
        found = make(times, runs, **words)
        return (repr(found).splitlines()[1:], found.title, found.as_row_name, found.median,
                found.iqr, found.mean, found.significant_figures, found.has_warnings)  # fmt: skip

    compare(scenario)


def grid(make: Make, step: float, **more: Any) -> list[Any]:
    """Measurements of two statements with two descriptions and numbers of threads."""
    return [
        make([1e-3 * (1 + i) * (1 + step * j)] * 2, label="Lab", sub_label=f"row {i}" * (1 + i),
             description=f"d{j}", num_threads=threads, **more)
        for i in range(2) for j in range(3) for threads in (1, 4)
    ]  # fmt: skip


TABLES: dict[str, Callable[[Any, Make], Any]] = {
    "plain": lambda b, make: b.Compare(grid(make, 1)),
    "a hole": lambda b, make: b.Compare(
        [*grid(make, 1), make([5.0], label="Lab", sub_label="only", description="a longer one")]
    ),
    "labels": lambda b, make: b.Compare(
        [make([1e-6 * j], label=f"L{j}", sub_label="s", description="d") for j in (1, 2)]
    ),
    "environments": lambda b, make: b.Compare(
        [make([1e-6], label="a long label, longer than all", sub_label="s", description="d", env=e)
         for e in ("AB", "C")]
    ),
    "seconds": lambda b, make: b.Compare(
        [make([t], label="L", sub_label=f"{t}", description="d") for t in (2.0, 90.0)]
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("look", ["plain", "trimmed", "columns", "rows", "warnings"])
def test_tables(name: str, look: str) -> None:
    """The same text, colours included."""

    def scenario(module: Any) -> Any:
        table = TABLES[name](*library(module))
        {
            "plain": lambda: None,
            "trimmed": table.trim_significant_figures,
            "columns": table.colorize,
            "rows": lambda: table.colorize(rowwise=True),
            "warnings": table.highlight_warnings,
        }[look]()
        return str(table)

    compare(scenario)


def test_timers() -> None:
    """Statements, how they are cleaned up, and what is refused."""

    def scenario(module: Any) -> Any:
        package, _ = library(module)
        timer = package.Timer("  \n  y = x\n  y\n", setup="\n  x = 1\n", globals={"x": 3})
        found = timer.timeit(2)
        bad = [{"stmt": 3}, {"language": "c"}, {"global_setup": "x"}]
        return (found.stmt, found.setup, found.number_per_run, len(found.times), found.title,
                [attempt(package.Timer, **words) for words in bad],
                attempt(package.Timer("1/0").timeit, 1), attempt(timer.repeat))  # fmt: skip

    compare(scenario)
