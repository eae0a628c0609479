"""Communication hooks and averages that one process, or two, can judge by themselves."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau.distributed import _functional_collectives as funcol
from flambeau.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as power
from tests.distributed.processes import Processes

SQUARE = """
from flambeau.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as power
def gradients(hook, rank):
    torch.manual_seed(3)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 4))
    if hook is not None:
        state = power.PowerSGDState(None, rank, start_powerSGD_iter=2,
                                    orthogonalization_epsilon=1e-8)
        model.register_comm_hook(state, hook)
    total = [0.0] * 16
    for step in range(40):
        model.zero_grad()
        model(torch.ones(2, 3) * (RANK + 1 + step % 3)).square().mean().backward()
        found = [x for p in model.parameters() for x in p.grad.flatten().tolist()]
        total = [a + b for a, b in zip(total, found)]
    return total
plain = gradients(None, 0)
tell([plain, gradients(power.batched_powerSGD_hook, 4), gradients(power.batched_powerSGD_hook, 1)])
"""


STATES = """
from flambeau.distributed.utils import _sync_module_states, _verify_param_shape_across_processes
model = torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.BatchNorm1d(1))
with torch.no_grad():
    for number, tensor in enumerate((*model.parameters(), *model.buffers())):
        tensor.fill_(10 * RANK + number)
_sync_module_states(model, dist.group.WORLD, 1 << 20, 1, ["0.bias"])
_verify_param_shape_across_processes(dist.group.WORLD, list(model.parameters()))
wrong = [torch.ones(2 + RANK)]
tell([[x.flatten()[0].item() for x in (*model.parameters(), *model.buffers())],
      error_of(lambda: _verify_param_shape_across_processes(dist.group.WORLD, wrong))[0]])
"""


@pytest.fixture
def alone() -> Iterator[None]:
    """A group of one process."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def test_a_square_of_full_rank_is_exact_and_errors_of_less_are_fed_back():
    with Processes(SQUARE, 2) as processes:
        for rank in range(2):
            plain, full, one = processes.line(rank)
            assert full == pytest.approx(plain, rel=1e-3)
            assert one != pytest.approx(plain, rel=1e-6)
            assert one == pytest.approx(plain, rel=0.2, abs=2)


def test_states_of_one_process_for_all():
    with Processes(STATES, 2) as processes:
        for rank in range(2):
            values, error = processes.line(rank)
            assert values == [10, 10 * rank + 1, 12, 13, 14, 15, 16]
            assert "appears not to match sizes of the same param in process 0" in error


@pytest.mark.usefixtures("alone")
def test_a_state_is_pickled_without_its_processes():
    state = power.PowerSGDState(dist.group.WORLD, 3, start_powerSGD_iter=5)
    state.iter = 7
    again = pickle.loads(pickle.dumps(state))
    assert (again.process_group, again.iter, again.matrix_approximation_rank) == (None, 7, 3)
    assert state.process_group is dist.group.WORLD


@pytest.mark.usefixtures("alone")
def test_what_libraries_ask_of_a_parallel_model():
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    parallel = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=3)
    facts = parallel._get_ddp_logging_data()
    assert facts["bucket_cap_bytes"] == parallel.bucket_bytes_cap == 3 << 20
    assert facts["bucket_sizes"] == str(4 * (3 * 4 + 4 + 4 + 4))
    assert (facts["backend_name"], facts["dtypes"], facts["world_size"]) == ("gloo", "float", 1)
    assert "static_graph" not in facts
    parallel._set_static_graph()
    assert parallel._get_ddp_logging_data()["static_graph"] == 1
    for _ in range(2):
        parallel(torch.ones(2, 3)).sum().backward()
    kind = torch.nn.parallel.DistributedDataParallel
    kind._set_params_and_buffers_to_ignore_for_model(model, ["0.weight"])
    assert kind(model)._get_ddp_logging_data()["num_parameter_tensors"] == 3
    mesh = dist.init_device_mesh("cpu", (1,))
    assert kind(model, device_mesh=mesh).process_group is mesh.get_group()
    with pytest.raises(RuntimeError, match="Cannot specify both process_group and device_mesh"):
        kind(model, device_mesh=mesh, process_group=dist.group.WORLD)
    table = dist.init_device_mesh("cpu", (1, 1))
    with pytest.raises(RuntimeError, match="Only 1D device mesh is supported"):
        kind(model, device_mesh=table)


@pytest.mark.usefixtures("alone")
def test_hooks_with_types_and_numbers():
    seen = []

    def hook(state: object, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        seen.append(type(bucket) is dist.GradBucket)
        future = torch.futures.Future()
        future.set_result(bucket.buffer() * 2)
        return future

    parallel = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1, bias=False))
    parallel.register_comm_hook(None, hook)
    parallel(torch.ones(1, 2)).sum().backward()
    assert parallel.module.weight.grad.tolist() == [[2.0, 2.0]]
    assert seen == [True]
    parallel = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1, bias=False))
    parallel._register_builtin_comm_hook(dist.BuiltinCommHookType.FP16_COMPRESS)
    parallel(torch.full((1, 2), 1 + 2.0**-12)).sum().backward()
    assert parallel.module.weight.grad.tolist() == [[1.0, 1.0]]


def test_levels(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "detail")
    dist.set_debug_level_from_env()
    assert dist.get_debug_level() is dist.DebugLevel.DETAIL
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "much")
    with pytest.raises(ValueError, match="must be OFF, INFO, or DETAIL"):
        dist.set_debug_level_from_env()
    dist.set_debug_level(dist.DebugLevel.OFF)


@pytest.mark.usefixtures("alone")
def test_a_view_of_what_is_not_there_does_not_wait():
    class Work:
        waited = 0

        def wait(self) -> None:
            self.waited += 1

    work = Work()
    whole = funcol.AsyncCollectiveTensor(torch.arange(4.0), work)
    view = whole.view(2, 2)[1]
    assert (type(view), work.waited) == (funcol.AsyncCollectiveTensor, 0)
    assert (view + 1).tolist() == [3.0, 4.0]
    assert work.waited == 1
    assert type(whole + 1) is torch.Tensor
    with pytest.raises(ValueError, match="Unsupported group type"):
        funcol.all_reduce(torch.ones(1), "sum", None)
    with pytest.raises(ValueError, match="no process group of the ranks"):
        funcol.all_reduce(torch.ones(1), "sum", [0, 1])
