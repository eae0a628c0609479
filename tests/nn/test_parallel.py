"""DataParallel without GPUs runs its module; the rest says what is missing."""

import pytest

import flambeau as torch
from flambeau import nn


def test_pass_through():
    layer = nn.Linear(3, 2)
    wrapped = nn.DataParallel(layer, device_ids=[0, 1])
    x = torch.randn(4, 3)
    assert torch.equal(wrapped(x), layer(x))
    assert list(wrapped.state_dict()) == ["module.weight", "module.bias"]
    assert wrapped.device_ids == []


def test_nothing_else_works_without_gpus():
    layer = nn.Linear(1, 1)
    with pytest.raises(RuntimeError, match="device type could not be determined"):
        nn.parallel.data_parallel(layer, torch.ones(1))
    with pytest.raises(NotImplementedError, match=r"torch\.nn\.parallel\.comm\.scatter"):
        nn.parallel.scatter((torch.ones(2), 3), [0, 1])
    with pytest.raises(AssertionError, match="not implemented for CPU tensors"):
        nn.parallel.gather([torch.ones(2)], 0)
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        nn.parallel.DistributedDataParallel(layer)


def test_values_that_are_no_tensors_are_repeated():
    assert nn.parallel.scatter({"a": (1, "x")}, [0, 1]) == [{"a": (1, "x")}, {"a": (1, "x")}]
    assert nn.parallel.gather([[None], [None]], 0) == [None]
