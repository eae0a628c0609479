"""Programs that train in several processes: uneven inputs, divided optimizers, pipelines."""

from __future__ import annotations

import importlib
import pickle
from collections.abc import Iterable
from typing import Any


def _module(torch: Any, name: str) -> Any:
    return importlib.import_module(f"{torch.__name__}.distributed.{name}")


def _model(torch: Any, normalizes: bool = False) -> Any:
    torch.manual_seed(3)
    middle = [torch.nn.BatchNorm1d(6)] if normalizes else []
    return torch.nn.Sequential(
        torch.nn.Linear(4, 6), *middle, torch.nn.Tanh(), torch.nn.Linear(6, 2)
    )


def _batches(torch: Any, rank: int) -> Any:
    torch.manual_seed(1)
    return torch.randn(12, 5, 4) + rank


def _numbers(tensors: Iterable[Any]) -> list[float]:
    return [x for each in tensors for x in each.detach().double().flatten().tolist()]


def _state(model: Any) -> dict[str, Any]:
    return {"close": _numbers([*model.parameters(), *model.buffers()])}


def uneven(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """`join`: rank r has 2 + r batches."""
    x = _batches(torch, rank)
    for name, arguments in (
        ("all", {}), ("of those with inputs", {"divide_by_initial_world_size": False}),
        ("without", {"enable": False}),
    ):  # fmt: skip
        model = torch.nn.parallel.DistributedDataParallel(_model(torch, normalizes=True))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        with model.join(**arguments):
            for number in range(2 + rank if name != "without" else 2):
                optimizer.zero_grad()
                model(x[number]).square().sum().backward()
                optimizer.step()
        record(name, lambda model=model: _state(model))
    record("throws", lambda: _throws(torch, rank, x))
    _with_zero(torch, rank, x, record)


def _throws(torch: Any, rank: int, x: Any) -> Any:
    model = torch.nn.parallel.DistributedDataParallel(_model(torch))
    with model.join(throw_on_early_termination=True):
        for number in range(2 + rank):
            model(x[number]).sum().backward()


def _with_zero(torch: Any, rank: int, x: Any, record: Any) -> None:
    model = torch.nn.parallel.DistributedDataParallel(_model(torch), gradient_as_bucket_view=True)
    zero = _module(torch, "optim").ZeroRedundancyOptimizer(
        model.parameters(), torch.optim.Adam, lr=0.05
    )
    with _module(torch, "algorithms.join").Join([model, zero]):
        for number in range(2 + rank):
            zero.zero_grad()
            model(x[number]).square().sum().backward()
            zero.step()
    record("both", lambda: _state(model))


def zero(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """`ZeroRedundancyOptimizer`, its state dict, and a schedule of learning rates."""
    x = _batches(torch, rank)
    make = _module(torch, "optim").ZeroRedundancyOptimizer
    model = torch.nn.parallel.DistributedDataParallel(_model(torch))
    parameters = list(model.parameters())

    def groups() -> list[dict[str, Any]]:
        return [{"params": parameters[:1]}, {"params": parameters[1:], "lr": 0.2}]

    optimizer = make(groups(), torch.optim.Adam, lr=0.05)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)

    def train(first: int, last: int, chosen: Any) -> dict[str, Any]:
        for number in range(first, last):
            chosen.zero_grad()
            model(x[number]).square().sum().backward()
            chosen.step()
            if chosen is optimizer:
                schedule.step()
        return _state(model)

    record("trained", lambda: train(0, 4, optimizer))
    record("not here", optimizer.state_dict)
    optimizer.consolidate_state_dict(to=size - 1)
    state = [optimizer.state_dict() if rank == size - 1 else None]
    dist.broadcast_object_list(state, src=size - 1)
    record("groups", lambda: [[g["params"], g["lr"]] for g in state[0]["param_groups"]])
    record("state", lambda: [sorted(each) for each in state[0]["state"].values()])
    averages = [each["exp_avg"] for each in state[0]["state"].values()]
    record("averages", lambda: {"close": _numbers(averages)})
    again = make(groups(), torch.optim.Adam, lr=0.05)
    again.load_state_dict(state[0])
    record("continued", lambda: train(4, 7, again))


def compressed(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """PowerSGD with as many columns as gradients have is exact but for rounding."""
    hooks = _module(torch, "algorithms.ddp_comm_hooks.powerSGD_hook")
    x = _batches(torch, rank)
    for settings in (
        {"use_error_feedback": True, "warm_start": True},
        {"use_error_feedback": False, "warm_start": False},
    ):
        torch.manual_seed(3)
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 40))
        state = hooks.PowerSGDState(None, 4, start_powerSGD_iter=2, min_compression_rate=0.1,
                                    orthogonalization_epsilon=1e-8, **settings)  # fmt: skip
        model.register_comm_hook(state, hooks.powerSGD_hook)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for number in range(6):
            optimizer.zero_grad()
            model(x[number]).square().mean().backward()
            optimizer.step()
        record(f"{settings}", lambda model=model: _state(model))
        record("steps", lambda state=state: state.iter)
    again = pickle.loads(pickle.dumps(state))  # noqa: S301  of this process
    record("pickled", lambda: (again.iter, again.matrix_approximation_rank, sorted(
        again.error_dict), again.start_powerSGD_iter))  # fmt: skip
    record("too early", lambda: hooks.PowerSGDState(None, start_powerSGD_iter=1))


def pipelines(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """GPipe and 1F1B: losses, outputs and gradients, as one process has them."""
    pipelining = _module(torch, "pipelining")
    torch.manual_seed(2)
    blocks = [torch.nn.Sequential(torch.nn.Linear(5, 5), torch.nn.Tanh()) for _ in range(size)]
    x, target = torch.randn(12, 5), torch.randn(12, 5)
    for schedule in ("ScheduleGPipe", "Schedule1F1B"):
        for count in (size, 6):
            block = blocks[rank]
            block.zero_grad()
            stage = pipelining.PipelineStage(block, rank, size, torch.device("cpu"))
            made = getattr(pipelining, schedule)(
                stage, n_microbatches=count, loss_fn=torch.nn.functional.mse_loss
            )
            losses: list[Any] = []
            seen = _batch(made, rank, size, x, target, losses)
            name = f"{schedule} {count}"
            record(f"{name} losses", lambda losses=losses: {
                "close": [each.item() for each in losses]})  # fmt: skip
            record(f"{name} output", lambda seen=seen: seen if seen is None else {
                "close": seen.detach().flatten().tolist()})  # fmt: skip
            gradients = _numbers(each.grad for each in block.parameters())
            record(f"{name} gradients", lambda gradients=gradients: {"close": gradients})
    _interleaved(torch, rank, size, record, x, target)
    whole = torch.nn.Sequential(*blocks)
    whole.zero_grad()
    torch.nn.functional.mse_loss(whole(x), target).backward()
    gradients = _numbers(each.grad for each in blocks[rank].parameters())
    record("one process", lambda: {"close": gradients})


def _interleaved(torch: Any, rank: int, size: int, record: Any, x: Any, target: Any) -> None:
    """Two stages in each process."""
    pipelining = _module(torch, "pipelining")
    for name in ("ScheduleInterleaved1F1B", "ScheduleLoopedBFS"):
        torch.manual_seed(4)
        blocks = [torch.nn.Sequential(torch.nn.Linear(5, 5), torch.nn.Tanh())
                  for _ in range(2 * size)]  # fmt: skip
        places = (rank, rank + size)
        stages = [pipelining.PipelineStage(blocks[place], place, 2 * size, torch.device("cpu"))
                  for place in places]  # fmt: skip
        made = getattr(pipelining, name)(stages, 4, loss_fn=torch.nn.functional.mse_loss)
        losses: list[Any] = []
        seen = _batch(made, rank, size, x, target, losses)
        record(f"{name} losses", lambda losses=losses: {"close": [each.item() for each in losses]})
        record(f"{name} output", lambda seen=seen: seen if seen is None else {
            "close": seen.detach().flatten().tolist()})  # fmt: skip
        gradients = _numbers(each.grad for place in places for each in blocks[place].parameters())
        record(f"{name} gradients", lambda gradients=gradients: {"close": gradients})
        wrong = getattr(pipelining, name)
        record(f"{name} rounds", lambda wrong=wrong, stages=stages: type(
            wrong(stages, 2 * size + 1)).__name__)  # fmt: skip


def _batch(schedule: Any, rank: int, size: int, x: Any, target: Any, losses: list[Any]) -> Any:
    if rank == 0:
        return schedule.step(x)
    if rank == size - 1:
        return schedule.step(target=target, losses=losses)
    return schedule.step()
