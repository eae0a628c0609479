"""Every collective in every form: in threads, in groups of some, coalesced, of parts of tensors."""

from __future__ import annotations

import functools
import importlib
from collections import OrderedDict
from typing import Any

from conformance.distributed.programs import LARGE, OPERATIONS, TYPES, model, numbers, rounded


def _module(torch: Any, name: str) -> Any:
    return importlib.import_module(f"{torch.__name__}.distributed.{name}")


class Forms:
    """What every collective needs: a group, its ranks, and whether it runs in a thread."""

    def __init__(self, torch: Any, dist: Any, group: Any, ranks: list[int], is_async: bool,
                 is_strided: bool) -> None:  # fmt: skip
        self.torch, self.dist, self.group, self.ranks = torch, dist, group, ranks
        self.is_async, self.is_strided = is_async, is_strided
        self.rank, self.size = dist.get_rank(group), len(ranks)

    def own(self, name: str, shape: tuple[int, ...]) -> Any:
        """Numbers of this rank."""
        return self.placed(numbers(self.torch, name, shape, self.rank))

    def placed(self, tensor: Any) -> Any:
        """The same elements; with `is_strided`, between others, for us: gloo takes none such."""
        if not self.is_strided or self.torch.__name__ == "torch" or not tensor.dim():
            return tensor
        room = self.torch.zeros(*tensor.shape[:-1], 2 * tensor.shape[-1], dtype=tensor.dtype)
        room[..., ::2] = tensor
        return room[..., ::2]

    def empty(self, tensor: Any, count: int = 1) -> list[Any]:
        """Places for results."""
        return [self.placed(self.torch.zeros(tensor.shape, dtype=tensor.dtype))
                for _ in range(count)]  # fmt: skip

    def done(self, work: Any) -> None:
        """Wait, where there is something to wait for."""
        if work is not None:
            work.wait()

    def args(self) -> dict[str, Any]:
        """Arguments that all have."""
        return {"group": self.group, "async_op": self.is_async}

    # ---- the collectives

    def all_reduce(self, x: Any, op: Any) -> Any:
        self.done(self.dist.all_reduce(x, op, **self.args()))
        return x

    def reduce(self, x: Any, op: Any) -> Any:
        root = self.ranks[-1]
        self.done(self.dist.reduce(x, root, op, **self.args()))
        return x if self.dist.get_rank() == root else None

    def broadcast(self, x: Any) -> Any:
        self.done(self.dist.broadcast(x, self.ranks[-1], **self.args()))
        return x

    def all_gather(self, x: Any) -> Any:
        outputs = self.empty(x, self.size)
        self.done(self.dist.all_gather(outputs, x, **self.args()))
        return outputs

    def all_gather_into_tensor(self, x: Any) -> Any:
        [output] = self.empty(self.torch.cat([x] * self.size))
        self.done(self.dist.all_gather_into_tensor(output, x, **self.args()))
        return output

    def gather(self, x: Any) -> Any:
        is_root = self.dist.get_rank() == self.ranks[0]
        outputs = self.empty(x, self.size) if is_root else None
        self.done(self.dist.gather(x, outputs, self.ranks[0], **self.args()))
        return outputs

    def scatter(self, x: Any) -> Any:
        is_root = self.dist.get_rank() == self.ranks[0]
        inputs = [self.placed(x.clone()) for _ in self.ranks] if is_root else None
        [output] = self.empty(x)
        self.done(self.dist.scatter(output, inputs, self.ranks[0], **self.args()))
        return output

    def reduce_scatter(self, x: Any, op: Any) -> Any:
        inputs = [self.placed(x.clone()) for _ in self.ranks]
        [output] = self.empty(x)
        self.done(self.dist.reduce_scatter(output, inputs, op, **self.args()))
        return output

    def reduce_scatter_tensor(self, x: Any, op: Any) -> Any:
        [output] = self.empty(x)
        whole = self.placed(self.torch.cat([x] * self.size))
        self.done(self.dist.reduce_scatter_tensor(output, whole, op, **self.args()))
        return output

    def all_to_all(self, x: Any) -> Any:
        outputs = self.empty(x, self.size)
        inputs = [self.placed(x.clone()) for _ in self.ranks]
        self.done(self.dist.all_to_all(outputs, inputs, **self.args()))
        return outputs

    def all_to_all_single(self, x: Any) -> Any:
        whole = self.placed(self.torch.stack([x] * self.size))
        [output] = self.empty(whole)
        self.done(self.dist.all_to_all_single(output, whole, **self.args()))
        return output

    def splits(self, x: Any) -> Any:
        """Uneven parts along the first dim, some of them empty."""
        table = [[(3 * i + 5 * j) % 3 for j in self.ranks] for i in self.ranks]
        given = table[self.rank]
        taken = [line[self.rank] for line in table]
        source = self.placed(self.torch.stack([x] * sum(given)) if sum(given) else x[None][:0])
        [output] = self.empty(self.torch.stack([x] * sum(taken)) if sum(taken) else x[None][:0])
        self.done(self.dist.all_to_all_single(output, source, taken, given, **self.args()))
        return output

    def all_reduce_coalesced(self, x: Any, op: Any) -> Any:
        tensors = [x, self.placed(x.clone())]
        self.done(self.dist.all_reduce_coalesced(tensors, op, **self.args()))
        return tensors

    def all_gather_coalesced(self, x: Any) -> Any:
        lists = [self.empty(x, 2) for _ in self.ranks]
        inputs = [x, self.placed(x.clone())]
        self.done(self.dist.all_gather_coalesced(lists, inputs, **self.args()))
        return lists

    def ring(self, x: Any) -> Any:
        """To the right, from the left."""
        if self.size == 1:
            return x
        [output] = self.empty(x)
        right, left = self.ranks[(self.rank + 1) % self.size], self.ranks[self.rank - 1]
        operations = [self.dist.P2POp(self.dist.isend, x, right, self.group),
                      self.dist.P2POp(self.dist.irecv, output, left, self.group)]  # fmt: skip
        for work in self.dist.batch_isend_irecv(operations):
            work.wait()
        return output


REDUCING = "all_reduce reduce reduce_scatter reduce_scatter_tensor all_reduce_coalesced".split()
MOVING = (
    "broadcast all_gather all_gather_into_tensor gather scatter all_to_all all_to_all_single "
    "splits all_gather_coalesced ring"
).split()
NOT_OF_EMPTY = ("reduce_scatter_tensor",)
"""Where PyTorch's gloo ends the process that gives it a tensor without elements."""


def _is_left_out(form: str, name: str, op_name: str, shape: tuple[int, ...]) -> bool:
    return form in NOT_OF_EMPTY and 0 in shape


def _every(forms: Forms, record: Any, label: str, types: list[str], shapes: Any) -> None:
    for name in types:
        for shape in shapes:
            for form in MOVING:
                run = functools.partial(_run, forms, form, name, shape)
                record(f"{label} {form} {name} {shape}", run)
            for form in REDUCING:
                for op_name in OPERATIONS:
                    if _is_left_out(form, name, op_name, shape):
                        continue
                    op = getattr(forms.dist.ReduceOp, op_name)
                    run = functools.partial(_run, forms, form, name, shape, op)
                    record(f"{label} {form} {name} {op_name} {shape}", run)


def _run(forms: Forms, form: str, name: str, shape: tuple[int, ...], *more: Any) -> Any:
    return getattr(forms, form)(forms.own(name, shape), *more)


def at_once(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """Every collective on every type, of tensors that lie together."""
    forms = Forms(torch, dist, None, list(range(size)), False, False)
    _every(forms, record, "at once", TYPES, ((3,), (2, 0), (3, 1, 5)))


def threads(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """The same with `async_op`."""
    forms = Forms(torch, dist, None, list(range(size)), True, False)
    _every(forms, record, "async", TYPES, ((7,), (0,)))


def strided(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """Elements between others give what gloo gives for those that lie together."""
    forms = Forms(torch, dist, None, list(range(size)), bool(seed % 2), True)
    _every(forms, record, "strided", TYPES, ((5,), (2, 3), (0, 2)))


def of_some(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """The same in groups of some, in both orders, and of one."""
    kinds = [list(range(size - 1)), list(range(1, size)), [size - 1]]
    groups = [(dist.new_group(ranks), ranks) for ranks in kinds]
    for group, ranks in groups:
        if rank in ranks:
            forms = Forms(torch, dist, group, ranks, bool(len(ranks) % 2), False)
            types = ["int64", "float32", "bfloat16", "bool", "complex64"]
            _every(forms, record, f"of {ranks}", types, ((3,), (LARGE // 4,)))


# ---- collectives that return new tensors


def functional(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """Functional collectives: every operation and type, groups in all ways, gradients, errors."""
    funcol = _module(torch, "_functional_collectives")
    mesh = _module(torch, "device_mesh").init_device_mesh("cpu", (size,))
    world, everybody = dist.group.WORLD, list(range(size))
    groups = {"group": world, "name": world.group_name, "list": everybody, "mesh": mesh,
              "pair": (mesh, 0)}  # fmt: skip
    x = torch.arange(4.0) + rank
    for name, group in groups.items():
        record(name, lambda g=group: funcol.all_reduce(x, "sum", g).wait())
    record("no group", lambda: funcol.all_reduce(x, "sum", None))
    record("no operation", lambda: funcol.all_reduce(x, "mean", world))
    for type_name in TYPES:
        for op_name in ("sum", "MAX", "min", "product", "avg", "band", "bor", "bxor"):
            own = numbers(torch, type_name, (size, 2), rank)
            label = f"{type_name} {op_name}"
            record(f"all_reduce {label}", lambda o=op_name, y=own: _reduced(funcol, y, o, world))
            record(
                f"reduce_scatter {label}",
                lambda o=op_name, y=own: funcol.reduce_scatter_tensor(y, o, 0, world) + 0,
            )
        own = numbers(torch, type_name, (3, 2), rank)
        for dim in (0, 1, -1):
            record(
                f"all_gather {type_name} {dim}",
                lambda d=dim, y=own: _waited(funcol, funcol.all_gather_tensor(y, d, world)),
            )
        record(f"broadcast {type_name}", lambda y=own: funcol.broadcast(y, 1, world).wait())
        around, flat = [(each + 1) % size for each in everybody], own.flatten()
        record(
            f"permute {type_name}",
            lambda y=flat, a=around: funcol.permute_tensor(y, a, world).wait(),
        )
    _functional_lists(torch, funcol, rank, size, record, world)
    _functional_gradients(torch, funcol, rank, size, record, world)


def _waited(funcol: Any, tensor: Any) -> Any:
    return funcol.wait_tensor(tensor)


def _reduced(funcol: Any, tensor: Any, operation: str, group: Any) -> Any:
    before = tensor.clone()
    result = funcol.all_reduce(tensor, operation, group).wait()
    return result, bool((before == tensor).all())


def _functional_lists(torch: Any, funcol: Any, rank: int, size: int, record: Any,
                      world: Any) -> None:  # fmt: skip
    x, wide = torch.arange(4.0) + rank, torch.arange(3.0 * size).reshape(3, size) + rank
    record("coalesced", lambda: [y + 0 for y in funcol.all_reduce_coalesced([x, wide], "sum",
                                                                            world)])  # fmt: skip
    record(
        "gathered",
        lambda: [y + 0 for y in funcol.all_gather_into_tensor_coalesced([x, wide], world)],
    )
    record(
        "scattered",
        lambda: [y + 0 for y in funcol.reduce_scatter_tensor_coalesced([wide], "sum", [1], world)],
    )
    record("odd", lambda: funcol.reduce_scatter_tensor(wide[:, :1], "sum", 1, world))
    given, taken = list(range(size)), [rank] * size
    source = torch.arange(float(sum(given))) + 100 * rank
    record("splits", lambda: funcol.all_to_all_single(source, taken, given, world) + 0)
    record("half", lambda: funcol.all_to_all_single(source, taken, None, world))
    odd = torch.ones(size + 1)
    record("odd parts", lambda: funcol.all_to_all_single(odd, None, None, world))
    waits = funcol.all_reduce(x, "sum", world)
    names = ("view", "slice", "add", "numpy", "list", "type", "clone")
    functions = (
        lambda: type(waits.view(2, 2)).__name__, lambda: waits[1:] + 0, lambda: waits + 1,
        lambda: waits.numpy().tolist(), lambda: waits.tolist(), lambda: type(waits).__name__,
        lambda: type(waits.clone()).__name__,
    )  # fmt: skip
    for name, function in zip(names, functions, strict=True):
        record(name, function)


def _functional_gradients(torch: Any, funcol: Any, rank: int, size: int, record: Any,
                          world: Any) -> None:  # fmt: skip
    def both(function: Any) -> Any:
        leaf = (torch.arange(4.0 * size * size).reshape(2 * size, 2 * size) + rank) / 8
        leaf.requires_grad_()
        output = function(leaf) + 0
        weights = torch.arange(output.numel()).reshape(output.shape) + rank
        (output * weights).sum().backward()
        return output.detach(), leaf.grad

    for op_name in ("sum", "avg", "max"):
        record(
            f"gradient of all_reduce {op_name}",
            lambda o=op_name: both(lambda y: funcol.all_reduce(y, o, world)),
        )
        record(
            f"gradient of reduce_scatter {op_name}",
            lambda o=op_name: both(lambda y: funcol.reduce_scatter_tensor(y, o, 0, world)),
        )
    for dim in (0, 1):
        record(
            f"gradient of all_gather {dim}",
            lambda d=dim: both(lambda y: funcol.all_gather_tensor_autograd(y, d, world)),
        )
        record(f"gradient of reduce_scatter {dim}", lambda d=dim: both(
            lambda y: funcol.reduce_scatter_tensor_autograd(y, "sum", d, world)))  # fmt: skip
    parts = [2] * size
    record("gradient of all_to_all", lambda: both(
        lambda y: funcol.all_to_all_single_autograd(y, parts, parts, world)))  # fmt: skip
    around = [(each + 1) % size for each in range(size)]
    record(
        "gradient of permute",
        lambda: both(lambda y: funcol.permute_tensor(y.flatten(), around, world)),
    )


# ---- averages of parameters


def averages(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """Post-local SGD with its optimizer, averages in a hierarchy, and hooks by their names."""
    hooks = _module(torch, "algorithms.ddp_comm_hooks")
    local = _module(torch, "algorithms.ddp_comm_hooks.post_localSGD_hook")
    averaging = _module(torch, "algorithms.model_averaging.averagers")
    hierarchy = _module(torch, "algorithms.model_averaging.hierarchical_model_averager")
    optim = _module(torch, "optim")
    pair, _ = dist.new_subgroups(size // 2)
    sizes = OrderedDict([(1, size // 2), (4, size)]) if size > 2 else OrderedDict([(2, size)])
    makers = {
        "periods": lambda: averaging.PeriodicModelAverager(period=2, warmup_steps=2),
        "hierarchy": lambda: hierarchy.HierarchicalModelAverager(sizes, warmup_steps=1),
    }
    for label, make in makers.items():
        for averages_gradients in (True, False):
            net = torch.nn.parallel.DistributedDataParallel(model(torch, 0))
            state = local.PostLocalSGDState(None, pair, 2, averages_gradients)
            net.register_comm_hook(state, local.post_localSGD_hook)
            inner = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
            optimizer = optim.PostLocalSGDOptimizer(inner, make())
            for step in range(5):
                optimizer.zero_grad()
                net(_batch(torch, rank, step)).square().mean().backward()
                optimizer.step()
            record(
                f"{label} {averages_gradients}", lambda n=net: [rounded(p) for p in n.parameters()]
            )
            record("state", lambda s=state, o=optimizer: (s.iter, o.state_dict()["step"]))
    for name in ("ALLREDUCE", "FP16_COMPRESS", "NOOP"):
        net = torch.nn.parallel.DistributedDataParallel(model(torch, 0))
        hooks.register_ddp_comm_hook(getattr(hooks.DDPCommHookType, name), net)
        net(_batch(torch, rank, 0)).square().mean().backward()
        record(f"hook {name}", lambda n=net: [rounded(p.grad) for p in n.parameters()])
    wrong = OrderedDict([(2, size + 1)])
    for label, function in (
        ("period", lambda: averaging.PeriodicModelAverager(0)),
        ("warmup", lambda: averaging.PeriodicModelAverager(2, -1)),
        ("none", hierarchy.HierarchicalModelAverager),
        ("last", lambda: hierarchy.HierarchicalModelAverager(wrong)),
    ):
        record(label, lambda f=function: type(f()).__name__)


def _batch(torch: Any, rank: int, step: int) -> Any:
    return (torch.arange(24.0) * (rank + 2) + step).reshape(6, 4) % 5 / 4
