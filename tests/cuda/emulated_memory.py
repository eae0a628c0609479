"""Facts about GPU memory, streams, events and graphs; `test_emulation` runs them as it does those
of `emulated.py`."""

from __future__ import annotations

import gc
import json
import pickle
import tempfile
import traceback
from pathlib import Path
from typing import Any

import flambeau as torch

cuda = torch.cuda


def message(error: type[BaseException], call: Any) -> str:
    """The first line of the error that a call raises."""
    try:
        call()
    except error as found:
        return str(found).split("\n")[0]
    raise AssertionError("no error")


def a_stream_of_a_pool_comes_again() -> None:
    handles = [cuda.Stream().cuda_stream for _ in range(33)]
    assert len(set(handles)) == 32 and handles[0] == handles[32]
    assert cuda.Stream(priority=-9).priority == cuda.Stream.priority_range()[1] == -3
    assert cuda.Stream(priority=-1).priority == -1 and cuda.Stream(priority=4).priority == 0


def streams_know_their_device_and_are_current_in_their_block() -> None:
    s = cuda.Stream()
    assert s.device == torch.device("cuda:0") and s.device_index == 0 and s.device_type == 1
    assert repr(s) == f"<torch.cuda.Stream device=cuda:0 cuda_stream={s.cuda_stream:#x}>"
    before = cuda.current_stream()
    with cuda.stream(s), cuda.stream(None):
        assert cuda.current_stream() == s != before
        with s:
            assert cuda.current_stream() == s
    assert cuda.current_stream() == before == cuda.default_stream()
    assert cuda.ExternalStream(s.cuda_stream) == s and len({s, cuda.default_stream(), before}) == 2
    cuda.set_stream(s)
    assert cuda.current_stream() == s
    cuda.set_stream(before)


def threads_have_streams_of_their_own() -> None:
    import threading

    seen = []
    with cuda.stream(cuda.Stream()):
        thread = threading.Thread(target=lambda: seen.append(cuda.current_stream()))
        thread.start()
        thread.join()
    assert seen == [cuda.default_stream()]


def events_order_streams() -> None:
    s, e = cuda.Stream(), cuda.Event()
    assert e.query() and repr(e) == "<torch.cuda.Event uninitialized>"
    x = torch.zeros(1000, device="cuda")
    s.wait_stream(cuda.current_stream())
    with cuda.stream(s):
        x += 1
        e.record()
    e.wait()
    x *= 3
    assert x[0].item() == 3 and s.record_event().query() in (True, False)
    e.synchronize()
    assert e.query() and e.cuda_event and e.device == torch.device("cuda:0")
    shared = cuda.Event(interprocess=True)
    shared.record()
    assert len(shared.ipc_handle()) == 64
    assert isinstance(s, torch.Stream) and isinstance(torch.Stream("cuda"), cuda.Stream)
    assert isinstance(torch.Event(), cuda.Event) and not torch.Stream("cpu").device_type
    late = cuda.Event(enable_timing=True)
    both = "Both events must be recorded before calculating elapsed time."
    assert message(ValueError, lambda: late.elapsed_time(late)) == both


def a_recorded_stream_keeps_memory() -> None:
    s = cuda.Stream()
    x = torch.ones(1 << 20, device="cuda")
    s.wait_stream(cuda.current_stream())
    with cuda.stream(s):
        y = x[5:] + 1
    x.record_stream(s)
    del x
    assert y.sum().item() == 2 * (2**20 - 5)
    cpu = message(NotImplementedError, lambda: torch.ones(1).record_stream(s))
    assert cpu.startswith("Could not run 'aten::record_stream' with arguments from the 'CPU'")


def a_snapshot_lists_segments_and_blocks() -> None:
    gc.collect()
    cuda.empty_cache()
    x = torch.empty(1000, device="cuda")
    (segment,) = [s for s in cuda.memory_snapshot() if any(
        b["address"] == x.data_ptr() for b in s["blocks"])]  # fmt: skip
    assert segment["segment_type"] == "small" and segment["total_size"] == 2 << 20
    block = next(b for b in segment["blocks"] if b["address"] == x.data_ptr())
    assert (block["size"], block["requested_size"]) == (4096, 4000)
    assert block["state"] == "active_allocated"
    assert sum(b["size"] for b in segment["blocks"]) == segment["total_size"]
    assert {"device", "address", "stream", "frames", "segment_pool_id"} <= set(segment)


def history_says_who_took_memory() -> None:
    old = torch.empty(300, device="cuda")
    cuda.memory._record_memory_history(max_entries=100)
    x = torch.empty(5 << 20, device="cuda")
    address, earlier = x.data_ptr(), old.data_ptr()
    del x, old
    found = cuda.memory._snapshot()
    cuda.memory._record_memory_history(enabled=None)
    (events,) = found["device_traces"]
    mine = [e["action"] for e in events if e["addr"] == address and "segment" not in e["action"]]
    assert mine == ["alloc", "free_requested", "free_completed"]
    assert [e["action"] for e in events if e["addr"] == earlier][:1] == ["free_requested"]
    taken = next(e for e in events if e["addr"] == address and e["action"] == "alloc")
    assert taken["frames"][0]["name"] == "history_says_who_took_memory"
    assert taken["size"] == 20 << 20 and taken["time_us"] > 0
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "snapshot.pickle"
        cuda.memory._dump_snapshot(str(file))
        assert set(pickle.loads(file.read_bytes())) >= {"segments", "device_traces"}
    assert "'state', 'all', or None" in message(
        RuntimeError, lambda: cuda.memory._record_memory_history(enabled="much"))  # fmt: skip


def memory_for_other_libraries() -> None:
    before = cuda.memory_allocated()
    address = cuda.caching_allocator_alloc(1000)
    assert address % 512 == 0 and cuda.memory_allocated() - before == 1024
    cuda.caching_allocator_delete(address)
    assert cuda.memory_allocated() == before
    assert "invalid device pointer" in message(
        RuntimeError, lambda: cuda.caching_allocator_delete(address))  # fmt: skip
    with cuda.memory.caching_allocator_disabled():
        del_me = torch.empty(30 << 18, device="cuda")
        reserved = cuda.memory_reserved()
        del del_me
        assert reserved - cuda.memory_reserved() == 30 << 20


def pools_of_users() -> None:
    pool = cuda.MemPool()
    with cuda.use_mem_pool(pool):
        x = torch.empty(1000, device="cuda")
        assert pool.use_count() == 2
    y = torch.empty(1000, device="cuda")
    assert pool.use_count() == 1 and len(pool.snapshot()) == 1
    inside = pool.snapshot()[0]
    assert inside["address"] <= x.data_ptr() < inside["address"] + inside["total_size"]
    assert not inside["address"] <= y.data_ptr() < inside["address"] + inside["total_size"]
    assert inside["segment_pool_id"] == pool.id


def limits_of_memory() -> None:
    total = cuda.get_device_properties(0).total_memory
    cuda.set_per_process_memory_fraction(0.001)
    text = message(torch.OutOfMemoryError, lambda: torch.empty(1 << 28, device="cuda"))
    cuda.set_per_process_memory_fraction(1.0)
    assert text.startswith("CUDA out of memory. Tried to allocate 1024.00 MiB. GPU 0 has a total")
    assert f"{total * 0.001 / 2**20:.2f} MiB allowed; Of the allocated memory" in text
    assert cuda.get_per_process_memory_fraction() == 1.0
    wrong = message(ValueError, lambda: cuda.set_per_process_memory_fraction(1.5))
    assert wrong == "Invalid fraction value: 1.5. Allowed range: 0~1"
    assert torch.cuda.OutOfMemoryError is torch.OutOfMemoryError
    assert cuda.memory_stats()["num_ooms"] >= 1


def a_graph_repeats_its_work() -> None:
    x, g = torch.zeros(4, device="cuda"), cuda.CUDAGraph()
    with cuda.graph(g):
        assert cuda.is_current_stream_capturing()
        y = x * 2 + 1
        z = y - 3
    assert not cuda.is_current_stream_capturing()
    for number in (3.0, 5.0):
        x.fill_(number)
        g.replay()
        assert y.tolist() == [number * 2 + 1] * 4 and z.tolist() == [number * 2 - 2] * 4
    assert isinstance(g.pool(), tuple)
    other = cuda.CUDAGraph()
    with cuda.graph(other, pool=g.pool()):
        w = z + 1
    other.replay()
    assert w.tolist() == [9.0] * 4
    g.reset()


def memory_of_a_graph_stays_its_own() -> None:
    x, g = torch.zeros(1000, device="cuda"), cuda.CUDAGraph()
    with cuda.graph(g):
        y = (x + 1) * 2
    inside = {s["address"] for s in cuda.memory_snapshot() if s["segment_pool_id"] == g.pool()}
    assert inside
    others = [torch.empty(1000, device="cuda") for _ in range(20)]
    spans = [s for s in cuda.memory_snapshot() if s["address"] in inside]
    assert not any(s["address"] <= t.data_ptr() < s["address"] + s["total_size"]
                   for t in others for s in spans)  # fmt: skip
    g.replay()
    assert y[0].item() == 2
    del y
    g.reset()
    cuda.empty_cache()
    assert not inside & {s["address"] for s in cuda.memory_snapshot()}


def memory_that_other_streams_use_may_be_given_back_in_a_capture() -> None:
    s, g = cuda.Stream(), cuda.CUDAGraph()
    x, y = torch.ones(5000, device="cuda"), torch.zeros(5, device="cuda")
    x.record_stream(s)
    with cuda.graph(g):
        y += 1
        del x
    torch.empty(777, device="cuda")
    g.replay()
    assert y.tolist() == [1] * 5
    cuda.synchronize()
    cuda.empty_cache()
    assert cuda.memory_stats()["active_bytes.all.current"] == cuda.memory_allocated()


def what_a_graph_cannot_hold() -> None:
    def item() -> None:
        with cuda.graph(cuda.CUDAGraph()):
            torch.ones(2, device="cuda")[0].item()

    def default() -> None:
        cuda.CUDAGraph().capture_begin()

    failed = "CUDA error: operation failed due to a previous error during capture"
    assert message(torch.AcceleratorError, item) == failed
    assert message(RuntimeError, default).startswith("CUDA graphs must be captured on a non-def")
    empty = message(RuntimeError, cuda.CUDAGraph().replay)
    assert empty == "Called CUDAGraph::replay without a preceding successful capture."
    assert torch.ones(2, device="cuda").sum().item() == 2


def kept_graphs_are_instantiated_again() -> None:
    g, x = cuda.CUDAGraph(keep_graph=True), torch.zeros(2, device="cuda")
    with cuda.graph(g):
        x += 1
    assert g.raw_cuda_graph() and "until instantiate() has been called" in message(
        RuntimeError, g.raw_cuda_graph_exec)  # fmt: skip
    g.replay()
    g.instantiate()
    g.replay()
    assert x.tolist() == [2, 2] and g.raw_cuda_graph_exec()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "graph.dot"
        g.debug_dump(str(file))
        assert file.read_text(encoding="utf-8").startswith("digraph {")


def graphed_callables_learn() -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    model.cuda()
    twin = pickle.loads(pickle.dumps(model))
    x = torch.randn(3, 4, device="cuda")
    graphed = cuda.make_graphed_callables(model, (x.clone(),))
    for net in (graphed, twin):
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for step in range(3):
            optimizer.zero_grad(set_to_none=False)
            (net(x + step) ** 2).sum().backward()
            optimizer.step()
    for ours, theirs in zip(model.parameters(), twin.parameters(), strict=True):
        assert torch.allclose(ours, theirs, atol=1e-6)


def waits_can_be_told() -> None:
    import warnings

    x = torch.ones(2, device="cuda")
    assert cuda.get_sync_debug_mode() == 0
    cuda.set_sync_debug_mode("warn")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        x[0].item()
    cuda.set_sync_debug_mode("error")
    text = "called a synchronizing CUDA operation"
    assert message(RuntimeError, lambda: x[0].item()) == text
    cuda.set_sync_debug_mode(0)
    assert [str(w.message) for w in caught] == [text] and x[0].item() == 1
    assert "expected one of" in message(RuntimeError, lambda: cuda.set_sync_debug_mode("x"))


def pinned_memory_is_counted_and_kept() -> None:
    before = cuda.host_memory_stats()["active_bytes.current"]
    x = torch.empty(1000, pin_memory=True)
    assert x.is_pinned() and x[3:].is_pinned() and x.untyped_storage().is_pinned()
    assert cuda.host_memory_stats()["active_bytes.current"] - before == 4096
    x.fill_(2)
    y = x.to("cuda", non_blocking=True)
    del x
    other = torch.empty(1000, pin_memory=True).fill_(9)
    assert y.sum().item() == 2000 and other.is_pinned()
    assert torch.tensor([1.0], pin_memory=True).is_pinned()
    assert "Only dense CPU tensors can be pinned" in message(
        RuntimeError, lambda: torch.ones(2, device="cuda", pin_memory=True))  # fmt: skip


FACTS = {
    name: value for name, value in list(globals().items())
    if callable(value) and getattr(value, "__module__", "") == __name__ and name != "message"
}  # fmt: skip


def main() -> None:
    failures = {}
    for name, fact in FACTS.items():
        try:
            fact()
        except Exception:
            failures[name] = traceback.format_exc(limit=-4)
    print(json.dumps(failures))


if __name__ == "__main__":
    main()
