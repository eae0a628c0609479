"""torch.profiler and torch.autograd.profiler: steps, results and files."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

import flambeau as torch
from flambeau.profiler import (
    ProfilerAction,
    ProfilerActivity,
    _KinetoProfile,
    profile,
    record_function,
    schedule,
)
from flambeau.profiler.recorder import Options, Recorder
from flambeau.profiler.trace import longest, write


def work() -> Any:
    return (torch.ones(3) + 1).exp()


def test_it_is_imported_when_it_is_asked_for():
    code = (
        "import sys, flambeau.hook; flambeau.hook.install(); import torch\n"
        "assert 'flambeau.profiler' not in sys.modules\n"
        "import torch.profiler, torch.autograd.profiler, torch.autograd.profiler_util\n"
        "assert torch.autograd.profiler.record_function is torch.profiler.record_function\n"
        "assert torch.autograd.profiler_util.EventList is torch.autograd.profiler.EventList\n"
        "assert torch.autograd.ProfilerActivity is torch.profiler.ProfilerActivity\n"
        "assert sys.modules['torch.profiler'] is sys.modules['flambeau.profiler']\n"
        "torch.profiler.profiler.profile"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_names_that_are_not_there():
    for name in ("ExecutionTraceObserver", "itt"):
        with pytest.raises(NotImplementedError, match=f"torch.profiler.{name} is not"):
            getattr(torch.profiler, name)
    with pytest.raises(NotImplementedError, match="load_nvprof"):
        torch.autograd.profiler.load_nvprof  # noqa: B018
    with pytest.raises(NotImplementedError, match="emit_itt"), torch.autograd.profiler.emit_itt():
        pass
    with torch.autograd.profiler.emit_itt(enabled=False):
        work()


def test_steps_and_cycles(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("flambeau._core.settings.Warnings.given", set())
    ready: list[Any] = []
    plan = schedule(wait=1, warmup=1, active=2, repeat=2)
    cleared = pytest.warns(UserWarning, match="Profiler clears events at the end of each cycle")
    with cleared, profile(schedule=plan, on_trace_ready=lambda p: ready.append(p.step_num)) as prof:
        actions = [prof.current_action]
        for _ in range(9):
            work()
            prof.step()
            actions.append(prof.current_action)
    none, warmup, record, save, _ = ProfilerAction
    assert actions == [none, warmup, record, save] * 2 + [none, none]
    assert ready == [4, 8]
    (steps,) = [e for e in prof.key_averages() if e.key == "ProfilerStep*"]
    assert steps.count == 2
    assert {e.trace_name for e in prof.events() if e.name == "ProfilerStep*"} == {
        "ProfilerStep#6", "ProfilerStep#7"}  # fmt: skip


def test_start_and_stop_by_hand():
    prof = profile()
    work()
    prof.start()
    work()
    prof.stop()
    work()
    assert [e.count for e in prof.key_averages() if e.key == "aten::exp"] == [1]


def test_the_low_level_profiler():
    prof = _KinetoProfile(record_shapes=True)
    prof.preset_metadata_json("early", "3")
    prof.start()
    work()
    prof.stop()
    assert any(e.input_shapes == [[3]] for e in prof.events())
    assert prof._trace_metadata == {"record_shapes": "1", "early": "3"}


def test_an_observer_is_started_and_stopped_along():
    calls: list[str] = []

    class Observer:
        def start(self) -> None:
            calls.append("start")

        def stop(self) -> None:
            calls.append("stop")

        def cleanup(self) -> None:
            calls.append("cleanup")

    with profile(execution_trace_observer=Observer()):
        work()
    assert calls == ["start", "stop", "cleanup"]


def test_accumulated_events():
    prof = torch.autograd.profiler.profile(acc_events=True)
    for _ in range(3):
        prof.entered = False
        with prof:
            work()
    assert [e.count for e in prof.key_averages() if e.key == "aten::exp"] == [3]


def test_a_disabled_profile_does_nothing():
    with torch.autograd.profiler.profile(enabled=False) as prof:
        work()
    assert prof is None


def test_devices_that_are_not_there_warn():
    with pytest.warns(UserWarning, match="CUDA is not available, disabling CUDA profiling"):
        prof = torch.autograd.profiler.profile(use_device="cuda")
    with prof:
        work()
    assert "aten::exp" in {e.key for e in prof.key_averages()}
    with (
        pytest.warns(UserWarning, match="CUDA is not available"),
        profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as both,
    ):
        work()
    assert both.events()


def test_emulated_devices_are_recorded_as_the_cpu():
    pytest.importorskip("llvmlite")
    code = (
        "import flambeau as torch\n"
        "from torch.profiler import ProfilerActivity, profile, supported_activities\n"
        "assert ProfilerActivity.CUDA in supported_activities()\n"
        "with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as prof:\n"
        "    x = torch.ones(3, device='cuda', requires_grad=True)\n"
        "    (x * 2).sum().backward()\n"
        "names = {event.name for event in prof.events()}\n"
        "assert {'aten::mul', 'MulBackward0'} <= names, names\n"
        "print(len(prof.key_averages().table(sort_by='cuda_time_total')) > 0)\n"
    )
    environment = {**os.environ, "FLAMBEAU_EMULATE_CUDA": "1"}
    command = [sys.executable, "-W", "error", "-m", "flambeau", "run", "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_trace_ids():
    prof = profile(custom_trace_id_callback=lambda: "mine")
    assert prof.get_trace_id() is None
    with prof:
        work()
    assert prof.get_trace_id() == "mine"
    prof.set_custom_trace_id_callback(lambda: "another")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with prof:
            work()
    assert prof.get_trace_id() == "another"


def test_a_trace_is_valid(tmp_path: Path):
    x = torch.ones(3, requires_grad=True)
    label = record_function('a label "with" </script> ünïcode')
    with profile(record_shapes=True, profile_memory=True, with_stack=True) as prof, label:
        (x * x).sum().backward()
    for name in ("trace.json", "trace.json.gz"):
        prof.export_chrome_trace(str(tmp_path / name))
        check_trace(read_json(tmp_path / name), prof)


def read_json(path: Path) -> Any:
    content = path.read_bytes()
    return json.loads(gzip.decompress(content) if path.suffix == ".gz" else content)


def check_trace(found: Any, prof: Any) -> None:
    """The Trace Event Format: complete events have times, children lie within their parents."""
    spans = [event for event in found["traceEvents"] if event["ph"] == "X"]
    listed = [event.trace_name for event in prof.events() if event.trace_name]
    assert sorted(s["name"] for s in spans if s["cat"] in ("cpu_op", "user_annotation")) == (
        sorted(listed)
    )
    for event in found["traceEvents"]:
        assert {"ph", "name", "pid", "tid", "ts"} <= set(event)
        assert event["ph"] in "XMisf"
    assert all(span["dur"] >= 0 for span in spans)
    arrows = [event["ph"] for event in found["traceEvents"] if event.get("cat") == "fwdbwd"]
    assert arrows.count("s") == arrows.count("f") > 0
    memory = [event for event in found["traceEvents"] if event["name"] == "[memory]"]
    assert memory and all(event["args"]["Bytes"] for event in memory)


def test_a_trace_keeps_the_longest_events_and_says_so(tmp_path: Path):
    recorder = Recorder(Options())
    recorder.start()
    for _ in range(20):
        torch.matmul(torch.ones(8, 8), torch.ones(8, 8))
    recorder.stop()
    kept, shortest = longest(recorder.records, 10)
    assert len(kept) == 10
    assert all(record.parent is None or record.parent in kept for record in kept)
    assert min(record.end - record.start for record in kept) == shortest
    path = tmp_path / "small.json"
    dropped = write(recorder, str(path), {}, "x", limit=10)
    assert dropped == len(recorder.records) - 10
    head = json.loads(path.read_text())["droppedEvents"]
    assert head["count"] == dropped and "were left out" in head["note"]


def test_stacks_for_flame_graphs(tmp_path: Path):
    with profile(with_stack=True) as prof:
        for _ in range(50):
            work()
    path = tmp_path / "stacks.txt"
    prof.export_stacks(str(path))
    lines = path.read_text().splitlines()
    assert lines and all(int(line.rpartition(" ")[2]) > 0 for line in lines)
    assert all("work" in line.split(";")[-1] for line in lines)


@pytest.mark.parametrize("name", ["m.json", "m.json.gz", "m.raw.json.gz", "m.html"])
def test_memory_timelines(tmp_path: Path, name: str):
    with profile(record_shapes=True, profile_memory=True, with_stack=True) as prof:
        x = torch.ones(256, requires_grad=True)
        (x * 2).sum().backward()
        del x
    path = tmp_path / name
    with pytest.warns(FutureWarning, match="export_memory_timeline"):
        prof.export_memory_timeline(str(path), device="cpu")
    if name.endswith("html"):
        assert "<polygon" in path.read_text() and "bytes at once" in path.read_text()
        return
    content = read_json(path)
    if "raw" in name:
        assert {row[1] for row in content} == {1, 3}
        assert sum(row[2] if row[1] == 1 else -row[2] for row in content) >= 0
    else:
        times, sizes = content
        assert times == sorted(times) and len(times) == len(sizes)
        assert max(map(sum, sizes)) >= 2048


def test_step_counts():
    tracker = torch.profiler.KinetoStepTracker
    start = tracker.current_step()
    tracker.init_step_count("a")
    tracker.init_step_count("b")
    assert tracker.increment_step("a") == start + 1
    assert tracker.increment_step("b") == start + 1
    assert tracker.increment_step("b") == start + 2
    assert tracker.erase_step_count("a") and tracker.erase_step_count("b")
    assert not tracker.erase_step_count("a")
