"""Fake tensors: shapes, strides, types and devices without memory."""

from __future__ import annotations

import gc

import pytest

import flambeau as torch
from flambeau._guards import active_fake_mode, detect_fake_mode
from flambeau._subclasses import fake_tensor as fakes


@pytest.fixture
def mode() -> fakes.FakeTensorMode:
    return fakes.FakeTensorMode()


def test_a_gpu_need_not_be_there(mode: fakes.FakeTensorMode) -> None:
    with mode:
        x = torch.empty(2, 3, device="cuda")
        y = x @ x.T
    assert isinstance(y, fakes.FakeTensor)
    assert (y.shape, y.stride(), y.dtype) == ((2, 2), (2, 1), torch.float32)
    assert y.device == torch.device("cuda:0")
    assert y.is_cuda


def test_large_tensors_take_no_memory(mode: fakes.FakeTensorMode) -> None:
    with mode:
        x = torch.ones(1 << 40)
        assert (x + 1).view(-1, 2).t().shape == (2, 1 << 39)


def test_views_share_storage_and_versions(mode: fakes.FakeTensorMode) -> None:
    with mode:
        base = torch.zeros(4, 5)
        part = base[1:].t()
        part.add_(1)
    assert (part.storage_offset(), part.stride(), part._base is base) == (5, (1, 5), True)
    assert base._version == part._version == 1


def test_training(mode: fakes.FakeTensorMode) -> None:
    with mode:
        model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.LSTM(4, 2))
        optimizer = torch.optim.AdamW(model.parameters(), 0.1)
        model(torch.ones(5, 1, 3))[0].sum().backward()
        optimizer.step()
    for parameter in model.parameters():
        assert isinstance(parameter, torch.nn.Parameter)
        assert parameter.grad.shape == parameter.shape
    del model, optimizer, parameter
    gc.collect()


def test_what_only_numbers_tell_is_refused(mode: fakes.FakeTensorMode) -> None:
    with mode:
        x = torch.ones(3)
        with pytest.raises(fakes.DataDependentOutputException) as caught:
            x.sum().item()
        assert str(caught.value.func) == "aten._local_scalar_dense.default"
        with pytest.raises(fakes.DynamicOutputShapeException) as shape:
            x.nonzero()
        assert str(shape.value.func) == "aten.nonzero.default"
        assert torch.tensor(3).add(1).item() == 4  # single numbers are known
    del caught, shape, x
    gc.collect()


def test_devices_do_not_mix(mode: fakes.FakeTensorMode) -> None:
    with mode:
        x = torch.ones(2, device="cuda")
        assert (x * torch.ones(())).device == x.device
        with pytest.raises(fakes.FakeTensorDeviceMismatchError, match="cuda:0 and cpu!"):
            x + torch.ones(2)


def test_real_tensors_are_converted_once(mode: fakes.FakeTensorMode) -> None:
    real = torch.nn.Parameter(torch.ones(2, 3).t())
    fake = mode.from_tensor(real)
    assert mode.from_tensor(real) is fake
    assert (fake.shape, fake.stride(), fake.requires_grad) == ((3, 2), (1, 3), True)
    assert isinstance(fake, torch.nn.Parameter)
    key = id(real)
    del real
    assert key not in mode._known


def test_real_and_fake_do_not_mix(mode: fakes.FakeTensorMode) -> None:
    real = torch.ones(3)
    with pytest.raises(AssertionError, match="Please convert all Tensors to FakeTensors first"):
        mode.from_tensor(real) + real
    lenient = fakes.FakeTensorMode(allow_non_fake_inputs=True)
    assert fakes.is_fake(lenient.from_tensor(real) + real)
    with pytest.raises(AssertionError, match="Mixing fake modes"):
        mode.from_tensor(real) + lenient.from_tensor(real)


def test_modes_are_found(mode: fakes.FakeTensorMode) -> None:
    fake = mode.from_tensor(torch.ones(2))
    assert detect_fake_mode([1, {"x": fake}]) is mode
    assert detect_fake_mode([torch.ones(1)]) is None
    with mode:
        assert active_fake_mode() is mode
        with fakes.unset_fake_temporarily() as unset:
            assert unset is mode
            assert torch.ones(2).tolist() == [1, 1]


def test_operators_of_programs_say_what_they_would_give(mode: fakes.FakeTensorMode) -> None:
    @torch.library.custom_op("fakes_test::halved", mutates_args=())
    def halved(x: torch.Tensor) -> torch.Tensor:
        return x[: len(x) // 2].clone()

    halved.register_fake(lambda x: x.new_empty(len(x) // 2))
    with mode:
        assert halved(torch.ones(6, device="cuda")).shape == (3,)
