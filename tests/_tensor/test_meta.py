"""Tensors on the device "meta": a shape and a type, without memory."""

import copy
import gc
import io
import pickle

import numpy as np
import pytest

import flambeau as torch
from flambeau._core import modes


@pytest.fixture(autouse=True)
def nothing_left():
    """What cycles hold goes with the test: a tensor without memory keeps calls under watch."""
    yield
    gc.collect()


def meta(*shape, **words):
    return torch.empty(*shape, device="meta", **words)


def test_a_tensor_larger_than_memory_takes_none():
    x = meta(1 << 16, 1 << 16).expand(64, -1, -1)
    assert x.untyped_storage().nbytes() == 1 << 34
    assert (x * 2)[0].T.shape == (1 << 16, 1 << 16)


def test_calls_are_looked_at_only_while_there_are_such_tensors():
    before = modes.watch.active, modes.watch.results
    x = meta(3)
    y = x[1:]
    assert modes.watch.active == before[0] + 1
    del x
    assert modes.watch.active == before[0] + 1
    del y
    assert (modes.watch.active, modes.watch.results) == before


def test_a_tensor_beyond_all_addresses_leaves_the_count_as_it_was():
    before = modes.watch.active, modes.watch.results
    with pytest.raises((OSError, RuntimeError)):
        meta(1 << 60)
    gc.collect()
    assert (modes.watch.active, modes.watch.results) == before
    assert torch.ones(2).to("meta").is_meta


def test_numbers_are_refused():
    x = meta(2, 2)
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor; no data!"):
        x.cpu()
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor; no data!"):
        torch.ones(2, 2).copy_(x)
    with pytest.raises(RuntimeError, match=r"Tensor.item\(\) cannot be called on meta tensors"):
        x[0, 0].item()
    with pytest.raises(RuntimeError, match=r"Tensor.item\(\) cannot be called on meta tensors"):
        bool(x[0, 0])
    with pytest.raises(TypeError, match="can't convert meta device type tensor to numpy"):
        x.numpy()
    with pytest.raises(TypeError, match="can't convert meta device type tensor to numpy"):
        np.asarray(x)


@pytest.mark.parametrize("name", ["nonzero", "unique", "bincount"])
def test_shapes_that_depend_on_numbers_are_refused(name):
    with pytest.raises(NotImplementedError, match="depends on the numbers"):
        getattr(torch, name)(meta(3, dtype=torch.int64))
    with pytest.raises(NotImplementedError, match="depends on the numbers"):
        meta(3)[meta(3) > 0]


def test_random_numbers_of_others_are_left_alone():
    torch.manual_seed(3)
    want = torch.rand(2)
    torch.manual_seed(3)
    x = torch.rand(5, device="meta").normal_()
    torch.bernoulli(x)
    torch.nn.functional.dropout(x, 0.5)
    torch.nn.Linear(4, 4, device="meta")
    assert torch.rand(2).equal(want)


def test_gradients_are_without_memory_too():
    w = torch.nn.Linear(4, 3, device="meta")
    w(meta(2, 4)).relu().sum().backward()
    assert w.weight.grad.is_meta
    assert w.weight.grad.shape == (3, 4)


def test_the_default_device():
    with torch.device("meta"):
        model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4))
        assert torch.tensor([1.0]).is_meta
    assert all(value.is_meta for value in model.state_dict().values())
    assert not torch.zeros(2).is_meta
    assert model(meta(2, 3, 8, 8)).shape == (2, 4, 6, 6)


def test_modules_get_memory_afterwards():
    model = torch.nn.Linear(2, 3, device="meta")
    with pytest.raises(NotImplementedError, match="to_empty"):
        model.to("cpu")
    given = torch.nn.Linear(2, 3)
    with pytest.warns(UserWarning, match="which is a no-op"):
        model.load_state_dict(given.state_dict())
    assert model.weight.is_meta
    model.load_state_dict(given.state_dict(), assign=True)
    assert model.weight.equal(given.weight)
    assert torch.nn.Linear(2, 3, device="meta").to_empty(device="cpu").weight.device.type == "cpu"


def test_files_hold_the_shape():
    x = meta(3, 4, dtype=torch.bfloat16).T
    file = io.BytesIO()
    torch.save({"x": x}, file)
    file.seek(0)
    for y in (torch.load(file)["x"], pickle.loads(pickle.dumps(x)), copy.deepcopy(x)):
        assert (y.shape, y.stride(), y.dtype) == (x.shape, x.stride(), x.dtype)
        assert y.is_meta
    torch.save(torch.ones(2, 3), file := io.BytesIO())
    file.seek(0)
    assert torch.load(file, map_location="meta").is_meta


def test_writes_are_checked_and_counted():
    x = meta(2, 3)
    x.add_(meta(3)).copy_(torch.ones(2, 3))
    x[0] = 1
    assert x._version == 3
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        meta(3).add_(meta(2, 3))
    with pytest.raises(RuntimeError, match="is not on the expected device"):
        x + torch.ones(2, 3)
    assert (x + torch.tensor(1.0)).is_meta
    assert torch.add(x, x, out=meta(2, 3)).is_meta
