"""`torch.distributed` in a single process: questions, errors before there is a group, "fake"."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

import flambeau as torch
from flambeau._core.missing import NotImplementedInFlambeau
from tests.distributed.processes import run


def test_questions():
    dist = torch.distributed
    assert dist.is_available()
    assert not dist.is_initialized()
    assert dist.is_gloo_available()
    assert not dist.is_nccl_available()
    assert dist.group.WORLD is None
    assert str(dist.ReduceOp.SUM) == "RedOpType.SUM"
    assert dist.Backend("GLOO") == dist.Backend.GLOO == "gloo"


@pytest.mark.parametrize("name", ["get_rank", "get_world_size", "barrier"])
def test_what_needs_a_group_says_so(name: str):
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        getattr(torch.distributed, name)()


@pytest.mark.parametrize("name", ["nccl", "NCCL", "cuda:nccl", "cpu:gloo,cuda:nccl"])
def test_nccl_is_missing(name: str):
    store = torch.distributed.HashStore()
    with pytest.raises(RuntimeError, match=r"doesn't have NCCL built in\n.*use \"gloo\""):
        torch.distributed.init_process_group(name, store=store, rank=0, world_size=1)
    assert not torch.distributed.is_initialized()


def test_backends_that_are_missing():
    store = torch.distributed.HashStore()
    with pytest.raises(AssertionError, match="Unknown backend type nope"):
        torch.distributed.init_process_group("nope", store=store, rank=0, world_size=1)
    with pytest.raises(NotImplementedInFlambeau):
        torch.distributed.fsdp.FullyShardedDataParallel(None)


def test_local_rank(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    assert torch.distributed.get_node_local_rank(3) == 3
    with pytest.raises(RuntimeError, match="LOCAL_RANK is not in the environment"):
        torch.distributed.get_node_local_rank()
    monkeypatch.setenv("LOCAL_RANK", "2")
    assert torch.distributed.get_node_local_rank() == 2


def test_who_keeps_a_group_that_has_ended_can_meet_again_at_the_same_port():
    dist = torch.distributed
    with socket.create_server(("localhost", 0)) as listener:
        port = listener.getsockname()[1]
    kept = []
    for _ in range(3):
        where = f"tcp://localhost:{port}"
        dist.init_process_group("gloo", init_method=where, rank=0, world_size=1)
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))
        model(torch.ones(1, 2)).sum().backward()
        kept.append(model)
        dist.destroy_process_group()
    assert all(model.module.weight.grad.tolist() == [[1, 1], [1, 1]] for model in kept)


def test_fake_plays_any_rank():
    dist = torch.distributed
    dist.init_process_group("fake", rank=3, world_size=8)
    try:
        assert (dist.get_rank(), dist.get_world_size()) == (3, 8)
        x = torch.ones(4)
        dist.all_reduce(x)
        dist.reduce(x, 3, dist.ReduceOp.AVG)
        assert x.tolist() == [1, 1, 1, 1]
        assert dist.new_group([1, 3]).rank() == 1
        assert dist.new_group([1]) == dist.GroupMember.NON_GROUP_MEMBER
    finally:
        dist.destroy_process_group()
    assert not dist.is_initialized()


def test_fake_gathers_what_it_has():
    """As PyTorch's does: the others send what this process sends."""
    dist = torch.distributed
    dist.init_process_group("fake", rank=1, world_size=3)
    try:
        parts = [torch.zeros(2) for _ in range(3)]
        dist.all_gather(parts, torch.tensor([3.0, 4.0]))
        assert [part.tolist() for part in parts] == [[3, 4]] * 3
        share = torch.zeros(2)
        for operation in (dist.ReduceOp.SUM, dist.ReduceOp.AVG):
            dist.reduce_scatter_tensor(share.zero_(), torch.arange(6.0), operation)
            assert share.tolist() == [2, 3]
        out = torch.zeros(6)
        dist.all_to_all_single(out, torch.arange(6.0))
        assert out.tolist() == [0, 1, 2, 3, 4, 5]
        objects: list[object] = [None] * 3
        dist.all_gather_object(objects, {"a": 1})
        assert objects == [{"a": 1}] * 3
        dist.gather_object("b", objects, 1)
        assert objects == ["b"] * 3
        large = torch.arange(300_000.0)
        for collective in (lambda: dist.all_reduce(large), lambda: dist.reduce(large, 1)):
            collective()
            assert torch.equal(large, torch.arange(300_000.0))
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))
        model(torch.ones(1, 2)).sum().backward()
        assert torch.allclose(model.module.bias.grad, torch.full((2,), 1 / 3))
    finally:
        dist.destroy_process_group()


def test_a_gradient_that_a_hook_takes_away_counts_as_zeros():
    dist = torch.distributed
    dist.init_process_group("fake", rank=0, world_size=2)
    try:
        linear, takes = torch.nn.Linear(2, 1), [False, True]

        def take(parameter: torch.Tensor) -> None:
            if takes.pop(0):
                parameter.grad = None

        linear.bias.register_post_accumulate_grad_hook(take)
        model = torch.nn.parallel.DistributedDataParallel(linear)
        seen = []
        for _ in range(2):
            model.zero_grad()
            model(torch.ones(1, 2)).sum().backward()
            seen.append(linear.bias.grad.item())
        assert seen == [0.5, 0]
    finally:
        dist.destroy_process_group()


def test_importing_flambeau_imports_none_of_it():
    code = "import sys, flambeau; print([m for m in sys.modules if 'flambeau.distributed' in m])"
    seen = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert seen.stdout.strip() == "[]"


PARTS = """
operations = {"SUM": np.add, "PRODUCT": np.multiply, "MAX": np.maximum}
for count in (8193, 262_145, 1_048_579):
    for name, function in operations.items():
        all_of = [np.random.default_rng(rank).random(count, np.float32) for rank in range(SIZE)]
        expected = all_of[0]
        for each in all_of[1:]:
            expected = function(expected, each)
        x = torch.tensor(all_of[RANK])
        dist.all_reduce(x, getattr(dist.ReduceOp, name))
        assert np.array_equal(x.numpy(), expected), (count, name)
tell("the same bits")
"""


@pytest.mark.parametrize("shared", ["0", "1"])
@pytest.mark.parametrize("size", [2, 3])
def test_parts_are_reduced_in_the_order_of_the_ranks(size: int, shared: str):
    """In several rounds, the last of which are short, and of parts that differ in length."""
    seen = run(PARTS, size, FLAMBEAU_DISTRIBUTED_SHARED_MEMORY=shared)
    assert seen == ["the same bits"] * size


COMPUTED = """
x = torch.arange(50_000.0) + RANK
work = dist.all_reduce(x, async_op=True)
half = torch.full((3,), 0.1 * (RANK + 1), dtype=torch.bfloat16)
dist.all_reduce(half)
work.wait()
rows = torch.zeros(4, 2)
rows.t()[0] = RANK + 1.0
dist.all_reduce(rows[:, 0])
tell([x.sum().item(), half.tolist(), rows[:, 0].tolist(), rows[:, 1].tolist()])
"""


@pytest.mark.parametrize("shared", ["0", "1"])
@pytest.mark.parametrize("size", [2, 4])
def test_sums(size: int, shared: str):
    """Against numbers worked out here; not contiguous, and rounded once."""
    numbers = sum(range(50_000)) * size + 50_000 * sum(range(size))
    parts = [torch.tensor(0.1 * (rank + 1), dtype=torch.bfloat16).item() for rank in range(size)]
    half = torch.tensor(sum(parts)).bfloat16().item()
    total = float(sum(range(1, size + 1)))
    for seen in run(COMPUTED, size, FLAMBEAU_DISTRIBUTED_SHARED_MEMORY=shared):
        assert seen[0] == pytest.approx(numbers, rel=1e-5)
        assert seen[1:] == [[half] * 3, [total] * 4, [0.0] * 4]


MODULES = """
import flambeau.hook; flambeau.hook.install()
import sys
import torch.distributed
assert not {f"flambeau.distributed.{name}" for name in ("device_mesh", "tensor", "fsdp")} & {
    *sys.modules}
import torch.distributed.tensor.experimental
import torch.distributed.fsdp.wrap
from torch.distributed._tensor import DTensor, Shard, init_device_mesh
from torch.distributed._composable.fsdp import fully_shard
from torch.distributed.fsdp import FSDPModule, ShardingStrategy
from torch.distributed.fsdp._fully_shard import fully_shard as same
from torch.distributed.tensor.placement_types import Placement
assert same is fully_shard is torch.distributed.fsdp.fully_shard
assert torch.distributed.tensor.DTensor is DTensor and issubclass(Shard, Placement)
assert torch.distributed.device_mesh.init_device_mesh is torch.distributed.init_device_mesh
assert torch.distributed.tensor.experimental.local_map and torch.distributed.fsdp.wrap.wrap
from torch.distributed._tensor.experimental import implicit_replication
print(ShardingStrategy.FULL_SHARD.name)
"""


def test_modules_are_loaded_when_they_are_asked_for():
    done = subprocess.run([sys.executable, "-c", MODULES], capture_output=True, text=True,
                          check=False)  # fmt: skip
    assert done.stdout == "FULL_SHARD\n", done.stderr


def test_parts_that_lie_interleaved_can_be_asked_for() -> None:
    from flambeau.distributed.tensor.placement_types import Shard, _StridedShard

    assert not isinstance(Shard(0), _StridedShard)
    with pytest.raises(NotImplementedError, match="_StridedShard"):
        _StridedShard(0, split_factor=2)
