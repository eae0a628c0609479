"""flambeau.debug.profile: the table, the trace, the flame graph, and what it costs."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import flambeau as torch
from flambeau.debug import flame, profile
from flambeau.profiler.recorder import Options, Recorder


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(8, 16)
        self.second = torch.nn.Linear(16, 4)

    def forward(self, x: Any) -> Any:
        x = self.first(x).relu()
        return self.second(x)


def step(net: Any) -> None:
    loss = net(torch.ones(5, 8)).sum()
    loss.backward()


def page_data(path: Path) -> Any:
    """The tree in a page."""
    found = re.search(r"^const data = (.*);$", path.read_text(), re.MULTILINE)
    assert found is not None
    return json.loads(found.group(1).replace("<\\/", "</"))


def frames(frame: Any, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    """Every frame of a page by the names on the way to it."""
    here = (*path, frame[0])
    found = {here: frame}
    for inner in frame[6]:
        found.update(frames(inner, here))
    return found


def test_table_trace_and_flame_graph(tmp_path: Path):
    out, net = io.StringIO(), Net()
    with profile(str(tmp_path / "run.json"), file=out) as prof:
        for _ in range(3):
            step(net)
    text = out.getvalue()
    assert "Self CPU time total" in text and "aten::addmm" in text and "CPU Mem" in text
    assert re.search(r"[\d,]+ events in [\d.,]+ ms; recording them took about [\d.,]+ ms", text)
    assert "run.json" in text and "run.html" in text
    names = {
        event["name"] for event in json.loads((tmp_path / "run.json").read_text())["traceEvents"]
    }
    assert {"aten::linear", "AddmmBackward0", "nn.Module: Net_0"} <= names
    assert {e.key: e.count for e in prof.events().key_averages()}["aten::addmm"] == 6


def test_paths_go_from_lines_over_modules_to_operators(tmp_path: Path):
    net = Net()
    with profile(str(tmp_path / "run.json"), file=io.StringIO()):
        step(net)
    data = page_data(tmp_path / "run.html")
    found = frames(data["root"])
    kinds = [data["kinds"][frame[1]] for frame in found.values()]
    assert set(kinds) >= {"all", "line", "module", "operator", "backward"}
    inner = [path[-4:] for path in found if path[-1] == "aten::linear"]
    assert [re.sub(r".*  ", "", name) for name in inner[0]] == [
        "Net_0", "x = self.first(x).relu()", "Linear_0", "aten::linear"]  # fmt: skip
    backward = [path for path in found if path[-1] == "AddmmBackward0"]
    assert {path[-2] for path in backward} == {"Linear_0", "Linear_1"}
    assert all("loss.backward()" in path[-4] for path in backward)


def test_times_of_frames_hold_those_within(tmp_path: Path):
    recorder = Recorder(Options(stack=True, modules=True, shapes=True))
    net = Net()
    recorder.start()
    for _ in range(5):
        step(net)
    recorder.stop()
    root = flame.tree(recorder)

    def check(frame: flame.Frame) -> None:
        within = sum(each.time for each in frame.inner.values())
        assert within <= frame.time * 1.0001
        for each in frame.inner.values():
            check(each)

    check(root)
    assert root.time == recorder.ended - recorder.began
    outer = sum(r.end - r.start for r in recorder.records if r.parent is None)
    assert sum(each.time for each in root.inner.values()) == outer


def test_lines_around_the_recorded_part_are_left_out():
    """As those of a notebook or of a test: all records have them in common."""
    recorder = Recorder(Options(stack=True, modules=True, shapes=True))
    net = Net()

    def around() -> None:
        for _ in range(2):
            step(net)

    recorder.start()
    around()
    recorder.stop()
    (line,) = flame.tree(recorder).inner.values()
    assert line.name.endswith("step(net)")
    assert sorted(re.sub(r".*  ", "", each.name) for each in line.inner.values()) == [
        "loss = net(torch.ones(5, 8)).sum()", "loss.backward()"]  # fmt: skip


def test_a_page_stays_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(flame, "MOST_FRAMES", 10)
    with profile(str(tmp_path / "run.json"), file=io.StringIO()):
        step(Net())
    data = page_data(tmp_path / "run.html")
    found = frames(data["root"])
    assert len(found) <= 10 and "smallest frames are left out" in data["facts"]
    assert all(path[:-1] in found or len(path) == 1 for path in found)


def test_a_page_needs_nothing_else_and_code_in_names_stays_text(tmp_path: Path):
    label = torch.profiler.record_function("</script><script>alert(1)</script>")
    with profile(str(tmp_path / "run.json"), file=io.StringIO()), label:
        torch.ones(3)
    page = (tmp_path / "run.html").read_text()
    assert page.count("</script>") == 1 and "alert(1)" in page
    assert not re.search(r"(src|href)=", page)
    links = set(re.findall(r"https?://[^\s\"]+", page))
    assert links <= {"http://www.w3.org/2000/svg"}


def test_limits_are_told(tmp_path: Path):
    out = io.StringIO()
    with profile(str(tmp_path / "run.json"), rows=2, max_events=5, file=out):
        step(Net())
    assert re.search(r"\d+ more rows are not shown", out.getvalue())
    assert re.search(r"without \d+ of the shortest events", out.getvalue())
    trace = json.loads((tmp_path / "run.json").read_text())
    assert trace["droppedEvents"]["count"] > 0
    spans = [e for e in trace["traceEvents"] if e["ph"] == "X" and e["cat"] != "Trace"]
    assert 0 < len(spans) <= 10  # a record may be shown as a chain of two operators


def test_without_files_and_as_decorator(capsys: pytest.CaptureFixture[str], tmp_path: Path,
                                        monkeypatch: pytest.MonkeyPatch):  # fmt: skip
    monkeypatch.chdir(tmp_path)

    @profile(None)
    def work() -> int:
        step(Net())
        return 3

    assert work() == 3
    assert "Self CPU time total" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ValueError, match="max_events should be positive"):
        profile(max_events=0)


def test_an_error_is_reported_after_what_ran(tmp_path: Path):
    out = io.StringIO()
    with pytest.raises(RuntimeError, match="mat1 and mat2"), profile(None, file=out):
        torch.ones(3).exp()
        torch.ones(2, 3) @ torch.ones(2, 3)
    assert "aten::exp" in out.getvalue()
    assert (torch.ones(2) + 1).tolist() == [2, 2]


def test_flambeau_run(tmp_path: Path):
    script = tmp_path / "train.py"
    script.write_text("import torch, sys\nx = torch.ones(4, 4)\nprint(sys.argv, (x @ x).sum())\n")
    command = [sys.executable, "-m", "flambeau", "run", "--profile", "out.json", "train.py", "-v"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "['train.py', '-v'] tensor(64.)\n"
    assert "aten::mm" in done.stderr and "recording them took" in done.stderr
    assert json.loads((tmp_path / "out.json").read_text())["traceEvents"]
    names = [path[-1] for path in frames(page_data(tmp_path / "out.html")["root"])]
    assert any(name.startswith("train.py:3  print(") for name in names)
    assert not any("cli.py" in name or "runpy" in name for name in names)
    short = subprocess.run(command[:5], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert short.returncode == 2 and "--profile needs the name of a file" in short.stderr
