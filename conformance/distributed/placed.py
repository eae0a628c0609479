"""Programs with distributed tensors, under PyTorch and flambeau."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any


def tools(torch: Any) -> tuple[Any, Any]:
    """The modules of meshes and of distributed tensors."""
    name = torch.__name__
    meshes = importlib.import_module(f"{name}.distributed.device_mesh")
    return meshes, importlib.import_module(f"{name}.distributed.tensor")


def numbers(torch: Any, *shape: int) -> Any:
    """Numbers of both signs, no two alike."""
    count = 1
    for length in shape:
        count *= length
    return (((torch.arange(count) * 37) % 101).to(torch.float32) / 16 - 3).reshape(shape)


def seen(tensor: Any) -> list[Any]:
    """Where a distributed tensor lies, and its numbers."""
    local = tensor.to_local().detach()
    whole = tensor.full_tensor().detach()
    return [list(map(str, tensor.placements)), list(tensor.shape), list(local.shape), close(whole)]


def close(tensor: Any) -> Any:
    """Numbers that are compared but for rounding."""
    return {"close": tensor.detach().double().reshape(-1).tolist()}


def placed(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """All that follows, in the same processes."""
    for program in (moves, plane, local_gradients, table, refusals):
        program(torch, dist, rank, size, record, seed)


def computed(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """The same for what is computed."""
    for program in (operators, gradients):
        program(torch, dist, rank, size, record, seed)


def kinds(dt: Any) -> dict[str, Any]:
    """Placements by short names."""
    return {"R": dt.Replicate(), "S0": dt.Shard(0), "S1": dt.Shard(1), "P": dt.Partial()}


def _moved(tensor: Any, kind: Any) -> list[Any]:
    return seen(tensor.redistribute(placements=[kind]))


def moves(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """From every placement to every other, of even and uneven and few parts."""
    meshes, dt = tools(torch)
    mesh = meshes.init_device_mesh("cpu", (size,))
    for shape in ((4, 8), (5, 3), (1, 2), (2, 7)):
        for first, before in kinds(dt).items():
            tensor = dt.distribute_tensor(numbers(torch, *shape) + rank, mesh, [before])
            record(f"{shape} {first}", lambda t=tensor: [repr(t.placements), seen(t)])
            for second, after in kinds(dt).items():
                if second != "P":
                    record(f"{shape} {first} {second}", functools.partial(_moved, tensor, after))
    terms = numbers(torch, 4, 3) + rank
    for kind in ("sum", "avg", "max", "min"):
        record(f"terms {kind}", lambda k=kind: seen(dt.DTensor.from_local(
            terms, mesh, [dt.Partial(k)])))  # fmt: skip
    x = numbers(torch, 2, 3)
    record("shape", lambda: list(dt.DTensor.from_local(x, mesh, [dt.Shard(1)]).shape))
    record("stride", lambda: list(dt.DTensor.from_local(x.t(), mesh, [dt.Shard(1)]).stride()))
    record("source", lambda: seen(dt.distribute_tensor(x + rank, mesh, [dt.Shard(0)],
                                                       src_data_rank=size - 1)))  # fmt: skip
    record("own", lambda: close(dt.distribute_tensor(
        x + rank, mesh, [dt.Replicate()], src_data_rank=None).to_local()))  # fmt: skip
    for name in ("zeros", "ones", "empty"):
        made = getattr(dt, name)(5, 2, device_mesh=mesh, placements=[dt.Shard(0)])
        record(name, lambda m=made: [list(m.to_local().shape), str(m.dtype), m.requires_grad])
    record("full", lambda: seen(dt.full((3, 2), 2.5, device_mesh=mesh, placements=[dt.Shard(1)])))


def plane(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """On a mesh of two dims."""
    meshes, dt = tools(torch)
    mesh = meshes.init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("a", "b"))
    short = {name: kind for name, kind in kinds(dt).items() if name != "P"}
    pairs = [(x, y) for x in short for y in short]
    tensor = numbers(torch, 5, 7)
    for place, pair in enumerate(pairs):
        before = dt.distribute_tensor(tensor, mesh, [short[name] for name in pair])
        record(f"{pair}", lambda t=before: seen(t))
        for step in (1, 4, 7):
            other = pairs[(place + step) % len(pairs)]
            after = [short[name] for name in other]
            record(f"{pair} {other}",
                   lambda t=before, a=after: seen(t.redistribute(placements=a)))  # fmt: skip
    terms = dt.DTensor.from_local(tensor + rank, mesh, [dt.Partial(), dt.Partial()])
    record("terms", lambda: close(terms.full_tensor()))
    x = dt.distribute_tensor(numbers(torch, 8, 8), mesh, [dt.Shard(0), dt.Replicate()])
    w = dt.distribute_tensor(numbers(torch, 8, 8), mesh, [dt.Replicate(), dt.Shard(0)])
    record("linear", lambda: seen(torch.nn.functional.linear(x, w)))
    record("sum", lambda: seen(x.sum()))


UNARY: dict[str, Callable[[Any, Any], Any]] = {
    "neg": lambda t, x: -x,
    "relu": lambda t, x: t.relu(x),
    "gelu": lambda t, x: t.nn.functional.gelu(x),
    "mul": lambda t, x: x * 2,
    "add": lambda t, x: x + 1,
    "div": lambda t, x: x / 4,
    "double": lambda t, x: x.double(),
    "pow": lambda t, x: x**2,
    "sum": lambda t, x: x.sum(),
    "sum0": lambda t, x: x.sum(0),
    "sum1": lambda t, x: x.sum(1, keepdim=True),
    "mean": lambda t, x: x.mean(),
    "mean1": lambda t, x: x.mean(1),
    "amax": lambda t, x: x.amax(0),
    "max": lambda t, x: x.max(),
    "min": lambda t, x: x.min(),
    "std": lambda t, x: x.std(1),
    "var": lambda t, x: x.var(),
    "argmax": lambda t, x: x.argmax(1),
    "any": lambda t, x: (x > 2).any(),
    "all": lambda t, x: (x > -9).all(),
    "cumsum": lambda t, x: x.cumsum(0),
    "softmax0": lambda t, x: x.softmax(0),
    "softmax1": lambda t, x: x.softmax(1),
    "log_softmax": lambda t, x: x.log_softmax(1),
    "logsumexp": lambda t, x: x.logsumexp(1),
    "t": lambda t, x: x.t(),
    "permute": lambda t, x: x.permute(1, 0),
    "divide": lambda t, x: x.view(8, 4, 3),
    "unsqueeze": lambda t, x: x.unsqueeze(1),
    "squeeze": lambda t, x: x.unsqueeze(0).squeeze(0),
    "select": lambda t, x: x[0],
    "column": lambda t, x: x[:, 3],
    "slice": lambda t, x: x[1:3],
    "columns": lambda t, x: x[:, 2:5],
    "expand": lambda t, x: x.unsqueeze(0).expand(2, 8, 12),
    "chunk": lambda t, x: x.chunk(2, 1)[1],
    "cat": lambda t, x: t.cat([x, x], 0),
    "stack": lambda t, x: t.stack([x, x]),
    "layer_norm": lambda t, x: t.nn.functional.layer_norm(x, (12,)),
    "zeros_like": lambda t, x: t.zeros_like(x),
    "tril": lambda t, x: t.tril(x),
    "where": lambda t, x: t.where(x > 0, x, 0),
    "pad": lambda t, x: t.nn.functional.pad(x, (1, 1)),
    "add_": lambda t, x: x.clone().add_(1),
    "clone": lambda t, x: x.clone(),
    "detach": lambda t, x: x.detach(),
    "fill_": lambda t, x: x.clone().fill_(3),
}
BINARY: dict[str, Callable[[Any, Any, Any], Any]] = {
    "add": lambda t, x, y: x + y,
    "mul": lambda t, x, y: x * y,
    "lt": lambda t, x, y: x < y,
    "mm": lambda t, x, y: x @ y,
    "linear": lambda t, x, y: t.nn.functional.linear(x, y),
    "maximum": lambda t, x, y: t.maximum(x, y),
    "lerp": lambda t, x, y: t.lerp(x, y, 0.5),
    "mse": lambda t, x, y: t.nn.functional.mse_loss(x, y),
    "mv": lambda t, x, y: x @ y[0],
}


def operators(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """Operators on one tensor and on two, at every placement."""
    meshes, dt = tools(torch)
    mesh = meshes.init_device_mesh("cpu", (size,))

    def at(kind: Any, *shape: int) -> Any:
        return dt.distribute_tensor(numbers(torch, *shape), mesh, [kind])

    for first, kind in kinds(dt).items():
        for name, function in UNARY.items():
            if name == "add_" and first == "P":
                continue
            record(f"{name} {first}", lambda f=function, k=kind: seen(f(torch, at(k, 8, 12))))
        for second, other in kinds(dt).items():
            for name, function in BINARY.items():
                record(f"{name} {first} {second}", lambda f=function, k=kind, o=other: seen(
                    f(torch, at(k, 8, 8), at(o, 8, 8))))  # fmt: skip


def gradients(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """Gradients of functions of two tensors: the numbers, wherever they lie."""
    meshes, dt = tools(torch)
    mesh = meshes.init_device_mesh("cpu", (size,))
    functional = torch.nn.functional
    bias = numbers(torch, 8)
    functions = {
        "linear": lambda x, w: functional.linear(x, w).relu(),
        "layer_norm": lambda x, w: functional.layer_norm(x, (8,), w[0], w[1]),
        "softmax": lambda x, w: x.softmax(-1) * w,
        "gelu": lambda x, w: functional.gelu(x) @ w,
        "view": lambda x, w: (x.view(8, 4, 2).transpose(0, 1) * 2).sum(-1) @ w[:, :2],
        "bias": lambda x, w: functional.linear(x, w, dt.distribute_tensor(bias, mesh)),
    }
    for first, one in kinds(dt).items():
        for second, other in kinds(dt).items():
            if "P" in (first, second):
                continue
            for name, function in functions.items():
                x = dt.distribute_tensor(numbers(torch, 8, 8), mesh, [one]).requires_grad_()
                w = dt.distribute_tensor(numbers(torch, 8, 8) / 8, mesh, [other]).requires_grad_()
                record(f"{name} {first} {second}",
                       lambda f=function, x=x, w=w: _gradients(f, x, w))  # fmt: skip


def _gradients(function: Any, x: Any, w: Any) -> list[Any]:
    result = function(x, w)
    (result * result).sum().backward()
    grads = [x.grad, w.grad]
    return [None if grad is None else close(grad.full_tensor()) for grad in grads]


def local_gradients(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """Gradients to what tensors were made of, and of what they are read as."""
    meshes, dt = tools(torch)
    mesh = meshes.init_device_mesh("cpu", (size,))
    for first, one in kinds(dt).items():
        for second, other in kinds(dt).items():
            if second == "P":
                continue
            local = numbers(torch, 4, 4).requires_grad_()
            tensor = dt.DTensor.from_local(local, mesh, [one]).redistribute(placements=[other])
            (tensor.to_local() * (rank + 1)).sum().backward()
            record(f"{first} {second}", lambda x=local: close(x.grad))
    for kind in (dt.Replicate(), dt.Partial()):
        local = numbers(torch, 4, 4).requires_grad_()
        tensor = dt.DTensor.from_local(local, mesh, [dt.Shard(0)])
        (tensor.full_tensor(grad_placements=[kind]) * (rank + 1)).sum().backward()
        record(f"full {kind}", lambda x=local: close(x.grad))


def table(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """Rows of a table in parts, and the loss of classes."""
    meshes, dt = tools(torch)
    mesh = meshes.init_device_mesh("cpu", (size,))
    functional = torch.nn.functional
    indices = dt.distribute_tensor(torch.tensor([[0, 7, 3], [5, 5, 2]]), mesh, [dt.Replicate()])
    for name, kind in kinds(dt).items():
        if name != "P":
            weight = dt.distribute_tensor(numbers(torch, 8, 8), mesh, [kind]).requires_grad_()
            record(f"rows {name}", lambda w=weight: close(
                functional.embedding(indices, w).full_tensor()))  # fmt: skip
    target = torch.tensor([1, 0, 3, 2, 1, 1, 0, 2])
    for name in ("S0", "R"):
        for reduction in ("mean", "sum"):
            log = dt.distribute_tensor(numbers(torch, 8, 4), mesh, [kinds(dt)[name]])
            log.requires_grad_()
            placed_target = dt.distribute_tensor(target, mesh, [kinds(dt)[name]])
            loss = functional.cross_entropy(log, placed_target, reduction=reduction)
            loss.backward()
            record(f"loss {name} {reduction}", lambda x=log, y=loss: [
                close(y.full_tensor()), close(x.grad.full_tensor())])  # fmt: skip


def refusals(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """What distributed tensors refuse."""
    meshes, dt = tools(torch)
    mesh = meshes.init_device_mesh("cpu", (size,))
    other = meshes.init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("a", "b"))
    x = numbers(torch, 4, 2)
    d = dt.distribute_tensor(x, mesh, [dt.Shard(0)])
    twice = [dt.Shard(0), dt.Replicate()]
    record("no such dim", lambda: dt.distribute_tensor(x, mesh, [dt.Shard(2)]))
    record("too many", lambda: dt.distribute_tensor(x, mesh, twice))
    record("again", lambda: dt.distribute_tensor(d, mesh, [dt.Replicate()]))
    record("no leaf", lambda: dt.distribute_tensor(x.clone().requires_grad_() * 2, mesh))
    record("deep", lambda: dt.DTensor.from_local(x, mesh, [dt.Shard(5)]))
    record("half a shape", lambda: dt.DTensor.from_local(x, mesh, [dt.Shard(0)], shape=(9, 2)))
    record("terms", lambda: d.redistribute(placements=[dt.Partial()]))
    record("nowhere", lambda: d.redistribute())
    record("elsewhere", lambda: d.redistribute(other, [dt.Replicate(), dt.Replicate()]))
    record("mixed", lambda: d + x)
    record("meshes", lambda: d + dt.distribute_tensor(x, other, twice))
    record("no mesh", lambda: dt.zeros(3))
    record("numpy", d.numpy)
    record("negative", lambda: repr(dt.distribute_tensor(x, mesh, [dt.Shard(-1)]).placements))
    record("number", lambda: d.sum().redistribute(placements=[dt.Replicate()]).item())
    record("same", lambda: [torch.equal(d, d), torch.equal(d, d + 1)])
    record("parameter", lambda: isinstance(torch.nn.Parameter(d), torch.nn.Parameter))
