"""Tensors and modules to the processes of a mesh, and new distributed tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flambeau._core.layout import contiguous_strides
from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.grad_mode import no_grad
from flambeau.distributed import collectives
from flambeau.distributed.device_mesh import DeviceMesh, active_mesh
from flambeau.distributed.placements import Placement, Replicate, Shard
from flambeau.distributed.tensor import spec as specs
from flambeau.distributed.tensor.dtensor import DTensor
from flambeau.distributed.tensor.moving import Line, padded, part
from flambeau.distributed.tensor.moving import as_term as term
from flambeau.distributed.tensor.spec import Placements, Spec
from flambeau.nn.module import Module
from flambeau.nn.parameter import Parameter


def distribute_tensor(tensor: Tensor, device_mesh: DeviceMesh | None = None,
                      placements: Sequence[Placement] | None = None, *,
                      src_data_rank: int | None = 0) -> DTensor:  # fmt: skip
    """A tensor that all processes have, as a distributed one with the values of one of them.

    Args:
        tensor: of the same shape on all processes; a leaf.
        device_mesh: the mesh; that of the `with` statement by default.
        placements: how it has to lie along each dim of the mesh; copies by default.
        src_data_rank: along each dim, whose values are sent; None: everybody takes from its own.

    Raises:
        RuntimeError: the tensor is no leaf. ValueError: placements do not fit the mesh, or it is
            distributed in another way.
    """
    mesh = device_mesh or active_mesh()
    if isinstance(tensor, DTensor):
        return _as_it_is(tensor, mesh, placements)
    if not tensor.is_leaf:
        raise RuntimeError(
            "`distribute_tensor` should be used to distribute leaf tensors! but found non-leaf "
            "tensor!"
        )
    placed = specs.checked(placements, mesh, tensor.ndim)
    spec = Spec(mesh, placed, tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype)
    with no_grad():
        local = _sent(tensor.detach(), spec, src_data_rank)
    return DTensor(local, spec, requires_grad=tensor.requires_grad)  # type: ignore[no-any-return]


def _as_it_is(tensor: DTensor, mesh: DeviceMesh, placements: Any) -> DTensor:
    if tensor._spec.mesh != mesh:
        raise ValueError(f"Cannot distribute a DTensor with device mesh {tensor._spec.mesh} to a "
                         f"different device mesh {mesh}.")  # fmt: skip
    if specs.checked(placements, mesh, tensor.ndim) != tensor._spec.placements:
        raise ValueError(
            f"Cannot distribute a DTensor with placements {tensor._spec.placements} to a "
            f"different placements {placements}. do you want to call `redistribute` instead?"
        )
    return tensor


def _sent(local: Any, spec: Spec, source: int | None) -> Any:
    """This process's part of the tensor of one of them."""
    sizes = list(spec.shape)
    for dim, placement in enumerate(spec.placements):
        line = Line(spec.mesh, dim, list(sizes))
        if isinstance(placement, Shard):
            local = _scattered(local, placement.dim, line, source)
            sizes[placement.dim] = line.lengths(placement.dim)[line.place]
            continue
        if source is not None:
            local = local.clone()
            collectives.broadcast(local, line.group._ranks[source], line.group)
        if not isinstance(placement, Replicate):
            local = term(local, Replicate(), placement, line)
    return local


def _scattered(local: Any, dim: int, line: Line, source: int | None) -> Any:
    if source is None:
        return part(local, Replicate(), Shard(dim), line)
    lengths = line.lengths(dim)
    pieces = [padded(piece, dim, lengths[0]).contiguous() for piece in local.split(lengths, dim)]
    own = ops.empty_like(pieces[0])
    given = pieces if line.place == source else None
    collectives.scatter(own, given, line.group._ranks[source], line.group)
    return own.narrow(dim, 0, lengths[line.place]).contiguous()


def distribute_module(module: Module, device_mesh: DeviceMesh | None = None,
                      partition_fn: Callable[[str, Module, DeviceMesh], None] | None = None,
                      input_fn: Callable[..., Any] | None = None,
                      output_fn: Callable[..., Any] | None = None) -> Module:  # fmt: skip
    """A module whose parameters and buffers are distributed, in place.

    Args:
        partition_fn: called for each submodule, with its name; what it leaves as it is becomes
            copies on all processes.
        input_fn: called with the module, its inputs and the mesh before each call; gives inputs.
        output_fn: the same after each call, for outputs.
    """
    mesh = device_mesh or active_mesh()
    for name, child in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, child, mesh)
        _replicate(child, mesh)
    if input_fn is not None:
        module.register_forward_pre_hook(lambda owner, inputs: input_fn(owner, inputs, mesh))
    if output_fn is not None:
        module.register_forward_hook(lambda owner, _, outputs: output_fn(owner, outputs, mesh))
    return module


def _replicate(module: Module, mesh: DeviceMesh) -> None:
    for name, parameter in list(module._parameters.items()):
        if parameter is not None and not isinstance(parameter, DTensor):
            made = distribute_tensor(parameter.detach(), mesh)
            module.register_parameter(name, Parameter(made, parameter.requires_grad))
    for name, buffer in list(module._buffers.items()):
        if buffer is not None and not isinstance(buffer, DTensor):
            module._buffers[name] = distribute_tensor(buffer, mesh)


# ---- new ones


def zeros(*size: Any, requires_grad: bool = False, dtype: Any = None, layout: Any = None,
          device_mesh: DeviceMesh | None = None,
          placements: Sequence[Placement] | None = None) -> DTensor:  # fmt: skip
    """A distributed tensor of zeros; every process makes its part."""
    return _made(ops.zeros, size, (), dtype, requires_grad, device_mesh, placements)


def ones(*size: Any, dtype: Any = None, layout: Any = None, requires_grad: bool = False,
         device_mesh: DeviceMesh | None = None,
         placements: Sequence[Placement] | None = None) -> DTensor:  # fmt: skip
    """A distributed tensor of ones; every process makes its part."""
    return _made(ops.ones, size, (), dtype, requires_grad, device_mesh, placements)


def empty(*size: Any, dtype: Any = None, layout: Any = None, requires_grad: bool = False,
          device_mesh: DeviceMesh | None = None,
          placements: Sequence[Placement] | None = None) -> DTensor:  # fmt: skip
    """A distributed tensor whose values are not set."""
    return _made(ops.empty, size, (), dtype, requires_grad, device_mesh, placements)


def full(size: Any, fill_value: Any, *, dtype: Any = None, layout: Any = None,
         requires_grad: bool = False, device_mesh: DeviceMesh | None = None,
         placements: Sequence[Placement] | None = None) -> DTensor:  # fmt: skip
    """A distributed tensor of one value."""
    return _made(ops.full, (size,), (fill_value,), dtype, requires_grad, device_mesh, placements)


def rand(*size: Any, requires_grad: bool = False, dtype: Any = None, layout: Any = None,
         device_mesh: DeviceMesh | None = None,
         placements: Sequence[Placement] | None = None) -> DTensor:  # fmt: skip
    """Numbers between 0 and 1, as the first process draws the whole tensor."""
    return _drawn(ops.rand, size, dtype, requires_grad, device_mesh, placements)


def randn(*size: Any, requires_grad: bool = False, dtype: Any = None, layout: Any = None,
          device_mesh: DeviceMesh | None = None,
          placements: Sequence[Placement] | None = None) -> DTensor:  # fmt: skip
    """Normally distributed numbers, as the first process draws the whole tensor."""
    return _drawn(ops.randn, size, dtype, requires_grad, device_mesh, placements)


def _sizes(size: Any) -> tuple[int, ...]:
    return tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else tuple(size)


def _made(factory: Any, size: Any, values: Any, dtype: Any, requires_grad: bool, mesh: Any,
          placements: Any) -> DTensor:  # fmt: skip
    mesh, shape = mesh or active_mesh(), _sizes(size)
    placed: Placements = specs.checked(placements, mesh, len(shape))
    local_shape = specs.local_shape_and_offset(shape, mesh, placed)[0]
    local = factory(local_shape, *values, dtype=dtype)
    spec = Spec(mesh, placed, shape, tuple(contiguous_strides(shape)), local.dtype)
    return DTensor(local, spec, requires_grad=requires_grad)  # type: ignore[no-any-return]


def _drawn(factory: Any, size: Any, dtype: Any, requires_grad: bool, mesh: Any,
           placements: Any) -> DTensor:  # fmt: skip
    whole = factory(_sizes(size), dtype=dtype)
    return distribute_tensor(whole, mesh, placements).requires_grad_(requires_grad)  # type: ignore[return-value]
