"""Programs for several processes. Each is called in every rank, under PyTorch and flambeau."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

TYPES = (
    "bool uint8 int8 int32 int64 float16 bfloat16 float32 float64 complex64 complex128"
).split()
OPERATIONS = "SUM AVG PRODUCT MIN MAX BAND BOR BXOR".split()
SHAPES = ((), (0,), (1,), (3,), (2, 3), (0, 4), (2, 1, 5), (1031,))
LARGE = 40_003
"""Elements: more than one process reduces for itself."""


def numbers(torch: Any, name: str, shape: tuple[int, ...], rank: int) -> Any:
    """Small whole numbers, exact in every type, others in each rank."""
    count = 1
    for length in shape:
        count *= length
    values = (torch.arange(count) * (rank + 2) + rank) % 5 + 1
    return values.reshape(shape).to(getattr(torch, name))


def changed(function: Callable[[Any], Any], tensor: Any) -> Callable[[], Any]:
    """A thunk that lets a collective write a tensor, and gives the tensor."""

    def run() -> Any:
        function(tensor)
        return tensor

    return run


def reductions(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """Every operation on every type, of several shapes."""
    for name in TYPES:
        for op_name in OPERATIONS:
            op = getattr(dist.ReduceOp, op_name)
            for shape in SHAPES:
                own = numbers(torch, name, shape, rank)
                record(f"all_reduce {name} {op_name} {shape}",
                       changed(lambda x, op=op: dist.all_reduce(x, op), own))  # fmt: skip
            own = numbers(torch, name, (3,), rank)
            record(f"reduce {name} {op_name}",
                   lambda x=own, op=op: _of_root(dist.reduce, x, size - 1, op, rank))  # fmt: skip
    for name in ("float32", "int64", "bfloat16", "complex64"):
        own = numbers(torch, name, (LARGE,), rank)
        record(f"large {name}", changed(lambda x: dist.all_reduce(x), own))
        own = numbers(torch, name, (LARGE,), rank)
        record(f"large reduce {name}", lambda own=own: (dist.reduce(own, 0), own)[rank == 0])


def _of_root(reduce: Any, tensor: Any, root: int, op: Any, rank: int) -> Any:
    reduce(tensor, root, op)
    return tensor if rank == root else None


def movements(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """What moves tensors without computing, on every type and shape."""
    for name in TYPES:
        for shape in (*SHAPES, (LARGE,)):
            label = f"{name} {shape}"
            own = numbers(torch, name, shape, rank)
            record(
                f"broadcast {label}", changed(lambda x: dist.broadcast(x, size - 1), own.clone())
            )
            outputs = [torch.zeros_like(own) for _ in range(size)]
            record(
                f"all_gather {label}", changed(lambda out, x=own: dist.all_gather(out, x), outputs)
            )
            _to_one(torch, dist, rank, size, record, own, label)
            _into_tensors(torch, dist, rank, size, record, own, label)


def _to_one(torch: Any, dist: Any, rank: int, size: int, record: Any, own: Any, label: str) -> None:
    root = size // 2
    outputs = [torch.zeros_like(own) for _ in range(size)] if rank == root else None
    record(f"gather {label}", lambda: (dist.gather(own, outputs, root), outputs)[1])
    inputs = [own + each for each in range(size)] if rank == root else None
    if own.dtype is torch.bool and inputs:
        inputs = [own for _ in range(size)]
    output = torch.zeros_like(own)
    record(f"scatter {label}", lambda: (dist.scatter(output, inputs, root), output)[1])
    outputs = [torch.zeros_like(own) for _ in range(size)]
    inputs = [own] * size
    record(f"all_to_all {label}", lambda: (dist.all_to_all(outputs, inputs), outputs)[1])


def _into_tensors(torch: Any, dist: Any, rank: int, size: int, record: Any, own: Any,
                  label: str) -> None:  # fmt: skip
    if not own.dim():
        return
    joined = torch.cat([torch.zeros_like(own)] * size)
    record(f"into_tensor {label}", changed(lambda x: dist.all_gather_into_tensor(x, own), joined))
    whole = torch.cat([own] * size)
    output = torch.zeros_like(whole)
    record(f"single {label}", changed(lambda x: dist.all_to_all_single(x, whole), output))
    output = torch.zeros_like(own)
    record(f"reduce_scatter {label}",
           changed(lambda x: dist.reduce_scatter(x, [own] * size), output))  # fmt: skip
    if own.numel():
        output = torch.zeros_like(own)
        record(f"reduce_scatter_tensor {label}",
               changed(lambda x: dist.reduce_scatter_tensor(x, whole), output))  # fmt: skip


def splits(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """`all_to_all_single` with uneven parts, some of them empty."""
    table = [[(3 * i + 5 * j + seed) % 4 for j in range(size)] for i in range(size)]
    given = table[rank]
    taken = [table[other][rank] for other in range(size)]
    for columns in ((), (2,)):
        source = torch.arange(float(sum(given) * (2 if columns else 1))) + 100 * rank
        source = source.reshape(sum(given), *columns)
        output = torch.zeros(sum(taken), *columns)
        exchange = functools.partial(_exchange, dist, source, taken, given)
        record(f"splits {columns}", changed(exchange, output))
    inputs = [torch.full((length,), float(rank)) for length in given]
    outputs = [torch.zeros(length) for length in taken]
    record("lists", changed(lambda out: dist.all_to_all(out, inputs), outputs))


def _exchange(dist: Any, source: Any, taken: list[int], given: list[int], output: Any) -> None:
    dist.all_to_all_single(output, source, taken, given)


def messages(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """Sends and receives: in turn, in a ring, with tags, from anybody, in batches."""
    right, left = (rank + 1) % size, (rank - 1) % size
    for name in TYPES:
        for shape in ((), (0,), (3,), (LARGE,)):
            own, into = numbers(torch, name, shape, rank), numbers(torch, name, shape, rank) * 0
            works = [dist.isend(own, right), dist.irecv(into, left)]
            record(f"ring {name} {shape}", lambda w=works, x=into: ([each.wait() for each in w], x))
    first, second = torch.zeros(2), torch.zeros(2)
    sends = [dist.isend(torch.ones(2) * rank, right, tag=tag) for tag in (7, 5)]
    record("tag 5", lambda: (dist.recv(first, left, tag=5), first))
    record("tag 7", lambda: (dist.recv(second, left, tag=7), second))
    for work in sends:
        work.wait()
    into = torch.zeros(1)
    if rank == 0:
        found = sorted(dist.recv(into, tag=9) for _ in range(size - 1))
        record("from anybody", lambda: found)
    else:
        dist.send(into + rank, 0, tag=9)
    batch = [dist.P2POp(dist.isend, torch.full((4,), rank), right),
             dist.P2POp(dist.irecv, x := torch.zeros(4, dtype=torch.int64), left)]  # fmt: skip
    record("batch", lambda: ([work.wait() for work in dist.batch_isend_irecv(batch)], x))
    if rank == 0:
        dist.send_object_list(["a", {"b": 1}, None], size - 1)
    if rank == size - 1:
        objects: list[Any] = [None] * 3
        record("objects", lambda: (dist.recv_object_list(objects, 0), objects))


def objects(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """Objects of different sizes."""
    everything: list[Any] = [None] * size
    dist.all_gather_object(everything, {"rank": rank, "text": "x" * rank})
    record("all_gather_object", lambda: [sorted(each.items()) for each in everything])
    shared = [rank, "x" * rank, None]
    dist.broadcast_object_list(shared, size - 1)
    record("broadcast_object_list", lambda: shared)
    own: list[Any] = [None]
    dist.scatter_object_list(own, [f"for {each}" for each in range(size)] if rank == 0 else None, 0)
    record("scatter_object_list", lambda: own)
    gathered = [None] * size if rank == 0 else None
    dist.gather_object(("from", rank), gathered)
    record("gather_object", lambda: gathered)


def groups(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """Groups of some: who is in them, ranks within, collectives of each."""
    even = dist.new_group(list(range(0, size, 2)))
    last = dist.new_group([size - 1])
    mine, every = dist.new_subgroups(2) if size % 2 == 0 else (None, [])
    record("number", lambda: len(every))
    for name, group in (("even", even), ("last", last), ("mine", mine), ("world", None)):
        record(f"{name} rank", lambda g=group: (dist.get_rank(g), dist.get_world_size(g)))
        if group is dist.GroupMember.NON_GROUP_MEMBER:
            record(f"{name} outside", lambda g=group: dist.all_reduce(torch.ones(1), group=g))
            continue
        ranks = dist.get_process_group_ranks(group)
        record(f"{name} ranks", lambda r=ranks: r)
        x = torch.arange(4.0) + rank
        record(f"{name} sum", changed(lambda y, g=group: dist.all_reduce(y, group=g), x))
        x = torch.arange(4.0) + rank
        root = ranks[-1]
        record(f"{name} broadcast", changed(lambda y, g=group, r=root: dist.broadcast(y, r, g), x))
        x = torch.arange(4.0) + rank
        record(
            f"{name} group_src",
            changed(lambda y, g=group: dist.broadcast(y, group=g, group_src=0), x),
        )
    record("backend", lambda: (dist.get_backend(), dist.get_backend_config()))
    dist.barrier()


def asynchronous(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """Works: several at once, waited for in another order; futures and what follows them."""
    tensors = [torch.arange(3.0) + rank + each for each in range(6)]
    works = [dist.all_reduce(x, async_op=True) for x in tensors[:4]]
    works.append(dist.broadcast(tensors[4], 1, async_op=True))
    works.append(dist.barrier(async_op=True))
    record("waits", lambda: [work.wait() for work in reversed(works)])
    record("completed", lambda: [(work.is_completed(), work.exception()) for work in works])
    record("results", lambda: tensors)
    x = torch.ones(2) * (rank + 1)
    future = dist.all_reduce(x, async_op=True).get_future()
    record("future", lambda: future.then(lambda f: f.value()[0] * 2).wait())
    outputs = [torch.zeros(2) for _ in range(size)]
    work = dist.all_gather(outputs, x, async_op=True)
    record("gathered", lambda: (work.wait(), outputs))
    record("coalesced", lambda: _coalesced(torch, dist, rank))


def _coalesced(torch: Any, dist: Any, rank: int) -> Any:
    tensors = [torch.ones(3) * (rank + 1), torch.ones(2, 2) * rank]
    dist.all_reduce_coalesced(tensors)
    return tensors


def errors(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """What is refused before anything is sent."""
    x = torch.ones(4)
    record("number", lambda: dist.all_reduce(3))
    record("list", lambda: dist.all_reduce([x]))
    record("no list", lambda: dist.all_gather(x, x))
    record("root", lambda: dist.broadcast(x, 55))
    record("no root", lambda: dist.broadcast(x))
    record("two roots", lambda: dist.broadcast(x, 0, group_src=1))
    record("length", lambda: dist.all_gather([x.clone()], x))
    record("shape", lambda: dist.all_gather([torch.zeros(3)] * size, x))
    record("types", lambda: dist.all_gather([torch.zeros(4, dtype=torch.int32)] * size, x))
    record("reduce_scatter", lambda: dist.reduce_scatter(x, [x]))
    record("splits", lambda: dist.all_to_all_single(x.clone(), x, [1] * size, [3] * size))
    record("to itself", lambda: dist.send(x, rank))
    record("group", lambda: dist.all_reduce(x, group="no group"))
    record("range", lambda: dist.new_group([size]))
    record("twice", lambda: dist.new_group([0, 0]))
    record("again", lambda: dist.init_process_group("gloo"))
    record("op", lambda: dist.P2POp(dist.broadcast, x, 0))
    record("batch", lambda: dist.batch_isend_irecv([1]))
    wrong = [x] if rank != 0 else None
    record("gather_list", lambda: dist.gather(x, wrong, 0))
    record("scatter_list", lambda: dist.scatter(x, wrong, 0))
    record("objects", lambda: dist.scatter_object_list([], None, 0))


def model(torch: Any, seed: int) -> Any:
    """A small model with a buffer; its numbers are made of whole ones."""
    net = torch.nn.Sequential(
        torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Tanh(), torch.nn.Linear(8, 3)
    )
    with torch.no_grad():
        for number, parameter in enumerate(net.parameters()):
            values = torch.arange(parameter.numel()) * (number + 3 + seed) % 7 - 3
            parameter.copy_((values / 8).reshape(parameter.shape))
    return net


def rounded(tensor: Any) -> Any:
    """Numbers that may differ by rounding."""
    return None if tensor is None else {"close": tensor.detach().double().flatten().tolist()}


def batch(torch: Any, rank: int, step: int) -> Any:
    """What a rank computes with in a step."""
    return (torch.arange(24.0) * (rank + 2) + step).reshape(6, 4) % 5 / 4


def _train(torch: Any, net: Any, rank: int, record: Any, label: str) -> None:
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for step in range(3):
        optimizer.zero_grad(set_to_none=step != 1)
        loss = net(batch(torch, rank, step)).square().mean()
        loss.backward()
        record(f"{label} {step} loss", lambda x=loss: rounded(x))
        record(f"{label} {step} grads", lambda: [rounded(p.grad) for p in net.parameters()])
        optimizer.step()
    record(f"{label} end", lambda: [rounded(x) for x in net.state_dict().values()])


def data_parallel(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """Training with DistributedDataParallel, in all of its ways."""
    parallel = torch.nn.parallel.DistributedDataParallel
    ways: list[dict[str, Any]] = [
        {}, {"gradient_as_bucket_view": True}, {"broadcast_buffers": False},
        {"bucket_cap_mb": 1e-4},
        {"find_unused_parameters": True}, {"static_graph": True},
        {"static_graph": True, "gradient_as_bucket_view": True},
    ]  # fmt: skip
    for way in ways:
        _train(torch, parallel(model(torch, rank), **way), rank, record, str(way))
    net = parallel(model(torch, rank))
    with net.no_sync():
        net(batch(torch, rank, 0)).sum().backward()
        record("no_sync", lambda: [rounded(p.grad) for p in net.parameters()])
    net(batch(torch, rank, 1)).sum().backward()
    record("after no_sync", lambda: [rounded(p.grad) for p in net.parameters()])
    record("names", lambda: list(net.state_dict()))


class Branches:
    """Makes a model that uses one of two layers in each rank."""

    def __new__(cls, torch: Any) -> Any:
        class Model(torch.nn.Module):  # type: ignore[misc, name-defined]
            def __init__(self) -> None:
                super().__init__()
                self.layers = torch.nn.ModuleList(torch.nn.Linear(4, 2) for _ in range(3))
                with torch.no_grad():
                    for number, parameter in enumerate(self.parameters()):
                        parameter.fill_((number + 1) / 8)

            def forward(self, x: Any, which: int) -> Any:
                return self.layers[which](x)

        return Model()


def unused(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """Parameters that some ranks, or all, do not use."""
    parallel = torch.nn.parallel.DistributedDataParallel
    net = parallel(Branches(torch), find_unused_parameters=True)
    for step in range(3):
        net.zero_grad(set_to_none=step != 2)
        net(batch(torch, rank, step), (rank + step) % 2).sum().backward()
        record(f"unused {step}", lambda: [rounded(p.grad) for p in net.parameters()])
    net = parallel(Branches(torch))
    net(batch(torch, rank, 0), 0).sum().backward()
    record("not finished", lambda: net(batch(torch, rank, 0), 0))
    record("nothing to train", lambda: parallel(torch.nn.ReLU()))


def hooks(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """Communication hooks, ours and one of the program."""
    if torch.__name__ == "torch":
        from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
    else:
        from flambeau.distributed.algorithms.ddp_comm_hooks import default_hooks
    names = ("allreduce_hook", "fp16_compress_hook")
    for name in names:
        net = torch.nn.parallel.DistributedDataParallel(model(torch, rank))
        net.register_comm_hook(None, getattr(default_hooks, name))
        _train(torch, net, rank, record, name)
    net = torch.nn.parallel.DistributedDataParallel(model(torch, rank))
    wrapped = default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook)
    net.register_comm_hook(None, wrapped)
    _train(torch, net, rank, record, "wrapped")
    seen = []

    def twice(state, bucket):  # without types: PyTorch asks that they be its own
        seen.append((bucket.index(), bucket.is_last(), len(bucket.parameters()), state))
        future = dist.all_reduce(bucket.buffer(), async_op=True).get_future()
        return future.then(lambda done: done.value()[0] * 2)

    net = torch.nn.parallel.DistributedDataParallel(model(torch, rank))
    net.register_comm_hook("state", twice)
    net(batch(torch, rank, 0)).sum().backward()
    record("own hook", lambda: [rounded(p.grad) for p in net.parameters()])
    record("seen", lambda: seen)
    record("two hooks", lambda: net.register_comm_hook(None, twice))


def gradients(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """Collectives that gradients pass through."""
    if torch.__name__ == "torch":
        import torch.distributed.nn.functional as F  # noqa: N812
    else:
        import flambeau.distributed.nn.functional as F  # noqa: N812

    def leaf(*shape: int) -> Any:
        count = 1
        for length in shape:
            count *= length
        return ((torch.arange(float(count)) + rank) / 4).reshape(shape).requires_grad_()

    def both(name: str, function: Callable[..., Any], *leaves: Any) -> None:
        outputs = function(*leaves)
        listed = outputs if isinstance(outputs, list | tuple) else [outputs]
        weights = [(torch.arange(float(x.numel())) + i + rank).reshape(x.shape)
                   for i, x in enumerate(listed)]  # fmt: skip
        sum((x * w).sum() for x, w in zip(listed, weights, strict=True)).backward()
        record(name, lambda: (list(listed), [x.grad for x in leaves]))

    both("all_reduce", F.all_reduce, leaf(3))
    both("all_gather", F.all_gather, leaf(2, 2))
    both("broadcast", lambda x: F.broadcast(x, 1), leaf(3))
    both("reduce", lambda x: F.reduce(x, 0) * (rank == 0), leaf(3))
    both("gather", lambda x: [y * (rank == 0) for y in F.gather(x, 0)], leaf(3))
    both("scatter", lambda *x: F.scatter(x, 1), *[leaf(2) for _ in range(size)])
    both("reduce_scatter", lambda *x: F.reduce_scatter(torch.empty(2), list(x)),
         *[leaf(2) for _ in range(size)])  # fmt: skip
    both("all_to_all", lambda *x: F.all_to_all([torch.empty(2) for _ in x], list(x)),
         *[leaf(2) for _ in range(size)])  # fmt: skip
    both("single", lambda x: F.all_to_all_single(torch.empty(size), x), leaf(size))
