"""Programs that train modules whose parameters are divided by `fully_shard`."""

from __future__ import annotations

import importlib
from typing import Any

from conformance.distributed.divided import _block, _perceptron, trained, whole
from conformance.distributed.placed import close, numbers, tools


def fully_sharded(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """All that follows, in the same processes."""
    for program in (
        nested,
        transformer,
        accumulated,
        early,
        unused,
        again,
        halves,
        plane_of_copies,
        both,
        states,
        misuse,
    ):
        program(torch, dist, rank, size, record, seed)


def _fsdp(torch: Any) -> Any:
    return importlib.import_module(f"{torch.__name__}.distributed.fsdp")


def nested(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """Layers, and what is around them; parts are uneven where there are as many processes."""
    fsdp = _fsdp(torch)
    for label, reshards in (("default", None), ("always", True), ("never", False)):
        model = _perceptron(torch)
        fsdp.fully_shard(model[0], reshard_after_forward=reshards)
        fsdp.fully_shard(model, reshard_after_forward=reshards)
        x, y = numbers(torch, 4, 8) + rank, numbers(torch, 4, 8) / (rank + 1)
        trained(torch, model, x, y, record, label, "SGD")
    odd = fsdp.fully_shard(torch.nn.Linear(3, 5))
    record("parts", lambda: [list(p.to_local().shape) for p in odd.parameters()])
    with torch.no_grad():
        for parameter in odd.parameters():
            parameter.copy_(parameter * 0 + 0.5)
    trained(torch, odd, numbers(torch, 4, 3), numbers(torch, 4, 5), record, "odd")


def transformer(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """A block of a transformer, its parts by themselves."""
    fsdp = _fsdp(torch)
    model = _block(torch, size)
    for part in (model.attention, model.feed_forward):
        fsdp.fully_shard(part)
    fsdp.fully_shard(model)
    indices = (torch.arange(16) * 7 % 32).reshape(2, 8) // (rank + 1)
    trained(torch, model, indices, numbers(torch, 2, 8, 8), record, "transformer")


def accumulated(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """Gradients of several backward passes before they are sent."""
    fsdp = _fsdp(torch)
    model = _perceptron(torch)
    fsdp.fully_shard(model[0])
    fsdp.fully_shard(model)
    for step in range(3):
        model.set_requires_gradient_sync(step == 2)  # noqa: PLR2004
        (model(numbers(torch, 4, 8) + rank + step) ** 2).mean().backward()
    record("accumulated", lambda: [close(whole(p.grad)) for p in model.parameters()])


def early(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """Parameters that come early: as the program says, and `unshard` that is waited for later."""
    fsdp = _fsdp(torch)
    model = torch.nn.Sequential(*(_perceptron(torch) for _ in range(3)))
    for layer in model:
        fsdp.fully_shard(layer)
    fsdp.fully_shard(model)
    model[0].set_modules_to_forward_prefetch([model[1], model[2]])
    model[2].set_modules_to_backward_prefetch([model[1], model[0]])
    record("not divided", lambda: model.set_modules_to_forward_prefetch([1]))
    x, y = numbers(torch, 4, 8) + rank, numbers(torch, 4, 8)
    trained(torch, model, x, y, record, "early", "SGD")
    handle = model[1].unshard(async_op=True)
    handle.wait()
    handle.wait()
    record("after wait", lambda: [_kinds(layer) for layer in model])
    model[2].unshard(async_op=True)
    trained(torch, model, x, y, record, "asked for", "SGD")
    record("none", lambda: model.unshard())
    model.reshard()


def unused(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """Modules that are not called each time, in another order, and parameters without gradients."""
    fsdp = _fsdp(torch)
    model = torch.nn.ModuleDict({name: _perceptron(torch) for name in "abc"})
    model["b"][0].bias.requires_grad_(False)
    for layer in model.values():
        fsdp.fully_shard(layer)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step, names in enumerate(("abc", "ab", "cab", "b", "bb", "abc")):
        optimizer.zero_grad()
        x = numbers(torch, 4, 8) + rank
        for name in names:
            x = model[name](x)
        (x**2).mean().backward()
        optimizer.step()
        missing = [name for name, p in model.named_parameters() if p.grad is None]
        record(f"without {step}", lambda m=missing: m)
        record(f"unused {step}", lambda x=x: close(x))
    record("unused parts", lambda: [close(whole(p)) for p in model.parameters()])


def again(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """What is computed again in backward, and several forwards before one backward."""
    fsdp = _fsdp(torch)
    checkpoint = importlib.import_module(f"{torch.__name__}.utils.checkpoint").checkpoint

    class Again(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.ModuleList([_perceptron(torch) for _ in range(3)])

        def forward(self, x: Any) -> Any:
            for layer in self.layers:
                x = checkpoint(layer, x, use_reentrant=False)
            return x

    model = Again()
    for layer in model.layers:
        fsdp.fully_shard(layer)
    fsdp.fully_shard(model)
    x = numbers(torch, 4, 8) + rank
    trained(torch, model, x, numbers(torch, 4, 8), record, "again", "SGD")
    (model(x) ** 2 + model(x * 2) ** 2).mean().backward()
    record("twice", lambda: [close(whole(p.grad)) for p in model.parameters()])


def halves(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """Types of numbers."""
    fsdp = _fsdp(torch)
    policies = {
        "all": fsdp.MixedPrecisionPolicy(param_dtype=torch.bfloat16),
        "float32": fsdp.MixedPrecisionPolicy(
            param_dtype=torch.bfloat16, reduce_dtype=torch.float32, output_dtype=torch.float32
        ),
    }
    for label, policy in policies.items():
        model = fsdp.fully_shard(_perceptron(torch), mp_policy=policy)
        output = model(numbers(torch, 4, 8) / 4 + rank)
        record(label, lambda o=output: str(o.dtype))
        output.float().mean().backward()
        kinds = [(str(p.dtype), str(p.grad.dtype)) for p in model.parameters()]
        record(f"{label} types", lambda k=kinds: repr(k))
        sums = [whole(p.grad).abs().mean() for p in model.parameters()]
        record(f"{label} sizes", lambda s=sums: [round(float(each), 1) for each in s])
        record(f"{label} policy", lambda p=policy: repr(p))


def plane_of_copies(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """Copies along one dim of a mesh, parts along the other."""
    fsdp = _fsdp(torch)
    meshes, _ = tools(torch)
    mesh = meshes.init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("copies", "parts"))
    model = _perceptron(torch)
    for module in (model[0], model):
        fsdp.fully_shard(module, mesh=mesh)
    x = numbers(torch, 4, 8) + rank
    trained(torch, model, x, numbers(torch, 4, 8), record, "copies")


def both(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """Tensor parallelism along one dim of a mesh, parts along the other."""
    fsdp = _fsdp(torch)
    meshes, _ = tools(torch)
    parallel = importlib.import_module(f"{torch.__name__}.distributed.tensor.parallel")
    mesh = meshes.init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("dp", "tp"))
    model = _perceptron(torch)
    plan = {"0": parallel.ColwiseParallel(), "2": parallel.RowwiseParallel()}
    parallel.parallelize_module(model, mesh["tp"], plan)
    for module in (model[0], model):
        fsdp.fully_shard(module, mesh=mesh["dp"])
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for step in range(3):
        optimizer.zero_grad()
        x = numbers(torch, 4, 8) + mesh.get_local_rank("dp")
        loss = (model(x) ** 2).mean()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        record(f"both {step}", lambda x=loss, n=norm: [close(x), close(whole(n))])
    record("both parts", lambda: [list(p.to_local().shape) for p in model.parameters()])
    record("both whole", lambda: [close(whole(p)) for p in model.parameters()])


def _kinds(model: Any) -> list[str]:
    return [str(getattr(p, "placements", "whole")) for p in model.parameters()]


def states(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """When parameters are gathered and given back."""
    fsdp = _fsdp(torch)
    _, dt = tools(torch)
    model = _perceptron(torch)
    fsdp.fully_shard(model[0])
    fsdp.fully_shard(model)
    record("names", lambda: [type(module).__name__ for module in model.modules()])
    record("printed", lambda: str(model))
    record("at first", lambda: _kinds(model))
    output = model(numbers(torch, 4, 8))
    record("after forward", lambda: _kinds(model))
    output.sum().backward()
    record("after backward", lambda: _kinds(model))
    model.unshard()
    record("unshard", lambda: _kinds(model))
    model.reshard()
    record("reshard", lambda: _kinds(model))
    model.set_reshard_after_forward(False)
    output = model(numbers(torch, 4, 8))
    record("kept", lambda: _kinds(model))
    output.sum().backward()
    record("kept after", lambda: _kinds(model))
    record("state", lambda: [[name, list(t.to_local().shape)]
                             for name, t in model.state_dict().items()])  # fmt: skip
    columns = fsdp.fully_shard(torch.nn.Linear(8, 8), shard_placement_fn=lambda p: (
        dt.Shard(1) if p.ndim > 1 else None))  # fmt: skip
    record("columns", lambda: _kinds(columns))
    linear = torch.nn.Linear(8, 8)
    fsdp.fully_shard(linear, ignored_params={linear.bias})
    record("ignored", lambda: _kinds(linear))


def misuse(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """What is refused."""
    fsdp = _fsdp(torch)
    meshes, _ = tools(torch)
    nn = torch.nn
    model = fsdp.fully_shard(nn.Linear(2, 2))
    record("twice", lambda: fsdp.fully_shard(model))
    record("list", lambda: fsdp.fully_shard(nn.ModuleList([nn.Linear(2, 2)])))
    cube = meshes.init_device_mesh("cpu", (size, 1, 1))
    record("cube", lambda: fsdp.fully_shard(nn.Linear(2, 2), mesh=cube))
    record("copy", lambda: importlib.import_module("copy").deepcopy(model))
