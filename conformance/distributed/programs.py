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
            last = size - 1
            own = numbers(torch, name, (3,), rank)
            record(f"reduce {name} {op_name}",
                   lambda x=own, op=op: (dist.reduce(x, last, op), x)[rank == last])  # fmt: skip
    for name in ("float32", "int64", "bfloat16", "complex64"):
        own = numbers(torch, name, (LARGE,), rank)
        record(f"large {name}", changed(lambda x: dist.all_reduce(x), own))
        own = numbers(torch, name, (LARGE,), rank)
        record(f"large reduce {name}", lambda own=own: (dist.reduce(own, 0), own)[rank == 0])


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
