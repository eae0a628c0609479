"""`torch.distributed` in a single process: questions are answered, the rest is refused."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau._core.missing import NotImplementedInFlambeau


def test_questions():
    dist = torch.distributed
    assert not dist.is_available()
    assert not dist.is_initialized()
    assert not dist.is_nccl_available()
    assert dist.group.WORLD is None
    assert str(dist.ReduceOp.SUM) == "RedOpType.SUM"
    assert dist.Backend("GLOO") == dist.Backend.GLOO == "gloo"


@pytest.mark.parametrize("name", ["get_rank", "get_world_size", "barrier", "all_reduce"])
def test_what_needs_a_group_says_so(name: str):
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        getattr(torch.distributed, name)()


def test_groups_are_missing_by_name():
    with pytest.raises(NotImplementedInFlambeau, match=r"torch\.distributed\.init_process_group"):
        torch.distributed.init_process_group("gloo")
    with pytest.raises(NotImplementedInFlambeau, match=r"torch\.distributed\.init_process_group"):
        torch.distributed.ProcessGroup()


def test_local_rank(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    assert torch.distributed.get_node_local_rank(3) == 3
    with pytest.raises(RuntimeError, match="LOCAL_RANK is not in the environment"):
        torch.distributed.get_node_local_rank()
    monkeypatch.setenv("LOCAL_RANK", "2")
    assert torch.distributed.get_node_local_rank() == 2
