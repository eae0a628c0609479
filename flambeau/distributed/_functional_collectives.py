"""Collectives that return new tensors, and let gradients through.

Each begins a collective and returns an `AsyncCollectiveTensor`, which waits for it when its
elements are first needed. A group is a ProcessGroup, its name, a DeviceMesh of one dim, a mesh with
the number of a dim, or the ranks of a group that exists.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flambeau._core.missing import missing
from flambeau._ops.table.namespace import ops
from flambeau._tensor import overriding
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.function import Function
from flambeau.autograd.grad_mode import no_grad
from flambeau.distributed import collectives
from flambeau.distributed.device_mesh import DeviceMesh
from flambeau.distributed.group import ProcessGroup
from flambeau.distributed.reduce_op import RedOpType, supports_complex
from flambeau.distributed.world import State, the_group
from flambeau.utils._pytree import tree_map

OPERATIONS = {
    "sum": RedOpType.SUM, "avg": RedOpType.AVG, "product": RedOpType.PRODUCT, "min": RedOpType.MIN,
    "max": RedOpType.MAX, "band": RedOpType.BAND, "bor": RedOpType.BOR, "bxor": RedOpType.BXOR,
}  # fmt: skip


class AsyncCollectiveTensor(Tensor):
    """What a collective will give: it waits when its elements are needed.

    Views do not need them. Other operators give plain tensors.
    """

    __module__ = "torch.distributed._functional_collectives"
    __torch_function__ = staticmethod(overriding.disabled)
    elem: Any
    completed: bool
    _pending: Any

    @staticmethod
    def __new__(cls: Any, elem: Any, work: Any = None) -> Any:
        """A tensor that `work`, if it is not None, has yet to fill."""
        made = Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls, elem.size(), strides=elem.stride(), storage_offset=elem.storage_offset(),
            dtype=elem.dtype, device=elem.device, requires_grad=False,
        )  # fmt: skip
        made.elem, made._pending, made.completed = elem, work, work is None
        return made

    def trigger_wait(self) -> Any:
        """The elements, once they are there."""
        if not self.completed:
            self._pending.wait()
            self.completed = True
        return self.elem

    def wait(self) -> Any:
        """The elements as a plain tensor, once they are there."""
        return wait_tensor(self)

    def tolist(self) -> Any:
        """The elements as lists."""
        return self.trigger_wait().tolist()

    def numpy(self, *args: Any, **kwargs: Any) -> Any:
        """The elements as an array."""
        return self.trigger_wait().numpy(*args, **kwargs)

    def _get_acs_underlying_tensor(self) -> Any:
        """The elements, be they there or not."""
        return self.elem

    def __repr__(self) -> str:
        return f"AsyncCollectiveTensor({self.trigger_wait()})"

    __str__ = __repr__

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.is_view and type(args[0]) is AsyncCollectiveTensor:
            return _viewed(func, args, kwargs or {})
        return func(*tree_map(_plain, args), **tree_map(_plain, kwargs or {}))


def _plain(value: Any) -> Any:
    return value.trigger_wait() if isinstance(value, AsyncCollectiveTensor) else value


def _viewed(func: Any, args: Any, kwargs: Any) -> Any:
    """Views of what is not there yet."""
    first = args[0]
    views = func(first.elem, *args[1:], **kwargs)
    pending = None if first.completed else first._pending
    if isinstance(views, Tensor):
        return AsyncCollectiveTensor(views, pending)
    return type(views)(AsyncCollectiveTensor(each, pending) for each in views)


def wait_tensor(tensor: Tensor) -> Any:
    """The elements of what a collective returned, once they are there; other tensors themselves.

    Example:
        >>> import flambeau as torch
        >>> wait_tensor(torch.ones(2))
        tensor([1., 1.])
    """
    return _Wait.apply(tensor) if isinstance(tensor, AsyncCollectiveTensor) else tensor


class _Wait(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Any) -> Any:
        return tensor.trigger_wait()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad


# ---- groups and operations


def _team(group: Any) -> ProcessGroup:
    """The group that an argument stands for."""
    if isinstance(group, ProcessGroup | str):
        return the_group(group)
    if isinstance(group, DeviceMesh):
        if group.ndim != 1:
            raise AssertionError(
                "Only 1D mesh is supported, pass in (DeviceMesh, int) together if mesh > 1D"
            )
        return group.get_group()
    if isinstance(group, tuple) and len(group) == 2 and isinstance(group[0], DeviceMesh):
        return group[0].get_group(group[1])
    if isinstance(group, list) and group:
        return _of_ranks(group)
    raise ValueError(f"Unsupported group type: {type(group)}, {group}")


def _of_ranks(given: list[Any]) -> ProcessGroup:
    """The group of ranks, or of that line of a table in which this process is."""
    own = the_group(None).rank()
    lines = given if isinstance(given[0], list) else [given]
    ranks = next((line for line in lines if own in line), None)
    for known in State.groups.values():
        if ranks is not None and known._ranks == tuple(ranks):
            return known
    raise ValueError(f"There is no process group of the ranks {ranks or given}: make it first")


def _operation(what: str, name: str, tensor: Tensor) -> RedOpType:
    found = OPERATIONS.get(name.lower())
    if found is None:
        raise RuntimeError(f"Unrecognized reduce_op: {name.lower()}")
    if tensor.dtype.is_complex and not supports_complex(found):
        raise RuntimeError(f"{what}: reduce_op {name.lower()} does not support complex tensors")
    return found


def _only_sum(what: str, name: str) -> None:
    """Raise PyTorch's error if a reduction has no gradient."""
    if name.lower() != "sum":
        raise RuntimeError(f"{what} backward only supports 'sum' reduction, got '{name.lower()}'")


def _begun(output: Any, start: Callable[..., Any], *args: Any) -> Any:
    return AsyncCollectiveTensor(output, start(*args, async_op=True))


def _ready(tensor: Any) -> Any:
    """The elements, one after another."""
    return _plain(tensor).detach().contiguous()


def _longer(tensor: Any, factor: int) -> Any:
    """Memory for a tensor whose first dim is longer."""
    shape = tensor.shape
    first = shape[0] * factor if shape else factor
    return ops.empty((first, *shape[1:]), dtype=tensor.dtype, device=tensor.device)


# ---- all_reduce


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Any, name: str, team: Any) -> Any:
        ctx.name, ctx.team = name, team
        result = _ready(tensor).clone()
        operation = _operation("all_reduce", name, result)
        return _begun(result, collectives.all_reduce, result, operation, team)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        _only_sum("all_reduce", ctx.name)
        return wait_tensor(all_reduce(grad, ctx.name, ctx.team)), None, None


def all_reduce(self: Tensor, reduceOp: str, group: Any, tag: str = "") -> Any:  # noqa: N803
    """The tensors of all, reduced by "sum", "avg", "max" and so on.

    Example:
        >>> import flambeau as torch
        >>> import flambeau.distributed as dist
        >>> dist.init_process_group("fake", rank=0, world_size=2)
        >>> all_reduce(torch.ones(2), "sum", dist.group.WORLD)  # the backend sends nothing
        AsyncCollectiveTensor(tensor([1., 1.]))
        >>> dist.destroy_process_group()
    """
    return _AllReduce.apply(self, reduceOp, _team(group))


def all_reduce_coalesced(self: list[Tensor], reduceOp: str, group: Any,  # noqa: N803
                         tag: str = "") -> list[Any]:  # fmt: skip
    """`all_reduce` of each of some tensors."""
    return [all_reduce(each, reduceOp, group, tag) for each in self]


# ---- all_gather


class _AllGather(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Any, team: Any) -> Any:
        ctx.team = team
        source = _ready(tensor)
        result = _longer(source, team.size())
        return _begun(result, collectives.all_gather_into_tensor, result, source, team)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return wait_tensor(reduce_scatter_tensor(grad, "sum", 0, ctx.team)), None


def all_gather_tensor(self: Tensor, gather_dim: int, group: Any, tag: str = "") -> Any:
    """The tensors of all, one after another along a dim.

    Example:
        >>> import flambeau as torch
        >>> import flambeau.distributed as dist
        >>> dist.init_process_group("fake", rank=0, world_size=2)
        >>> all_gather_tensor(torch.ones(1, 2), 1, dist.group.WORLD).shape
        torch.Size([1, 4])
        >>> dist.destroy_process_group()
    """
    team = _team(group)
    dim = _dim(self, gather_dim)
    gathered = _AllGather.apply(self, team)
    if dim == 0:
        return gathered
    return ops.cat(wait_tensor(gathered).chunk(team.size()), dim)


def _dim(tensor: Any, dim: int) -> int:
    count = max(tensor.dim(), 1)
    if not -count <= dim < count:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-count}, {count - 1}], but got "
            f"{dim})"
        )
    return dim % count


def all_gather_into_tensor_coalesced(self: list[Tensor], group: Any,
                                     tag: str = "") -> list[Any]:  # fmt: skip
    """`all_gather_tensor` of each of some tensors, along the first dim."""
    return [all_gather_tensor(each, 0, group, tag) for each in self]


# ---- reduce_scatter


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Any, name: str, team: Any) -> Any:
        ctx.name, ctx.team = name, team
        source = _ready(tensor)
        shape = (source.shape[0] // team.size(), *source.shape[1:])
        result = ops.empty(shape, dtype=source.dtype, device=source.device)
        operation = _operation("reduce_scatter_tensor", name, source)
        start = collectives.reduce_scatter_tensor
        return _begun(result, start, result, source, operation, team)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        _only_sum("reduce_scatter_tensor", ctx.name)
        return wait_tensor(all_gather_tensor(grad, 0, ctx.team)), None, None


def reduce_scatter_tensor(self: Tensor, reduceOp: str, scatter_dim: int, group: Any,  # noqa: N803
                          tag: str = "") -> Any:  # fmt: skip
    """This process's part, along a dim, of the tensors of all, reduced.

    Raises:
        AssertionError: the dim cannot be divided by the number of processes.

    Example:
        >>> import flambeau as torch
        >>> import flambeau.distributed as dist
        >>> dist.init_process_group("fake", rank=0, world_size=2)
        >>> reduce_scatter_tensor(torch.arange(4.0), "sum", 0, dist.group.WORLD).tolist()
        [0.0, 1.0]
        >>> dist.destroy_process_group()
    """
    team = _team(group)
    _check_divides(self, scatter_dim, team.size(), "")
    return _scattered(self, reduceOp, scatter_dim, team)


def _check_divides(tensor: Any, dim: int, size: int, where: str) -> None:
    if tensor.shape[dim] % size:
        shown = (dim, tensor.shape[dim]) if where else (0, tensor.shape[0])
        end = where or ")"
        raise AssertionError(
            f"input dimension {shown[0]} ({shown[1]} must be a multiple of group_size {size}{end}"
        )


def _scattered(tensor: Any, name: str, dim: int, team: ProcessGroup) -> Any:
    if _dim(tensor, dim):
        tensor = ops.cat(wait_tensor(tensor).chunk(team.size(), dim))
    return _ReduceScatter.apply(tensor, name, team)


def reduce_scatter_tensor_coalesced(inputs: list[Tensor], reduceOp: str,  # noqa: N803
                                    scatter_dim: list[int], group: Any,
                                    tag: str = "") -> list[Any]:  # fmt: skip
    """`reduce_scatter_tensor` of each of some tensors, along a dim of its own."""
    team = _team(group)
    for number, (each, dim) in enumerate(zip(inputs, scatter_dim, strict=True)):
        _check_divides(each, dim, team.size(), f" for tensor at index {number}")
    return [_scattered(each, reduceOp, dim, team)
            for each, dim in zip(inputs, scatter_dim, strict=True)]  # fmt: skip


# ---- all_to_all


class _AllToAll(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Any, taken: Any, given: Any, team: Any) -> Any:
        ctx.taken, ctx.given, ctx.team = taken, given, team
        source = _ready(tensor)
        if given is None:
            taken = given = [source.shape[0] // team.size()] * team.size()
        shape = source.shape if taken is given else (sum(taken), *source.shape[1:])
        result = ops.empty(shape, dtype=source.dtype, device=source.device)
        return _begun(result, collectives.all_to_all_single, result, source, taken, given, team)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        back = all_to_all_single(grad, ctx.given, ctx.taken, ctx.team)
        return wait_tensor(back), None, None, None


def all_to_all_single(self: Tensor, output_split_sizes: Sequence[int] | None,
                      input_split_sizes: Sequence[int] | None, group: Any,
                      tag: str = "") -> Any:  # fmt: skip
    """Parts of a tensor, along the first dim, to each rank, and from each.

    Example:
        >>> import flambeau as torch
        >>> import flambeau.distributed as dist
        >>> dist.init_process_group("fake", rank=0, world_size=2)
        >>> all_to_all_single(torch.ones(4, 3), None, None, dist.group.WORLD).shape
        torch.Size([4, 3])
        >>> dist.destroy_process_group()
    """
    if (output_split_sizes is None) != (input_split_sizes is None):
        raise AssertionError(
            "output_split_sizes and input_split_sizes must either be specified together or both "
            "set to None"
        )
    return _AllToAll.apply(self, output_split_sizes, input_split_sizes, _team(group))


# ---- broadcast, permute


class _Broadcast(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Any, src: int, team: Any) -> Any:
        ctx.src, ctx.team = src, team
        result = _ready(tensor).clone()
        return _begun(result, collectives.broadcast, result, src, team)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        total = _ready(grad).clone()
        with no_grad():
            collectives.reduce(total, ctx.src, group=ctx.team)
        is_root = ctx.team._ranks[ctx.team.rank()] == ctx.src
        return total if is_root else ops.zeros_like(total), None, None


def broadcast(self: Tensor, src: int, group: Any, tag: str = "") -> Any:
    """The tensor of rank `src`. Backward: the gradients of all, summed, to it.

    Example:
        >>> import flambeau as torch
        >>> import flambeau.distributed as dist
        >>> dist.init_process_group("fake", rank=0, world_size=2)
        >>> broadcast(torch.ones(2), 0, dist.group.WORLD).wait()
        tensor([1., 1.])
        >>> dist.destroy_process_group()
    """
    return _Broadcast.apply(self, src, _team(group))


def permute_tensor(self: Tensor, src_dst: list[int], group: Any, tag: str = "") -> Any:
    """Rank m's tensor to rank `src_dst[m]`.

    Raises:
        RuntimeError: it is no permutation.

    Example:
        >>> import flambeau as torch
        >>> import flambeau.distributed as dist
        >>> dist.init_process_group("fake", rank=0, world_size=2)
        >>> permute_tensor(torch.ones(2), [1, 0], dist.group.WORLD).shape
        torch.Size([2])
        >>> dist.destroy_process_group()
    """
    team = _team(group)
    size, own = team.size(), team.rank()
    if sorted(src_dst) != list(range(size)):
        raise RuntimeError(f"src_dst has to name each of the {size} ranks once, got {src_dst}")
    count = self.numel()
    given, taken = [0] * size, [0] * size
    given[src_dst[own]] = taken[src_dst.index(own)] = count
    return _AllToAll.apply(self.reshape(-1), taken, given, team).view(self.shape)


all_gather_tensor_autograd = all_gather_tensor
reduce_scatter_tensor_autograd = reduce_scatter_tensor
all_to_all_single_autograd = all_to_all_single
all_gather_single = all_gather_single_autograd = all_gather_tensor
reduce_scatter_single = reduce_scatter_single_autograd = reduce_scatter_tensor
all_gather_single_coalesced = all_gather_into_tensor_coalesced
reduce_scatter_single_coalesced = reduce_scatter_tensor_coalesced


def __getattr__(name: str) -> Any:
    return missing("torch.distributed._functional_collectives", name)
