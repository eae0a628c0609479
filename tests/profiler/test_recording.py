"""What a recording notes: nesting, failures, threads, kernels, memory, lines and modules."""

from __future__ import annotations

import inspect
import threading
from types import FunctionType
from typing import Any

import pytest

import flambeau as torch
from flambeau._core import modes
from flambeau._ops.table.op import LISTENERS, REGISTRY
from flambeau._runtime.launch import Kernel
from flambeau.profiler import composites, profile, record_function
from flambeau.profiler.recorder import Options, Recorder


def names(events: Any) -> list[str]:
    return [event.name for event in events]


def test_operators_nest():
    with profile() as prof:
        torch.matmul(torch.ones(2, 3), torch.ones(3, 2))
    outer = next(event for event in prof.events() if event.name == "aten::matmul")
    assert names(outer.cpu_children) == ["aten::mm"]
    (inner,) = outer.cpu_children
    assert inner.cpu_parent is outer and outer.cpu_parent is None
    assert outer.time_range.start <= inner.time_range.start
    assert inner.time_range.end <= outer.time_range.end
    assert outer.self_cpu_time_total == pytest.approx(outer.cpu_time_total - inner.cpu_time_total)


def test_self_times_sum_up_to_the_outermost():
    x = torch.ones(4, 4, requires_grad=True)
    with profile() as prof, record_function("all"):
        (x @ x).relu().sum().backward()
    events = prof.events()
    (outer,) = [event for event in events if event.cpu_parent is None]
    assert outer.name == "all"
    assert prof.events().self_cpu_time_total == pytest.approx(outer.cpu_time_total)
    assert all(event.self_cpu_time_total > -1e-6 for event in events)


def test_backward_is_named_and_numbered():
    x = torch.ones(3, requires_grad=True)
    with profile(record_shapes=True) as prof:
        (x * x).sum().backward()
    events = {event.name: event for event in reversed(prof.events())}  # the first of each name
    node = events["MulBackward0"]
    assert node.cpu_parent.name == "autograd::engine::evaluate_function: MulBackward0"
    assert node.scope == 1 and node.input_shapes == [[3]]
    assert node.sequence_nr == events["aten::mul"].sequence_nr >= 0
    assert "aten::mul" in names(node.cpu_children) or "aten::add" in names(node.cpu_children)
    leaf = events["torch::autograd::AccumulateGrad"]
    assert leaf.cpu_parent.name.endswith("evaluate_function: torch::autograd::AccumulateGrad")


def test_a_custom_function_has_its_name():
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 2

    x = torch.ones(2, requires_grad=True)
    with profile() as prof:
        Twice.apply(x).sum().backward()
    assert "TwiceBackward" in names(prof.events())


def test_in_place_and_out_have_pytorchs_names():
    x = torch.ones(3)
    with profile() as prof:
        x.add_(x)
        x += 1
        torch.add(x, x, out=torch.empty(3))
        x.clamp(min=0)
    keys = {event.key: event.count for event in prof.key_averages()}
    assert keys["aten::add_"] == 2 and keys["aten::add"] == 1 and "aten::clamp_min" in keys


def test_labels_nest_and_decorate():
    @record_function("decorated")
    def work() -> Any:
        return torch.ones(3) + 1

    with profile() as prof:
        work()
        with record_function("outer"), record_function("inner"):
            work()
    events = prof.events()
    assert names(events).count("decorated") == 2
    inner = next(event for event in events if event.name == "inner")
    assert inner.cpu_parent.name == "outer" and inner.is_user_annotation
    assert names(inner.cpu_children) == ["decorated"]


def test_a_label_outside_of_a_recording_does_nothing():
    with record_function("alone"):
        assert (torch.ones(3) + 1).tolist() == [2, 2, 2]


def test_what_raises_ends():
    with profile() as prof, record_function("around"):
        for _ in range(2):
            with pytest.raises(RuntimeError):
                torch.matmul(torch.ones(2, 3), torch.ones(2, 3))
            torch.ones(3).exp()
    events = prof.events()
    assert all(event.cpu_parent.name == "around" for event in events if event.name == "aten::exp")
    assert all(event.time_range.end >= event.time_range.start for event in events)


def test_an_operator_that_autocast_calls_again_and_that_raises_ends_once():
    with profile() as prof, record_function("around"), torch.autocast("cpu", torch.bfloat16):
        for _ in range(2):
            with pytest.raises(RuntimeError):
                torch.mm(torch.ones(2, 3), torch.ones(2, 3))
            torch.ones(3).exp()
    events = [event for event in prof.events() if event.name == "aten::exp"]
    assert [event.cpu_parent.name for event in events] == ["around", "around"]


def test_backward_that_raises_ends():
    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            raise ValueError("no gradient")

    x = torch.ones(2, requires_grad=True)
    with profile() as prof:
        with pytest.raises(ValueError, match="no gradient"):
            Fails.apply(x).sum().backward()
        torch.ones(3).exp()
    (exp,) = [event for event in prof.events() if event.name == "aten::exp"]
    assert exp.cpu_parent is None


def test_only_the_thread_that_records():
    def other() -> None:
        torch.ones(3).tanh()

    with profile() as prof:
        torch.ones(3).exp()
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert "aten::exp" in names(prof.events()) and "aten::tanh" not in names(prof.events())


def test_recordings_within_recordings():
    with profile() as outer:
        torch.ones(3).exp()
        with profile() as inner:
            torch.ones(3).tanh()
        torch.ones(3).sin()
    assert "aten::tanh" in names(inner.events()) and "aten::sin" not in names(inner.events())
    assert {"aten::exp", "aten::tanh", "aten::sin"} <= set(names(outer.events()))


def test_nothing_is_left_behind():
    bodies = {key: op.body.__code__ for key, op in REGISTRY.items()
              if isinstance(op.body, FunctionType)}  # fmt: skip
    call, active, listeners = Kernel.__call__, modes.watch.active, [*LISTENERS]
    with profile(with_stack=True, profile_memory=True):
        assert torch.matmul(torch.ones(2, 2), torch.ones(2, 2)).tolist() == [[2, 2], [2, 2]]
        assert torch.zeros(2, dtype=torch.int64).tolist() == [0, 0]
    after = {key: REGISTRY[key].body.__code__ for key in bodies}
    assert after == bodies
    assert (Kernel.__call__, modes.watch.active) == (call, active)
    assert listeners == LISTENERS and modes.stacks.observers == []


def test_results_are_the_same_while_recording():
    def run() -> Any:
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
        optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            x = torch.randn(5, 4)
            torch.einsum("ij,ik->", net(x), x.reshape(5, 4).float()).backward()
            optimizer.step()
        return [parameter.tolist() for parameter in net.parameters()]

    plain = run()
    with profile(record_shapes=True, profile_memory=True, with_stack=True, with_flops=True):
        watched = run()
    assert watched == plain


def test_memory_is_taken_and_given_back():
    with profile(profile_memory=True) as prof:
        x = torch.ones(256)
        y = x + 1
        del x
        view = y[3:]
        del y, view
    events = prof.events()
    made = {event.name: event.cpu_memory_usage for event in events if event.cpu_memory_usage > 0}
    assert made == {"aten::ones": 1024, "aten::add": 1024}
    assert [e.cpu_memory_usage for e in events if e.name == "[memory]"] == [-1024, -1024]
    assert prof.profiler.recorder.allocations.total == 0


def test_memory_within_a_label():
    with profile(profile_memory=True) as prof, record_function("work"):
        x = torch.ones(100)
        kept = x * 2
        del x
    (work,) = [event for event in prof.events() if event.name == "work"]
    assert work.cpu_memory_usage == kept.numel() * 4
    assert work.self_cpu_memory_usage == -400


def test_lines_of_the_program():
    def work(x: Any) -> Any:
        return x.exp()

    with profile(with_stack=True) as prof:
        work(torch.ones(3))
    (event,) = [event for event in prof.events() if event.name == "aten::exp"]
    number = inspect.getsourcelines(work)[1] + 1
    assert event.stack[0] == f"{__file__}({number}): work"
    assert event.stack[1].endswith("test_lines_of_the_program")
    grouped = prof.key_averages(group_by_stack_n=1)
    assert [e.stack for e in grouped if e.key == "aten::exp"] == [event.stack[:1]]


def test_backward_has_the_lines_of_forward():
    x = torch.ones(3, requires_grad=True)
    with profile(with_stack=True) as prof:
        y = x.exp()
        number = inspect.currentframe().f_lineno - 1  # type: ignore[union-attr]
        y.sum().backward()
    (node,) = [event for event in prof.events() if event.name == "ExpBackward0"]
    assert f"({number})" in node.stack[0]


def test_modules_are_stretches_of_the_recording():
    net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU(), torch.nn.Linear(3, 3))
    with profile(with_modules=True) as prof:
        net(torch.ones(2, 3))
        net(torch.ones(2, 3))
    events = [event for event in prof.events() if event.name.startswith("nn.Module")]
    assert names(events[:4]) == ["nn.Module: Sequential_0", "nn.Module: Linear_0",
                                 "nn.Module: ReLU_0", "nn.Module: Linear_1"]  # fmt: skip
    assert names(events[4:]) == names(events[:4])
    assert names(events[1].cpu_children) == ["aten::linear"]


def test_a_module_that_raises_is_left():
    class Fails(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            raise ValueError("no")

    with profile(with_modules=True) as prof:
        with pytest.raises(ValueError, match="no"):
            Fails()(torch.ones(3))
        torch.ones(3).exp()
    (exp,) = [event for event in prof.events() if event.name == "aten::exp"]
    assert exp.cpu_parent is None


def test_optimizers_and_loaders_are_labelled():
    data = torch.utils.data.TensorDataset(torch.ones(4, 2))
    parameter = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([parameter], lr=0.1)
    with profile() as prof:
        for (batch,) in torch.utils.data.DataLoader(data, batch_size=2):
            optimizer.zero_grad()
            (batch * parameter).sum().backward()
            optimizer.step()
    keys = {event.key: event.count for event in prof.key_averages()}
    assert keys["Optimizer.step#SGD.step"] == keys["Optimizer.zero_grad#SGD.zero_grad"] == 2
    assert keys["enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"] == 3


def test_kernels_stand_beside_their_operator():
    pytest.importorskip("llvmlite")
    x = torch.ones(400, 400)
    x.exp()
    with profile() as prof:
        y = torch.nn.functional.gelu(x)
    (event,) = [event for event in prof.events() if event.name == "aten::gelu"]
    assert y.shape == x.shape
    assert all(0 <= kernel.duration <= event.cpu_time_total for kernel in event.kernels)
    assert event.kernels, "no kernel for 160,000 elements"
    with profile() as prof:
        x @ x
    (event,) = [event for event in prof.events() if event.name == "aten::mm"]
    assert event.kernels


def test_the_limit_of_records():
    recorder = Recorder(Options(limit=5))
    recorder.start()
    for _ in range(10):
        torch.ones(3).exp()
    recorder.stop()
    assert len(recorder.records) == 5 and recorder.dropped == 15
    assert all(record.end >= record.start > 0 for record in recorder.records)


def test_autocast_shows_an_operator_once():
    x = torch.ones(4, 4)
    with torch.autocast("cpu", torch.bfloat16), profile() as prof:
        torch.mm(x, x)
    assert names(prof.events()).count("aten::mm") == 1


@pytest.mark.parametrize("part", ["composites", "parts"])
def test_a_start_that_was_interrupted_leaves_nothing_on(
    part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody would stop a recording that never began. What stays on is found after the test."""
    code = torch.matmul.__code__
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        if part == "composites":
            patched.setattr(composites, "METHODS", ("copy_", Interrupts()))
        else:
            patched.setattr("flambeau.profiler.recorder.perf_counter_ns", interrupt)
        with profile():
            pass
    assert torch.matmul.__code__ is code
    with profile() as prof:
        torch.matmul(torch.ones(2, 3), torch.ones(3, 2))
    assert "aten::matmul" in names(prof.events())
    assert torch.matmul.__code__ is code


class Interrupts:
    """A name at whose use a signal's handler raises."""

    def __hash__(self) -> int:
        raise KeyboardInterrupt


def interrupt(calls: list[None] = []) -> int:  # noqa: B006  what is read when it stops counts
    """The clock, when the first reader is interrupted."""
    calls.append(None)
    if len(calls) == 1:
        raise KeyboardInterrupt
    return 0
