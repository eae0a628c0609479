"""`nn.parallel` on a machine without GPUs: pass-through, and the same errors as PyTorch's."""

from __future__ import annotations

import collections
import io
from typing import Any

import pytest
import torch as reference

import flambeau
from conformance.side_by_side import attempt, compare

Pair = collections.namedtuple("Pair", "a b")

pytestmark = pytest.mark.skipif(
    reference.cuda.is_available(), reason="the oracle uses the GPUs of this machine"
)


@pytest.mark.parametrize("options", [{}, {"device_ids": [0, 1], "output_device": 1, "dim": 2}])
def test_data_parallel_passes_through(options: dict[str, Any]):
    def scenario(torch: Any) -> Any:
        net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
        wrapped = torch.nn.DataParallel(net, **options)
        x = torch.randn(5, 3)
        output = wrapped(x)
        (output**3).sum().backward()
        again = torch.nn.DataParallel(net)
        again.load_state_dict(wrapped.state_dict())
        return [
            output, str(wrapped), list(wrapped.state_dict()), wrapped.module is net,
            wrapped.device_ids, sorted(vars(wrapped)), [p.grad for p in wrapped.parameters()],
            net.load_state_dict(wrapped.module.state_dict()), wrapped.eval()(x),
            attempt(net.load_state_dict, wrapped.state_dict()),
            attempt(wrapped, x, x), attempt(wrapped, input=x),
        ]  # fmt: skip

    compare(scenario, rtol=1e-3, atol=1e-5)


def test_methods_and_functions():
    def scenario(torch: Any) -> Any:
        P, nn = torch.nn.parallel, torch.nn
        x, linear, relu = torch.randn(4, 2), nn.Linear(2, 2), nn.ReLU()
        wrapped = nn.DataParallel(linear)
        calls = [
            (wrapped.replicate, linear, []), (wrapped.scatter, (x,), {}, [0]),
            (wrapped.gather, [x], 0), (nn.DataParallel, 3),
            (P.data_parallel, linear, x), (P.data_parallel, linear, None, [0]),
            (P.scatter, (3, "a"), [0, 1]), (P.scatter, [3, "a"], [0, 1]), (P.scatter, 5, [0, 1]),
            (P.scatter, {"a": 3, "b": [1, (2,)]}, [0, 1]), (P.scatter, [], [0, 1]),
            (P.scatter, {}, [0]), (P.scatter, Pair(1, (2, 3)), [0, 1]), (P.scatter, None, [0]),
            (P.gather, [None, None], 0), (P.gather, [{"a": None}, {"a": None}], 0),
            (P.gather, [{"a": x}, {}], 0), (P.gather, [(None,), (None,)], 0), (P.gather, [3, 4], 0),
            (P.gather, [x, x], 0), (P.gather, [x], "cpu"), (P.gather, [[x]], 0),
            (P.gather, [Pair(None, [None]), Pair(None, [None])], 0),
            (P.replicate, linear, [0, 1]), (P.replicate, linear, ["cpu"]),
            (P.replicate, linear, []), (P.replicate, nn.Sequential(relu, relu), [0, 1]),
            (P.parallel_apply, [relu], [x, x]), (P.parallel_apply, [relu], [x], [{}, {}]),
            (P.parallel_apply, [relu], [x], None, [0, 1]), (P.parallel_apply, [], []),
            (P.parallel_apply, [relu], [x], None, ["cpu"]), (P.parallel_apply, [relu], [x]),
            (P.parallel_apply, [relu], [x], [{}], [0]),
        ]  # fmt: skip
        return [attempt(*entry) for entry in calls]

    compare(scenario)


def test_replicas_of_modules_without_tensors():
    def scenario(torch: Any) -> Any:
        relu = torch.nn.ReLU()
        net = torch.nn.Sequential(relu, torch.nn.Sequential(relu, torch.nn.Tanh()))
        net.name = "net"
        copies = torch.nn.parallel.replicate(net, [0, 1])
        return [
            len(copies), copies[0] is not net, copies[0][0] is copies[0][1][0],
            copies[0][0] is not copies[1][0], copies[1].name, copies[0]._is_replica,
            copies[0](torch.randn(3)), hasattr(net, "_is_replica"),
        ]  # fmt: skip

    compare(scenario)


@pytest.mark.parametrize("name", ["scatter", "broadcast", "broadcast_coalesced", "gather"])
def test_communication_is_missing_in_both(name: str):
    """Torch's build without CUDA lacks it too: both raise an AttributeError."""
    for torch in (flambeau, reference):
        x = torch.randn(2)
        arguments = {"gather": ([x], 0), "broadcast_coalesced": ([x], [0])}.get(name, (x, [0]))
        with pytest.raises(AttributeError):
            getattr(torch.nn.parallel.comm, name)(*arguments)


@pytest.mark.parametrize("writer", ["torch", "flambeau"])
def test_checkpoints_and_whole_modules(writer: str):
    libraries = [reference, flambeau] if writer == "torch" else [flambeau, reference]
    net = libraries[0].nn.DataParallel(libraries[0].nn.Linear(2, 2))
    state, whole = io.BytesIO(), io.BytesIO()
    libraries[0].save(net.state_dict(), state)
    libraries[0].save(net, whole)
    state.seek(0), whole.seek(0)
    other = libraries[1].nn.DataParallel(libraries[1].nn.Linear(2, 2))
    other.load_state_dict(libraries[1].load(state))
    loaded = libraries[1].load(whole, weights_only=False)
    expected = net(libraries[0].ones(1, 2)).tolist()[0]
    for module in (other, loaded):
        assert module(libraries[1].ones(1, 2)).tolist()[0] == pytest.approx(expected, rel=1e-5)


def test_distributed_is_named():
    from flambeau.nn.parallel import DistributedDataParallel

    assert not isinstance(flambeau.nn.Linear(1, 1), DistributedDataParallel)
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        DistributedDataParallel(flambeau.nn.Linear(1, 1))
