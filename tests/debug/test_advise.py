"""What `advise` prints and returns, and that it leaves nothing behind; see test_programs.py for
what it finds."""

from __future__ import annotations

import io
import subprocess
import sys
import threading

import pytest

import flambeau as torch
from flambeau._core import modes
from flambeau.debug import advise
from flambeau.debug.advice.base import MANY
from flambeau.debug.advise import Looker, Report


def slices(count: int = 10) -> None:
    x = torch.ones(count, 3)
    for i in range(count):
        x[i] * 2


def test_what_a_report_says(capsys: pytest.CaptureFixture[str]) -> None:
    with advise() as report:
        slices()
    [item] = report.items
    assert item.topic == "a loop of slices"
    assert item.text == "10 slices along dim 0 of x, float32[10, 3], one by one"
    assert item.better == "for part in x.unbind(): ...\nor one operator on all of x, along dim 0"
    assert (item.count, item.unit) == (10, "slice")
    assert 0 < item.seconds < report.seconds
    assert item.place is not None
    assert item.place.code == "x[i] * 2"
    printed = capsys.readouterr()
    assert printed.out == ""
    lines = printed.err.splitlines()
    assert lines[0].startswith("flambeau.debug.advise: 1 advice (20 operators in ")
    assert lines[2] == f"1. a loop of slices: {item.text}"
    assert lines[3] == f"  {__file__}:{item.place.line}, in slices: x[i] * 2"
    assert lines[4].startswith("  10 slices, ")
    assert lines[5:] == ["  better: for part in x.unbind(): ...",
                         "          or one operator on all of x, along dim 0"]  # fmt: skip


def test_where_it_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    file = io.StringIO()
    with advise(file=file):
        pass
    assert file.getvalue().startswith("flambeau.debug.advise: no advice (0 operators in ")
    with advise(quiet=True) as report:
        slices()
    assert capsys.readouterr() == ("", "")
    assert len(report.items) == 1


def test_as_a_decorator(capsys: pytest.CaptureFixture[str]) -> None:
    advise()(slices)()
    assert "1 advice" in capsys.readouterr().err


def test_one_within_the_other() -> None:
    with advise(quiet=True) as outer:
        slices()
        with advise(quiet=True) as inner:
            slices()
        slices()
    assert len(outer.items) == len(inner.items) == 1
    assert (outer.items[0].count, inner.items[0].count) == (30, 10)


def test_nothing_is_left_behind() -> None:
    from flambeau.autograd import engine
    from flambeau.nn.module_hooks import global_hooks
    from flambeau.optim import optimizer

    before = torch.Tensor.item, engine.backward, torch.amp.GradScaler.scale
    with pytest.raises(ZeroDivisionError), advise(quiet=True):
        assert torch.Tensor.item is not before[0]
        _ = 1 / 0
    assert (torch.Tensor.item, engine.backward, torch.amp.GradScaler.scale) == before
    assert not modes.stacks.observers
    assert modes.watch.active == modes.watch.nodes == 0
    assert not global_hooks.any_around_calls()
    assert not optimizer._global_pre_hooks


def test_operators_that_fail_are_survived() -> None:
    with advise(quiet=True) as report:
        for _ in range(200):
            with pytest.raises(RuntimeError):
                torch.ones(2) + torch.ones(3)
        slices()
    assert len(report.items) == 1


def test_other_threads_are_left_alone() -> None:
    values = []

    def work() -> None:
        x = torch.ones(100)
        values.extend(float(x[i]) for i in range(100))

    with advise(quiet=True) as report:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert values == [1.0] * 100
    assert report.items == []


def test_memory_is_bounded() -> None:
    looker = Looker()
    kept = []
    for k in range(2000):
        kept.append(torch.ones(2) * k)
    code = "\n".join(f"x.half().mul(60000).square()\nx[{k % 3}].item()" for k in range(2000))
    exec(compile(code, "<program>", "exec"), {"x": torch.full((3,), 5.0)})
    report = looker.close()
    assert len(report.items) == MANY
    assert len(looker.origins.known) <= 512
    assert all(reference() is not None for reference, _ in looker.origins.known.values()) is False


def test_tensors_are_not_kept() -> None:
    import gc
    import weakref

    with advise(quiet=True):
        x = torch.ones(3, requires_grad=True)
        y = (x * 2).softmax(0)
        loss = y.log().sum()
        loss.backward()
        gone = [weakref.ref(y), weakref.ref(loss)]
        del y, loss
        gc.collect()
        assert [reference() for reference in gone] == [None, None]


def test_findings_are_sorted_by_time() -> None:
    report = Report()
    for seconds in (1.0, 3.0, 2.0):
        report.add(f"topic {seconds}", None, "", "", 1, seconds, "call")
    assert [item.seconds for item in report.items] == [3.0, 2.0, 1.0]


def test_what_it_costs_is_said() -> None:
    with advise(quiet=True) as report:
        for _ in range(50):
            torch.ones(3) + 1
    assert 0 < report.watching < report.seconds
    assert "50 operators in" in str(report)
    assert "watching them took" in str(report)


def test_on_the_command_line() -> None:
    code = "import torch; print(torch.log(torch.softmax(torch.ones(3), 0)).sum())"
    command = [sys.executable, "-m", "flambeau", "run", "--advise", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stdout == "tensor(-3.2958)\n"
    assert "a formula by hand: log(softmax(x)), float32[3]" in done.stderr
    assert "<string>:1, in <module>" in done.stderr


def test_both_tools_on_the_command_line() -> None:
    code = "import torch; torch.log(torch.softmax(torch.tensor([0., 1e4]), 0))"
    command = [sys.executable, "-m", "flambeau", "run", "--advise", "--nan-guard", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "NonFiniteError: log made 1 inf" in done.stderr
    assert "flambeau.debug.advise: " in done.stderr


def test_what_is_infinite_in_every_type_is_no_overflow() -> None:
    zeros, twelve = torch.zeros(3).half(), torch.full((3,), 12.0).half()
    with advise() as report:
        zeros.log(), torch.rsqrt(zeros), twelve / zeros
    assert not report.items
    with advise() as report:
        twelve.exp()
    assert [item.topic for item in report.items] == ["float16"]
