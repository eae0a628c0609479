"""The module around a model that is trained by several processes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from flambeau._core.missing import NotImplementedInFlambeau
from flambeau._core.modes import grad as grad_mode
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.grad_mode import no_grad
from flambeau.distributed import collectives, objects
from flambeau.distributed.algorithms.join import Join, Joinable, JoinHook
from flambeau.distributed.data_parallel.buckets import DEFAULT_MEGABYTES
from flambeau.distributed.data_parallel.builtin_hooks import BuiltinCommHookType
from flambeau.distributed.data_parallel.facts import facts_of
from flambeau.distributed.data_parallel.joining import DataParallelJoinHook, of_all
from flambeau.distributed.data_parallel.reducer import Hook, Reducer, parameters_of
from flambeau.distributed.reduce_op import RedOpType
from flambeau.distributed.world import the_group
from flambeau.nn.module import Module

NOT_NEEDED = (
    "DistributedDataParallel is not needed when a module doesn't have any parameter that "
    "requires a gradient."
)


class DistributedDataParallel(Module, Joinable):
    """A model in every process of a group; `backward` leaves the average of their gradients.

    The model is the child `module`, so that names in the `state_dict` start with "module.". All
    processes start with the parameters and buffers of rank 0.

    Args:
        device_ids, output_device, dim: for GPUs; None, or empty.
        broadcast_buffers: whether every forward pass starts with the buffers of rank 0.
        init_sync: whether all start with what rank 0 has.
        process_group: the processes; None for all.
        bucket_cap_mb: megabytes of gradients that are reduced together; 25 by default.
        find_unused_parameters: whether every forward pass looks for parameters that its outputs do
            not depend on, whose gradients nobody has to wait for.
        gradient_as_bucket_view: whether gradients are views of the buckets.
        static_graph: whether every iteration uses the same parameters, equally often.
        check_reduction: without meaning.
        device_mesh: a mesh of one dim, instead of `process_group`.

    Raises:
        RuntimeError: nothing is to be trained, or the models of the processes differ.
    """

    def __init__(
        self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0,
        broadcast_buffers: bool = True, init_sync: bool = True, process_group: Any = None,
        bucket_cap_mb: float | None = None, find_unused_parameters: bool = False,
        check_reduction: bool = False, gradient_as_bucket_view: bool = False,
        static_graph: bool = False, delay_all_reduce_named_params: Any = None,
        param_to_hook_all_reduce: Any = None, mixed_precision: Any = None, device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        _refuse(delay_all_reduce_named_params=delay_all_reduce_named_params,
                param_to_hook_all_reduce=param_to_hook_all_reduce,
                mixed_precision=mixed_precision,
                skip_all_reduce_unused_params=skip_all_reduce_unused_params or None)  # fmt: skip
        self.process_group = _group_of(process_group, device_mesh)
        self.module = module
        ignored = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        self._parameters_of_model = [
            parameter
            for name, parameter in module.named_parameters()
            if parameter.requires_grad and name not in ignored
        ]
        if not self._parameters_of_model:
            raise RuntimeError(NOT_NEEDED)
        self._check_devices(device_ids)
        self.device_ids, self.output_device, self.dim = None, output_device, dim
        self.broadcast_buffers = broadcast_buffers
        self.find_unused_parameters, self.static_graph = find_unused_parameters, static_graph
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        self.parameters_to_ignore = ignored
        megabytes = DEFAULT_MEGABYTES if bucket_cap_mb is None else bucket_cap_mb
        self.bucket_bytes_cap = int(megabytes * (1 << 20))
        _check_same_model(self._parameters_of_model, self.process_group)
        if init_sync:
            self._take_over_state()
        self.reducer = Reducer(self._parameters_of_model, self.process_group, bucket_cap_mb,
                               gradient_as_bucket_view, static_graph)  # fmt: skip

    def _check_devices(self, device_ids: Any) -> None:
        if any(not parameter.is_cpu for parameter in self._parameters_of_model):
            raise NotImplementedInFlambeau(
                "DistributedDataParallel of parameters on GPUs needs the backend nccl"
            )
        if device_ids:
            kinds = {parameter.device.type for parameter in self._parameters_of_model}
            raise ValueError(
                "DistributedDataParallel device_ids and output_device arguments only work with "
                "single-device/multiple-device GPU modules or CPU modules, but got device_ids "
                f"{device_ids}, output_device None, and module parameters {kinds}."
            )

    def _buffers(self) -> list[Tensor]:  # type: ignore[override]
        return [
            x for name, x in self.module.named_buffers() if name not in self.parameters_to_ignore
        ]

    def _take_over_state(self) -> None:
        self._take_over((*self.module.parameters(), *self.module.buffers()), 0)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """The model's forward pass, on this process's part of the batch."""
        is_recorded = grad_mode.enabled is True
        averages = is_recorded and self.require_backward_grad_sync
        if self._join is not None and is_recorded:
            self._count_inputs()
        if self.broadcast_buffers and self.require_backward_grad_sync and self.training:
            self._synchronize_buffers()
        output = self.module(*inputs, **kwargs)
        if averages:
            used = None
            if self.find_unused_parameters and not self.static_graph:
                used = parameters_of(output, self._parameters_of_model)
            self.reducer.prepare(used)
        elif is_recorded:
            self.reducer.pause()
        return output

    def _synchronize_buffers(self, has_inputs: bool = True) -> None:
        """Give all the buffers of rank 0; in a join context, of the last that has inputs."""
        buffers = list(self.module.buffers())
        if not buffers:
            return
        source = 0
        if self._join is not None:
            source = int(of_all(self, self._rank_if(has_inputs), RedOpType.MAX))
        self._take_over(buffers, source)

    def _rank_if(self, counts: bool) -> float:
        return float(self.process_group.rank() if counts else -1)

    def _take_over(self, tensors: Iterable[Tensor], source: int) -> None:
        with no_grad():
            for tensor in tensors:
                collectives.broadcast(tensor, group=self.process_group, group_src=source)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """A region whose gradients are not averaged: they add up until the next one that is."""
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def register_comm_hook(self, state: Any, hook: Hook) -> None:
        """Let `hook(state, bucket)` average buckets; it returns a Future of a tensor."""
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        self.reducer.set_hook(state, hook)

    def _register_builtin_comm_hook(self, comm_hook_type: BuiltinCommHookType) -> None:
        """Let one of the hooks that have a number average buckets."""
        self.reducer.set_hook(self.process_group, comm_hook_type.hook)

    def _set_static_graph(self) -> None:
        """Say that every iteration uses the same parameters, equally often."""
        self.static_graph = True
        self.reducer.set_static()

    def _get_ddp_logging_data(self) -> dict[str, Any]:
        """Settings, sizes and the place of this process."""
        return facts_of(self)

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(
        module: Module, params_and_buffers_to_ignore: Iterable[str]
    ) -> None:
        """Leave parameters and buffers of a model, by their names, to each process."""
        module._ddp_params_and_buffers_to_ignore = list(params_and_buffers_to_ignore)

    @property
    def device(self) -> Any:
        """The device of the parameters."""
        return self._parameters_of_model[0].device

    @property
    def device_type(self) -> str:
        """The kind of that device."""
        return self.device.type  # type: ignore[no-any-return]

    def join(self, divide_by_initial_world_size: bool = True, enable: bool = True,
             throw_on_early_termination: bool = False) -> Join:  # fmt: skip
        """A region in which processes may have different numbers of inputs.

        Args:
            divide_by_initial_world_size: whether gradients are divided by the number of all
                processes, and not of those that still have inputs.
            enable, throw_on_early_termination: see `Join`.

        At the end all have the parameters and buffers of the last one that had inputs.
        """
        return Join([self], enable, throw_on_early_termination,
                    divide_by_initial_world_size=divide_by_initial_world_size)  # fmt: skip

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """What this process does when its inputs have ended."""
        return DataParallelJoinHook(self, kwargs.get("divide_by_initial_world_size", True))

    @property
    def join_device(self) -> Any:
        """The device of the parameters."""
        return self._parameters_of_model[0].device

    @property
    def join_process_group(self) -> Any:
        """The processes."""
        return self.process_group

    def _count_inputs(self) -> None:
        """In a join context: count those with inputs, and say whether gradients are averaged."""
        count = Join.notify_join_context(self)
        if self._join is None:
            return
        if count is not None:
            self.reducer.set_active_processes(count)
        of_all(self, float(self.require_backward_grad_sync), RedOpType.SUM)


def _group_of(process_group: Any, mesh: Any) -> Any:
    """The processes that one of two arguments names."""
    if mesh is None:
        return the_group(process_group)
    if process_group is not None:
        raise RuntimeError("Cannot specify both process_group and device_mesh arguments.")
    if mesh.ndim != 1:
        raise RuntimeError(f"Only 1D device mesh is supported, but got {mesh}.")
    return mesh.get_group(mesh_dim=0)


def _refuse(**given: Any) -> None:
    for name, value in given.items():
        if value is not None:
            raise NotImplementedInFlambeau(
                f"DistributedDataParallel({name}=...) is not implemented"
            )


def _check_same_model(parameters: list[Any], group: Any) -> None:
    """Raise RuntimeError if the models of the processes differ."""
    own = [(tuple(parameter.shape), parameter.dtype.name) for parameter in parameters]
    all_of: list[Any] = [None] * group.size()
    objects.all_gather_object(all_of, own, group)
    for rank, other in enumerate(all_of):
        if len(other) != len(all_of[0]):
            raise RuntimeError(
                f"DDP expects same model across all ranks, but Rank {group.rank()} has {len(own)} "
                f"params, while rank {rank} has inconsistent {len(other)} params."
            )
        for number, (first, second) in enumerate(zip(all_of[0], other, strict=True)):
            if first != second:
                raise RuntimeError(
                    f"[{rank}]: params[{number}] in this process with sizes {list(second[0])} "
                    "appears not to match sizes of the same param in process 0."
                )
