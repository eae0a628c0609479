"""`DTensor`: a tensor of which several processes have a part, a copy or a term each.

It is a wrapper with `__torch_dispatch__`: operators below autograd come to `operators.run`, which
knows where their tensors have to lie. So gradients are distributed tensors, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flambeau._tensor import overriding
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.function import Function
from flambeau.autograd.grad_mode import no_grad
from flambeau.distributed import collectives
from flambeau.distributed.device_mesh import DeviceMesh, active_mesh
from flambeau.distributed.placements import Partial, Placement, Replicate, Shard
from flambeau.distributed.tensor import spec as specs
from flambeau.distributed.tensor.moving import moved
from flambeau.distributed.tensor.spec import Placements, Spec

WHAT_LOCAL = "the local_tensor argument only accepts torch.Tensor but got {} value."


class DTensor(Tensor):
    """A tensor of the processes of a mesh. Its shape is that of the whole.

    `distribute_tensor`, `DTensor.from_local` and the factories of `torch.distributed.tensor` make
    them; operators on them give others. `Shard(d)` means that each process along a dim of the mesh
    has a part along dim d, `Replicate()` that each has all of it, `Partial()` that each has a
    term of a sum.
    """

    __module__ = "torch.distributed.tensor"
    __torch_function__ = staticmethod(overriding.disabled)
    _local_tensor: Tensor
    _spec: Spec

    @staticmethod
    def __new__(cls: Any, local_tensor: Any, spec: Spec, *, requires_grad: bool = False) -> Any:
        """A part under the name of the whole; `spec` says of what."""
        made = Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls, spec.shape, strides=spec.stride, dtype=spec.dtype, device=local_tensor.device,
            requires_grad=requires_grad,
        )  # fmt: skip
        made._local_tensor, made._spec = local_tensor, spec
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        from flambeau.distributed.tensor import operators

        return operators.run(func, args, kwargs or {})

    def __repr__(self) -> str:
        return (f"DTensor(local_tensor={self._local_tensor}, device_mesh={self._spec.mesh}, "
                f"placements={self._spec.placements})")  # fmt: skip

    __str__ = __repr__

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        known = memo.get(id(self))
        if known is None:
            local = self._local_tensor.detach().clone()
            known = memo[id(self)] = DTensor(local, self._spec, requires_grad=self.requires_grad)
            known._is_param = getattr(self, "_is_param", False)
        return known

    def __create_chunk_list__(self) -> list[Any]:
        """Where this process's part lies, for `torch.distributed.checkpoint`."""
        from flambeau._core.layout import Size
        from flambeau.distributed.checkpoint.metadata import ChunkStorageMetadata
        from flambeau.distributed.tensor.spec import local_shape_and_offset

        spec = self._spec
        if any(type(p) not in (Shard, Replicate) for p in spec.placements):
            raise NotImplementedError(f"checkpoints of tensors that lie as {spec.placements}")
        shape, offset = local_shape_and_offset(spec.shape, spec.mesh, spec.placements)
        return [ChunkStorageMetadata(Size(offset), Size(shape))]

    def __create_write_items__(self, fqn: str, tensor: Any) -> list[Any]:
        """What a checkpoint writes of it."""
        from flambeau.distributed.checkpoint import metadata, planner

        (chunk,) = self.__create_chunk_list__()
        properties = metadata.TensorProperties.create_from_tensor(self._local_tensor)
        data = planner.TensorWriteData(chunk, properties, self.size())
        index = metadata.MetadataIndex(fqn, chunk.offsets)
        return [planner.WriteItem(index, planner.WriteItemType.SHARD, tensor_data=data)]

    def __get_tensor_shard__(self, index: Any) -> Any:
        """The part that a checkpoint reads or writes."""
        return self._local_tensor

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _rebuilt, (self._local_tensor, self._spec, self.requires_grad)

    @property
    def device_mesh(self) -> DeviceMesh:
        """The mesh of the processes that have it."""
        return self._spec.mesh

    @property
    def placements(self) -> Placements:
        """How it lies along each dim of the mesh."""
        return self._spec.placements

    @staticmethod
    def from_local(local_tensor: Tensor, device_mesh: DeviceMesh | None = None,
                   placements: Sequence[Placement] | None = None, *, run_check: bool = False,
                   shape: Any = None, stride: Any = None,
                   grad_placements: Sequence[Placement] | None = None) -> DTensor:  # fmt: skip
        """What every process has, as one tensor.

        Args:
            local_tensor: this process's part, copy or term.
            device_mesh: the mesh; that of the `with` statement by default.
            placements: how it lies along each dim of the mesh; copies by default.
            run_check: make copies the same as the first process's.
            shape, stride: of the whole, where parts are not of the same size.
            grad_placements: where the gradient has to lie on its way back.

        Raises:
            RuntimeError: it is distributed already, or there is no such dim.
        """
        if isinstance(local_tensor, DTensor) or not isinstance(local_tensor, Tensor):
            raise RuntimeError(WHAT_LOCAL.format(type(local_tensor)))
        if (shape is None) != (stride is None):
            raise RuntimeError(f"Found shape:{shape}, stride:{stride}.",
                               "Please pass both shape and stride at the same time.")  # fmt: skip
        mesh = device_mesh or active_mesh()
        placed = list(placements) if placements is not None else [Replicate()] * mesh.ndim
        for place, placement in enumerate(placed):
            if isinstance(placement, Shard) and placement.dim >= local_tensor.ndim:
                raise RuntimeError(
                    f"Sharding dim {placement.dim} greater than tensor ndim {local_tensor.ndim} "
                    f"for placement number {place}"
                )
        found = specs.checked(placed, mesh, local_tensor.ndim)
        if shape is None:
            shape, stride = specs.whole_shape(local_tensor, mesh, found)
        spec = Spec(mesh, found, tuple(shape), tuple(stride), local_tensor.dtype)
        return _FromTorchTensor.apply(local_tensor, spec, run_check, grad_placements)  # type: ignore[no-any-return]

    def to_local(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """This process's part, copy or term.

        Args:
            grad_placements: how the gradients of all processes lie; by default as this does, and as
                copies where it has terms.
        """
        return _ToTorchTensor.apply(self, grad_placements)  # type: ignore[no-any-return]

    def full_tensor(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """All of it, on every process."""
        whole = self.redistribute(placements=[Replicate()] * self._spec.mesh.ndim)
        return whole.to_local(grad_placements=grad_placements)

    def redistribute(self, device_mesh: DeviceMesh | None = None,
                     placements: Sequence[Placement] | None = None, *, async_op: bool = False,
                     forward_dtype: Any = None, backward_dtype: Any = None) -> DTensor:  # fmt: skip
        """The same tensor at other places.

        Args:
            device_mesh: the mesh that it is on.
            placements: where it has to lie along each dim of the mesh.
            async_op: whether it may still be under way: it has come in any case.
            forward_dtype, backward_dtype: types on the way there, and of gradients on the way back.

        Raises:
            RuntimeError: no placements, or terms are asked for. NotImplementedError: another mesh.
        """
        if placements is None:
            raise RuntimeError("placements is needed for redistribute!")
        mesh = device_mesh or self._spec.mesh
        if mesh != self._spec.mesh:
            raise NotImplementedError("Cross device mesh comm not supported yet!")
        wanted = specs.checked(placements, mesh, self.ndim)
        for before, after in zip(self._spec.placements, wanted, strict=True):
            if isinstance(after, Partial) and before != after:
                raise RuntimeError(
                    f"Can not redistribute from {before} to {after}, redistributing to Partial is "
                    "for internal use only!"
                )
        return _Redistribute.apply(self, wanted, forward_dtype, backward_dtype)  # type: ignore[no-any-return]


def _rebuilt(local: Tensor, spec: Spec, requires_grad: bool) -> DTensor:
    return DTensor(local, spec, requires_grad=requires_grad)  # type: ignore[no-any-return]


@no_grad()
def at(tensor: DTensor, placements: Placements) -> DTensor:
    """A distributed tensor at other places, without a record of it; itself if it lies there."""
    if tensor._spec.placements == placements:
        return tensor
    local = moved(tensor._local_tensor, tensor._spec, placements)
    return DTensor(local, tensor._spec.placed(placements))  # type: ignore[no-any-return]


class _FromTorchTensor(Function):
    @staticmethod
    def forward(ctx: Any, local: Any, spec: Spec, check: bool, grad_placements: Any) -> Any:
        ctx.placements = tuple(grad_placements or specs.for_gradient(spec.placements))
        if check:
            local = local.clone()
            for dim, placement in enumerate(spec.placements):
                if isinstance(placement, Replicate):
                    group = spec.mesh.get_group(dim)
                    collectives.broadcast(local, group._ranks[0], group)
        return DTensor(local.detach(), spec)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return at(grad, ctx.placements)._local_tensor, None, None, None


class _ToTorchTensor(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Any, grad_placements: Any) -> Any:
        ctx.spec = tensor._spec
        ctx.placements = tuple(grad_placements or specs.for_gradient(tensor._spec.placements))
        return tensor._local_tensor.detach()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return DTensor(grad, ctx.spec.placed(ctx.placements)), None


class _Redistribute(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Any, wanted: Placements, forward_dtype: Any,
                backward_dtype: Any) -> Any:  # fmt: skip
        ctx.placements = specs.for_gradient(tensor._spec.placements)
        ctx.types = backward_dtype, tensor.dtype
        given = tensor.detach()
        if forward_dtype is not None:
            given = given.to(forward_dtype)
        local = moved(given._local_tensor, given._spec, wanted)
        if local is tensor._local_tensor:
            local = local.detach()
        return DTensor(local, given._spec.placed(wanted))

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        on_the_way, own = ctx.types
        if on_the_way is not None:
            grad = grad.to(on_the_way)
        found = at(grad, ctx.placements)
        return (found if found.dtype is own else found.to(own)), None, None, None
