"""torch.profiler beside PyTorch's: tables, keys, shapes, flops, memory, schedules, files."""

from __future__ import annotations

import gzip
import json
import random
import re
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import flambeau
from tests.random_seeds import generator

LIBRARIES = (torch, flambeau)
Program = Callable[[Any], Any]


# ---- programs


def arithmetic(lib: Any) -> None:
    x, y = lib.ones(3, 4), lib.ones(3, 4)
    for _ in range(3):
        z = x * y + x
    z.add_(y)
    (z - y).exp().sum()
    (z / 2).mean()


def products(lib: Any) -> None:
    a, b, c = lib.ones(3, 4), lib.ones(4, 5), lib.ones(2, 3, 4)
    a @ b
    lib.matmul(a, b)
    lib.bmm(c, c.transpose(1, 2))
    lib.addmm(lib.ones(5), a, b)
    lib.baddbmm(lib.ones(2, 3, 3), c, c.transpose(1, 2))


def backward(lib: Any) -> None:
    x = lib.ones(3, 4, requires_grad=True)
    w = lib.ones(4, 5, requires_grad=True)
    (x.mm(w).relu() * 2).sum().backward()


def network(lib: Any) -> None:
    net = lib.nn.Sequential(lib.nn.Linear(8, 16), lib.nn.ReLU(), lib.nn.Linear(16, 4))
    optimizer = lib.optim.SGD(net.parameters(), lr=0.1)
    x, y = lib.ones(5, 8), lib.tensor([0, 1, 2, 3, 0])
    for _ in range(2):
        optimizer.zero_grad()
        lib.nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()


def images(lib: Any) -> None:
    functional = lib.nn.functional
    x = lib.ones(2, 3, 8, 8)
    x = functional.conv2d(x, lib.ones(4, 3, 3, 3), lib.ones(4), stride=2, padding=1)
    functional.max_pool2d(functional.relu(x), 2)


def rows(lib: Any) -> None:
    functional = lib.nn.functional
    x = lib.ones(4, 6)
    functional.softmax(x, -1)
    functional.log_softmax(x, -1)
    functional.layer_norm(x, (6,))
    functional.gelu(x)
    functional.embedding(lib.tensor([0, 2]), x)


def moving(lib: Any) -> None:
    x = lib.ones(4, 6)
    lib.cat([x, x])
    lib.stack([x, x])
    x.t()
    x[0]
    x[1:3]
    x.reshape(3, 8)
    x.unsqueeze(0)
    x.gather(1, lib.zeros(4, 1, dtype=lib.long))
    x.cumsum(0)
    x.argmax(1)
    x.clone()
    x.sum().item()


def labelled(lib: Any) -> None:
    with lib.profiler.record_function("outer"):
        lib.ones(3)
        with lib.autograd.profiler.record_function("inner"):
            lib.ones(3).exp()


PROGRAMS: dict[str, Program] = {
    function.__name__: function
    for function in (arithmetic, products, backward, network, images, rows, moving, labelled)
}

# What PyTorch does in an operator, in steps of its own: these are no events of ours.
STEPS = frozenset((
    "aten::empty", "aten::empty_like", "aten::empty_strided", "aten::fill_", "aten::zero_",
    "aten::as_strided", "aten::as_strided_", "aten::resolve_conj", "aten::to", "aten::_to_copy",
    "aten::copy_", "aten::resize_", "aten::lift_fresh", "aten::detach_", "detach_", "aten::detach",
    "detach", "aten::result_type", "aten::ones_like",
    # `linear` is one operator here, and so is `cross_entropy`
    "autograd::engine::evaluate_function: TBackward0",
    "autograd::engine::evaluate_function: LogSoftmaxBackward0",
))  # fmt: skip

OFTEN_WITHIN = frozenset(("aten::sum", "aten::mm", "aten::cat"))
"""Operators that others are made of in PyTorch."""


def profiled(lib: Any, program: Program, **options: Any) -> Any:
    program(lib)
    with lib.profiler.profile(**options) as prof:
        program(lib)
    return prof


def outer_events(prof: Any) -> list[Any]:
    """The events that the program itself called for, and those of backward's nodes."""
    return [event for event in prof.events()
            if event.name not in STEPS and not inside_an_operator(event)]  # fmt: skip


def inside_an_operator(event: Any) -> bool:
    """Or an optimizer, which is one kernel for all parameters here."""
    parent = event.cpu_parent
    return parent is not None and parent.name.startswith(("aten::", "Optimizer."))


def inside_a_node(event: Any) -> bool:
    parent = event.cpu_parent
    return parent is not None and "Backward" in parent.name


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_events_in_the_same_order(name: str):
    found = []
    for lib in LIBRARIES:
        prof = profiled(lib, PROGRAMS[name], record_shapes=True)
        events = [e for e in outer_events(prof) if not inside_a_node(e)]
        # leaves are filled in another order, and at the end
        events = [e for e in events if "AccumulateGrad" not in e.name]
        found.append([(e.name, shapes_of(e)) for e in events])
    assert found[1] == found[0]


def shapes_of(event: Any) -> Any:
    """Nodes with several outputs have the gradients of all of them."""
    return event.input_shapes if event.name.startswith("aten::") else None


def counts(prof: Any) -> Counter[str]:
    return Counter({e.key: e.count for e in prof.key_averages()})


@pytest.mark.parametrize("name", PROGRAMS)
def test_keys_and_counts(name: str):
    theirs, ours = (counts(profiled(lib, PROGRAMS[name])) for lib in LIBRARIES)
    called = {event.name for event in outer_events(profiled(torch, PROGRAMS[name]))}
    shared = {key for key in called if key in ours and key not in OFTEN_WITHIN}
    assert {key: ours[key] for key in shared} == {key: theirs[key] for key in shared}
    assert shared


@pytest.mark.parametrize("name", ["arithmetic", "products", "backward", "network", "images"])
def test_flops(name: str):
    found = []
    for lib in LIBRARIES:
        prof = profiled(lib, PROGRAMS[name], with_flops=True)
        found.append(sum(event.flops for event in prof.events()))
    assert found[1] == found[0] > 0


@pytest.mark.parametrize("seed", range(20))
def test_flops_of_random_convolutions_and_products(seed: int):
    rng = generator(seed)
    groups = rng.choice((1, 2))
    channels, filters, kernel = 2 * rng.randint(1, 3), 2 * rng.randint(1, 3), rng.randint(1, 3)
    options = {"stride": rng.randint(1, 3), "padding": rng.randint(0, 2),
               "dilation": rng.randint(1, 2), "groups": groups}  # fmt: skip
    sizes = [rng.randint(1, 6) for _ in range(3)]

    def program(lib: Any) -> None:
        x = lib.ones(2, channels, 9, 10)
        lib.nn.functional.conv2d(x, lib.ones(filters, channels // groups, kernel, kernel),
                                 None, **options)  # fmt: skip
        lib.ones(sizes[0], sizes[1]) @ lib.ones(sizes[1], sizes[2])

    found = [
        {e.key: e.flops for e in profiled(lib, program, with_flops=True).key_averages() if e.flops}
        for lib in LIBRARIES
    ]
    assert found[1] == found[0]


@pytest.mark.parametrize("name", ["arithmetic", "products", "moving"])
def test_memory_of_operators(name: str):
    """What an operator takes for its result; PyTorch's number has its scratch memory in it, too."""
    found = []
    for lib in LIBRARIES:
        prof = profiled(lib, PROGRAMS[name], profile_memory=True)
        events = [e for e in outer_events(prof) if e.name.startswith("aten::")]
        found.append([(e.name, e.cpu_memory_usage) for e in events
                      if e.name not in ("aten::cat", "aten::stack", "aten::item")])  # fmt: skip
    assert found[1] == found[0]


# ---- tables


@pytest.mark.parametrize("options", [
    {}, {"record_shapes": True}, {"profile_memory": True}, {"with_flops": True},
    {"record_shapes": True, "profile_memory": True, "with_flops": True},
])  # fmt: skip
def test_the_columns_of_tables(options: dict[str, bool]):
    heads = []
    for lib in LIBRARIES:
        prof = profiled(lib, products, **options)
        averages = prof.key_averages(group_by_input_shape=True)
        lines = averages.table(sort_by="cpu_time_total").splitlines()
        assert lines[0] == lines[2]
        assert len({len(line) for line in lines[:-1]}) == 1
        heads.append(re.split(r"\s{2,}", lines[1].strip()))
        assert lines[-1].startswith("Self CPU time total: ")
    assert heads[1] == heads[0]


def made(lib: Any, seed: int, flops: bool = False) -> Any:
    """A list of events with random numbers, the same in both libraries; with stacks or FLOPs: with
    both, PyTorch writes each under the head of the other.
    """
    util = lib.autograd.profiler_util
    rng = random.Random(seed)
    events = []
    for number in range(30):
        start = number * 10.0 if number % 3 == 0 else events[-1].time_range.start + 1
        length = [9.0, 7.0, 3.0][number % 3] * rng.random()
        events.append(util.FunctionEvent(
            id=number, name=rng.choice(["aten::mul", "aten::add", "n" * 60]), thread=1,
            start_us=start, end_us=start + length * 10 ** rng.randint(0, 6) * (number % 3 == 0)
            + length * (number % 3 > 0),
            input_shapes=rng.choice([[[2, 3]], [[4]], []]),
            stack=[] if flops else ["p" * rng.randint(3, 90), "second"],
            cpu_memory_usage=rng.randint(-(1 << 31), 1 << 31), flops=rng.choice([0, 10, 10**7]),
            overload_name="", trace_name="x",
        ))  # fmt: skip
    found = util.EventList(events, profile_memory=True, with_flops=flops)
    found._build_tree()
    return found


@pytest.mark.parametrize("flops", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_tables_to_the_letter(seed: int, flops: bool):
    theirs, ours = (made(lib, seed, flops) for lib in LIBRARIES)
    for sort_by in (None, "self_cpu_time_total", "cpu_time_total", "cpu_time", "count",
                    "cpu_memory_usage", "self_cpu_memory_usage", "flops"):  # fmt: skip
        for options in ({}, {"row_limit": 3, "header": "A header"}, {"time_unit": "ms"},
                        {"max_name_column_width": 20, "max_shapes_column_width": 8},
                        {"max_name_column_width": None, "max_src_column_width": None},
                        {"top_level_events_only": True}):  # fmt: skip
            assert ours.table(sort_by, **options) == theirs.table(sort_by, **options)
            for groups in ({}, {"group_by_input_shapes": True}, {"group_by_stack_n": 1}):
                sums = [each.key_averages(**groups) for each in (ours, theirs)]
                assert sums[0].table(sort_by, **options) == sums[1].table(sort_by, **options)
    assert repr(ours.total_average()) == repr(theirs.total_average())
    assert repr(list(ours)) == repr(list(theirs))
    assert ours.self_cpu_time_total == theirs.self_cpu_time_total


@pytest.mark.parametrize("seed", range(3))
def test_stacks_to_the_letter(seed: int, tmp_path: Path):
    files = []
    for lib in LIBRARIES:
        path = tmp_path / lib.__name__
        made(lib, seed).export_stacks(str(path), "self_cpu_time_total")
        files.append(path.read_text())
    assert files[1] == files[0] != ""


# ---- schedules


def plan(lib: Any, rng: random.Random) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return lib.profiler.schedule(
            wait=rng.randint(0, 4), warmup=rng.randint(0, 3), active=rng.randint(1, 4),
            repeat=rng.randint(0, 3), skip_first=rng.randint(0, 4),
            skip_first_wait=rng.randint(0, 1),
        )  # fmt: skip


@pytest.mark.parametrize("seed", range(100))
def test_schedules_step_by_step(seed: int):
    theirs, ours = (plan(lib, generator(seed)) for lib in LIBRARIES)
    assert [ours(step).name for step in range(40)] == [theirs(step).name for step in range(40)]


@pytest.mark.parametrize("seed", range(12))
def test_what_each_cycle_records(seed: int):
    """Labels of the steps and the number of operators, at each call of `on_trace_ready`."""
    found = []
    for lib in LIBRARIES:
        ready: list[Any] = []

        def save(prof: Any, ready: list[Any] = ready) -> None:
            sums = {event.key: event.count for event in prof.key_averages()}
            steps = sorted(e.trace_name for e in prof.events() if "ProfilerStep" in e.name)
            ready.append((prof.step_num, sums.get("aten::add"), steps))

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            prof = lib.profiler.profile(schedule=plan(lib, generator(seed)),
                                        on_trace_ready=save, acc_events=seed % 2 == 1)  # fmt: skip
            with prof:
                for _ in range(12):
                    lib.add(lib.ones(3), lib.ones(3))
                    prof.step()
        found.append(ready)
    assert found[1] == found[0]


def test_wrong_schedules_warn_alike():
    texts = []
    for lib in LIBRARIES:
        actions = [
            getattr(lib.profiler.ProfilerAction, name)
            for name in ("WARMUP", "NONE", "RECORD", "NONE")
        ]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with lib.profiler.profile(schedule=lambda step, a=actions: a[min(step, 3)]) as prof:
                for _ in range(4):
                    prof.step()
        texts.append([str(w.message) for w in caught if "Incorrect" in str(w.message)])
    assert texts[1] == texts[0] != []


# ---- errors and words


def not_started(lib: Any) -> None:
    lib.profiler.profile().key_averages()


def no_events(lib: Any) -> None:
    lib.profiler.profile().events()


def no_trace(lib: Any) -> None:
    lib.profiler.profile().export_chrome_trace("x")


def no_activities(lib: Any) -> None:
    lib.profiler.profile(activities=[])


def twice(lib: Any) -> None:
    cpu = lib.profiler.ProfilerActivity.CPU
    lib.profiler.profile(activities=[cpu, cpu])


def bad_activity(lib: Any) -> None:
    lib.profiler.profile(activities=["cpu"])


def bad_schedule(lib: Any) -> None:
    lib.profiler.schedule(wait=-1, warmup=0, active=0)


def negative_step(lib: Any) -> None:
    lib.profiler.schedule(wait=1, warmup=1, active=1)(-1)


def stopped(lib: Any) -> None:
    lib.profiler.profile(schedule=lambda step: lib.profiler.ProfilerAction.DEVICE_STOPPED)


def reentered(lib: Any) -> None:
    prof = lib.autograd.profiler.profile()
    with prof:
        pass
    with prof:
        pass


def stacks_without(lib: Any) -> None:
    with lib.profiler.profile() as prof:
        lib.ones(3)
    prof.export_stacks("x")


def bad_metric(lib: Any) -> None:
    made(lib, 0).export_stacks("x", "time")


def bad_sort(lib: Any) -> None:
    made(lib, 0).table(sort_by="speed")


def no_tree(lib: Any) -> None:
    lib.autograd.profiler_util.EventList([]).key_averages()


def trace_only(lib: Any) -> None:
    config = (torch._C._profiler._ExperimentalConfig if lib is torch
              else flambeau.profiler._ExperimentalConfig)(trace_only=True)  # fmt: skip
    with lib.profiler.profile(experimental_config=config) as prof:
        lib.ones(3)
    prof.events()


def memory_without(lib: Any) -> None:
    with lib.profiler.profile(profile_memory=True) as prof:
        lib.ones(3)
    prof.export_memory_timeline("x.json")


def nvtx(lib: Any) -> None:
    with lib.autograd.profiler.emit_nvtx():
        pass


def only_cuda(lib: Any) -> None:
    with lib.profiler.profile(activities=[lib.profiler.ProfilerActivity.CUDA]):
        pass


@pytest.mark.parametrize("program", [
    not_started, no_events, no_trace, no_activities, twice, bad_activity, bad_schedule,
    negative_step, stopped, reentered, stacks_without, bad_metric, bad_sort, no_tree, trace_only,
    memory_without, nvtx, only_cuda,
])  # fmt: skip
def test_errors(program: Program):
    texts = []
    for lib in LIBRARIES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises(Exception) as caught:
                program(lib)
        texts.append((caught.type.__name__, str(caught.value)))
    assert texts[1] == texts[0]


def test_words():
    for name in ("ProfilerActivity", "ProfilerAction", "RecordScope", "DeviceType"):
        theirs, ours = (getattr(lib.profiler, name).__members__ for lib in LIBRARIES)
        wanted = {key: (repr(value), str(value)) for key, value in theirs.items()}
        found = {key: (repr(value), str(value)) for key, value in ours.items()}
        assert {key: found[key] for key in found} == {key: wanted[key] for key in found}
        assert name == "DeviceType" or set(found) == set(wanted)
    assert {a.name for a in flambeau.profiler.supported_activities()} == {
        a.name for a in torch.profiler.supported_activities()
    }
    for lib in LIBRARIES:
        assert repr(lib.autograd.profiler.profile()) == "<unfinished torch.autograd.profile>"
        assert lib.profiler.kineto_available()


def test_metadata_and_fields_of_traces(tmp_path: Path):
    found = []
    for lib in LIBRARIES:
        path = tmp_path / f"{lib.__name__}.json"
        with lib.profiler.profile(record_shapes=True, profile_memory=True) as prof:
            backward(lib)
            labelled(lib)
        prof.add_metadata("who", 'a "name"')
        prof.add_metadata_json("numbers", "[1, 2]")
        prof.export_chrome_trace(str(path))
        found.append(json.loads(path.read_text()))
    theirs, ours = found
    assert set(ours) >= set(theirs) - {"who", "numbers"}
    assert (ours["who"], ours["numbers"]) == ('a "name"', [1, 2])
    fields: dict[Any, set[str]] = {}
    for event in theirs["traceEvents"]:
        fields.setdefault((event["ph"], event.get("cat")), set()).update(event)
    for event in ours["traceEvents"]:
        assert set(event) <= fields[event["ph"], event.get("cat")]
    for phase in ("X", "M", "i", "s", "f"):
        assert {e.get("cat") for e in ours["traceEvents"] if e["ph"] == phase}
    arguments = next(e["args"] for e in ours["traceEvents"] if e["name"] == "aten::mm")
    same = next(e["args"] for e in theirs["traceEvents"] if e["name"] == "aten::mm")
    for key in ("Input Dims", "Input Strides", "Input type", "Concrete Inputs"):
        assert arguments[key] == same[key]


def test_compressed_traces_and_folders(tmp_path: Path):
    for lib in LIBRARIES:
        folder = tmp_path / lib.__name__ / "deep"
        handler = lib.profiler.tensorboard_trace_handler(str(folder), "me", use_gzip=True)
        with lib.profiler.profile(on_trace_ready=handler):
            arithmetic(lib)
        (file,) = folder.iterdir()
        assert re.fullmatch(r"me\.\d+\.pt\.trace\.json\.gz", file.name)
        with gzip.open(file, "rt") as text:
            names = {event["name"] for event in json.load(text)["traceEvents"]}
        assert {"aten::mul", "aten::add", "aten::add_"} <= names
