"""Smaller names that libraries take from PyTorch's files, and what they do."""

from __future__ import annotations

import importlib
import pickle
import warnings

import pytest

import flambeau as torch
from flambeau import _utils
from flambeau.distributed.algorithms._checkpoint import checkpoint_wrapper as wrappers
from flambeau.fx._compatibility import compatibility
from flambeau.nn import _reduction
from flambeau.nn.utils import parametrize
from flambeau.optim import lr_scheduler
from flambeau.utils._ordered_set import OrderedSet


@pytest.mark.parametrize("kind", list(wrappers.CheckpointImpl))
def test_a_checkpointed_module_gives_the_same_gradients_and_names(kind):
    torch.manual_seed(0)
    plain = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
    wrapped = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
    wrappers.apply_activation_checkpointing(
        wrapped,
        checkpoint_wrapper_fn=lambda layer: wrappers.checkpoint_wrapper(layer, kind),
        check_fn=lambda layer: isinstance(layer, torch.nn.Linear),
    )
    wrapped.load_state_dict(plain.state_dict())
    assert [type(layer).__name__ for layer in wrapped][::2] == ["CheckpointWrapper"] * 2
    assert list(wrapped.state_dict()) == list(plain.state_dict())
    assert [name for name, _ in wrapped[0].named_parameters()] == ["weight", "bias"]
    x = torch.randn(5, 3, requires_grad=True)
    for model in (plain, wrapped):
        model(x).square().sum().backward()
    for ours, theirs in zip(wrapped.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad)


class _Scaled(torch.nn.Module):
    def forward(self, x, *, by):
        return x * by


@pytest.mark.parametrize("kind", list(wrappers.CheckpointImpl))
def test_a_checkpointed_module_takes_named_arguments(kind):
    x = torch.ones(2, requires_grad=True)
    wrapped = wrappers.checkpoint_wrapper(_Scaled(), kind)
    wrapped(x, by=torch.tensor(3.0)).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_a_policy_sees_what_is_not_wrapped_yet():
    seen = []

    def policy(module, recurse, nonwrapped_numel):
        seen.append((type(module).__name__, recurse, nonwrapped_numel))
        return recurse or nonwrapped_numel == 6

    inner = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), inner)
    wrappers.apply_activation_checkpointing(model, auto_wrap_policy=policy)
    assert seen[-1] == ("Sequential", False, 0)
    assert seen[:3] == [("Sequential", True, 12), ("Linear", True, 6), ("Linear", False, 6)]


def test_ordered_set():
    some = OrderedSet([3, 1, 2, 3])
    assert list(some) == [3, 1, 2] and list(reversed(some)) == [2, 1, 3]
    assert list(some | [5, 3]) == [3, 1, 2, 5] and some == {1, 2, 3}
    assert list(some - [1]) == [3, 2] and list(some & {2, 3}) == [3, 2]
    assert list(some ^ [3, 7]) == [1, 2, 7]
    assert some.issubset([1, 2, 3, 4]) and some.issuperset([1]) and some.isdisjoint([9])
    assert repr(pickle.loads(pickle.dumps(some))) == "OrderedSet([3, 1, 2])"
    assert some.pop() == 2
    with pytest.raises(KeyError):
        some.remove(2)


def test_devices_as_libraries_ask_for_them():
    assert torch.get_device_module() is torch.cpu or torch.cuda.is_available()
    assert torch.get_device_module("cuda:1") is torch.cuda
    with pytest.raises(RuntimeError, match="'torch.meta'"):
        torch.get_device_module("meta")
    with pytest.raises(RuntimeError, match="Invalid value of device '3'"):
        torch.get_device_module(3)
    assert _utils._get_device_index("cuda:1") == 1
    assert _utils._get_device_index("cpu", allow_cpu=True) == -1
    assert _utils._get_device_index("cuda", optional=True) is None
    with pytest.raises(ValueError, match="Expected a non cpu device, but got: cpu"):
        _utils._get_device_index("cpu", optional=True)


def test_tensors_in_groups_of_a_size():
    sizes = [torch.ones(3), torch.ones(2, dtype=torch.int64), torch.ones(5), torch.ones(40)]
    groups = list(_utils._take_tensors(sizes, 32))
    assert [[len(t) for t in group] for group in groups] == [[3, 5], [40], [2]]


def test_shallow_copies_are_of_one_layout():
    dense, coo = torch.ones(2, 2), torch.eye(2).to_sparse()
    csr, csc = torch.eye(2).to_sparse_csr(), torch.eye(2).to_sparse_csc()
    compatible = torch._has_compatible_shallow_copy_type
    assert compatible(dense, dense.to("meta")) and compatible(coo, coo) and compatible(csr, csc)
    assert not compatible(dense, coo) and not compatible(coo, csr)


def test_reductions_as_numbers():
    assert [_reduction.get_enum(word) for word in ("none", "mean", "sum")] == [0, 1, 2]
    assert _reduction.legacy_get_enum(False, None, emit_warning=False) == 2
    with pytest.warns(UserWarning, match="please use reduction='none' instead"):
        assert _reduction.legacy_get_string(None, False) == "none"


def test_programs_may_turn_on_the_cache_of_parametrizations_themselves():
    layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 2))
    parametrize._cache_enabled += 1
    try:
        assert layer.weight is layer.weight
        assert len(parametrize._cache) == 1
    finally:
        parametrize._cache_enabled -= 1
        parametrize._cache = {}
    assert layer.weight is not layer.weight


def test_schedules_of_libraries_ask_who_calls():
    optimizer = torch.optim.SGD([torch.ones(1)], lr=0.1)
    schedule = lr_scheduler.ConstantLR(optimizer)
    with pytest.warns(UserWarning, match="please use `get_last_lr"):
        lr_scheduler._warn_get_lr_called_within_step(schedule)
    with warnings.catch_warnings(), lr_scheduler._enable_get_lr_call(schedule):
        warnings.simplefilter("error")
        lr_scheduler._warn_get_lr_called_within_step(schedule)


def test_marks_of_compatibility_are_written_down():
    @compatibility(is_backward_compatible=True)
    def function():
        """Say nothing."""

    assert function.__doc__ == (
        "Say nothing.\n\n.. note::\n    Backwards-compatibility for this API is guaranteed.\n"
    )


def test_names_of_threads():
    before = torch.multiprocessing._get_thread_name()
    torch.multiprocessing._set_thread_name("a" * 20)
    assert torch.multiprocessing._get_thread_name() in ("a" * 15, "")
    torch.multiprocessing._set_thread_name(before)


@pytest.mark.parametrize("file", ["common", "grad_scaler", "autocast_mode"])
def test_files_of_cuda_amp_have_its_names(file):
    module = importlib.import_module(f"flambeau.cuda.amp.{file}")
    for name in module.__all__:
        assert getattr(module, name) is getattr(torch.cuda.amp, name)
