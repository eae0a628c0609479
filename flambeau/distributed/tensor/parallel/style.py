"""How a module is divided among processes: what happens to its parameters, inputs and outputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau.distributed.device_mesh import DeviceMesh
from flambeau.distributed.placements import Placement, Replicate, Shard
from flambeau.distributed.tensor.distributing import distribute_module, distribute_tensor
from flambeau.distributed.tensor.dtensor import DTensor
from flambeau.nn.layers.linear import Linear
from flambeau.nn.layers.sparse import Embedding
from flambeau.nn.module import Module
from flambeau.nn.parameter import Parameter

Layouts = tuple[Placement, ...]


class ParallelStyle(ABC):
    """What is done to a module so that several processes compute it together."""

    src_data_rank: int | None = 0
    """Whose parameters are taken."""

    @abstractmethod
    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        """Divide a module, in place."""


class OfLayers(ParallelStyle):
    """A style for linear layers and embeddings: where inputs and outputs lie outside of them.

    A subclass says where parameters lie, and inputs inside.
    """

    places: dict[type[Module], dict[str, Placement]]
    """Kind of layer -> parameter -> where it lies."""
    inside: dict[type[Module], Placement]
    """Kind of layer -> where its input has to lie."""

    def __init__(self, input_layout: Placement, output_layout: Placement, use_local_output: bool,
                 ) -> None:  # fmt: skip
        self.input_layouts: Layouts = (input_layout,)
        self.output_layouts: Layouts = (output_layout,)
        self.use_local_output = use_local_output

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        kind = next((kind for kind in self.places if isinstance(module, kind)), None)
        if kind is None:
            raise NotImplementedError(
                f"{type(self).__name__} currently only support nn.Linear and nn.Embedding!"
            )
        divide(module, device_mesh, self.places[kind], self.src_data_rank)
        wanted = self.inside[kind]

        def enter(owner: Module, inputs: Any, mesh: DeviceMesh) -> Any:
            first = placed_at(inputs[0], mesh, self.input_layouts, (wanted,))
            return (first, *inputs[1:])

        def leave(owner: Module, outputs: Any, mesh: DeviceMesh) -> Any:
            found = placed_at(outputs, mesh, None, self.output_layouts)
            return found.to_local() if self.use_local_output else found

        return distribute_module(module, device_mesh, None, enter, leave)

    def __repr__(self) -> str:
        return (f"{type(self).__name__}(input_layouts={self.input_layouts}, "
                f"output_layouts={self.output_layouts}, "
                f"use_local_output={self.use_local_output})")  # fmt: skip


class ColwiseParallel(OfLayers):
    """Each process computes some of the outputs of a linear layer, or columns of an embedding.

    Args:
        input_layouts: where the input lies; copies by default.
        output_layouts: where the output has to lie; in parts along the last dim by default.
        use_local_output: whether this process's part is given instead of a distributed tensor.
    """

    places = {  # noqa: RUF012
        Linear: {"weight": Shard(0), "bias": Shard(0)},
        Embedding: {"weight": Shard(1)},
    }
    inside = {Linear: Replicate(), Embedding: Replicate()}  # noqa: RUF012

    def __init__(self, *, input_layouts: Placement | None = None,
                 output_layouts: Placement | None = None,
                 use_local_output: bool = True) -> None:  # fmt: skip
        super().__init__(input_layouts or Replicate(), output_layouts or Shard(-1),
                         use_local_output)  # fmt: skip


class RowwiseParallel(OfLayers):
    """Each process takes some of the inputs of a linear layer, or has some rows of an embedding.

    Args:
        input_layouts: where the input lies; in parts along the last dim by default.
        output_layouts: where the output has to lie; copies by default.
        use_local_output: whether this process's part is given instead of a distributed tensor.
    """

    places = {  # noqa: RUF012
        Linear: {"weight": Shard(1), "bias": Replicate()},
        Embedding: {"weight": Shard(0)},
    }
    inside = {Linear: Shard(-1), Embedding: Replicate()}  # noqa: RUF012

    def __init__(self, *, input_layouts: Placement | None = None,
                 output_layouts: Placement | None = None,
                 use_local_output: bool = True) -> None:  # fmt: skip
        super().__init__(input_layouts or Shard(-1), output_layouts or Replicate(),
                         use_local_output)  # fmt: skip


class SequenceParallel(ParallelStyle):
    """Each process computes a module (LayerNorm, Dropout, RMSNorm) on a part of the sequence.

    Args:
        sequence_dim: the dim of the sequence.
        use_local_output: whether this process's part is given instead of a distributed tensor.
    """

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False) -> None:
        self.sequence_sharding = (Shard(sequence_dim),)
        self.use_local_output = use_local_output

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        def copied(name: str, child: Module, mesh: DeviceMesh) -> None:
            own = dict.fromkeys(child._parameters, Replicate())
            divide(child, mesh, own, self.src_data_rank)

        def enter(owner: Module, inputs: Any, mesh: DeviceMesh) -> Any:
            where: Layouts = self.sequence_sharding
            return (placed_at(inputs[0], mesh, where, where), *inputs[1:])

        def leave(owner: Module, outputs: Any, mesh: DeviceMesh) -> Any:
            return outputs.to_local() if self.use_local_output else outputs

        return distribute_module(module, device_mesh, copied, enter, leave)

    def __repr__(self) -> str:
        return (f"SequenceParallel(sequence_dim={self.sequence_sharding[0].dim}, "
                f"use_local_output={self.use_local_output})")  # fmt: skip


def divide(module: Module, mesh: DeviceMesh, places: Any, source: int | None) -> None:
    """Put a module's own parameters where they have to lie."""
    for name, placement in places.items():
        parameter = module._parameters.get(name)
        if parameter is None or isinstance(parameter, DTensor):
            continue
        made = distribute_tensor(parameter.detach(), mesh, [placement], src_data_rank=source)
        module.register_parameter(name, Parameter(made, parameter.requires_grad))


def placed_at(value: Any, mesh: DeviceMesh, now: Layouts | None, wanted: Layouts) -> Any:
    """A distributed tensor at its places: of this process's part, if it is none yet."""
    if not isinstance(value, DTensor):
        value = DTensor.from_local(value, mesh, now)
    return value.redistribute(placements=wanted)


# ---- inputs and outputs of any module


def _listed(layouts: Any) -> Any:
    return (layouts,) if isinstance(layouts, Placement) else layouts


class PrepareModuleInput(ParallelStyle):
    """A module's inputs as distributed tensors where they have to lie.

    Args:
        input_layouts: where inputs by position lie; None leaves one as it is.
        desired_input_layouts: where they have to lie.
        input_kwarg_layouts, desired_input_kwarg_layouts: the same for inputs by name.
        use_local_output: whether the module is given this process's parts.

    Raises:
        AssertionError: what is desired is missing, or of another length.
    """

    def __init__(self, *, input_layouts: Any = None, desired_input_layouts: Any = None,
                 input_kwarg_layouts: Any = None, desired_input_kwarg_layouts: Any = None,
                 use_local_output: bool = False) -> None:  # fmt: skip
        self.input_layouts = _listed(input_layouts)
        self.desired_input_layouts = _listed(desired_input_layouts)
        self.input_kwarg_layouts = input_kwarg_layouts or {}
        self.desired_input_kwarg_layouts = desired_input_kwarg_layouts or {}
        self.use_local_output = use_local_output
        if self.input_layouts is not None:
            if self.desired_input_layouts is None:
                raise AssertionError("desired module inputs should not be None!")
            if len(self.input_layouts) != len(self.desired_input_layouts):
                raise AssertionError(
                    "input_layouts and desired_input_layouts should have same length!"
                )

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        def enter(owner: Module, inputs: Any, named: Any) -> Any:
            return self._inputs(inputs, device_mesh), self._named(named, device_mesh)

        module.register_forward_pre_hook(enter, with_kwargs=True)
        return module

    def _one(self, value: Any, mesh: DeviceMesh, now: Any, wanted: Any) -> Any:
        if now is None or not isinstance(value, Tensor):
            return value
        found = placed_at(value, mesh, (now,), (now if wanted is None else wanted,))
        return found.to_local() if self.use_local_output else found

    def _inputs(self, inputs: Any, mesh: DeviceMesh) -> Any:
        if self.input_layouts is None:
            return inputs
        if len(inputs) != len(self.input_layouts):
            raise ValueError("module inputs and input_layouts should have same length!")
        pairs = zip(inputs, self.input_layouts, self.desired_input_layouts, strict=True)
        return tuple([self._one(value, mesh, now, wanted) for value, now, wanted in pairs])

    def _named(self, named: Any, mesh: DeviceMesh) -> Any:
        return {name: self._one(value, mesh, self.input_kwarg_layouts.get(name),
                                self.desired_input_kwarg_layouts.get(name))
                for name, value in named.items()}  # fmt: skip

    def __repr__(self) -> str:
        return (f"PrepareModuleInput(input_layouts={self.input_layouts}, "
                f"desired_input_layouts={self.desired_input_layouts}, "
                f"input_kwarg_layouts={self.input_kwarg_layouts}, "
                f"desired_input_kwarg_layouts={self.desired_input_kwarg_layouts}, "
                f"use_local_output={self.use_local_output})")  # fmt: skip


class PrepareModuleOutput(ParallelStyle):
    """A module's outputs where they have to lie.

    Args:
        output_layouts: where outputs lie; None leaves one as it is.
        desired_output_layouts: where they have to lie.
        use_local_output: whether this process's parts are given.

    Raises:
        AssertionError: there are not as many of both.
    """

    def __init__(self, *, output_layouts: Any, desired_output_layouts: Any,
                 use_local_output: bool = True) -> None:  # fmt: skip
        self.output_layouts = _listed(output_layouts)
        self.desired_output_layouts = _listed(desired_output_layouts)
        self.use_local_output = use_local_output
        if len(self.output_layouts) != len(self.desired_output_layouts):
            raise AssertionError(
                "output_layouts and desired_output_layouts should have same length!"
            )

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        module.register_forward_hook(lambda owner, _, outputs: self._outputs(outputs, device_mesh))
        return module

    def _outputs(self, outputs: Any, mesh: DeviceMesh) -> Any:
        listed = outputs if isinstance(outputs, tuple) else (outputs,)
        if len(listed) != len(self.output_layouts):
            raise ValueError("module outputs and output_layouts should have same length!")
        made = []
        pairs = zip(listed, self.output_layouts, self.desired_output_layouts, strict=True)
        for value, now, wanted in pairs:
            found = value if now is None else placed_at(value, mesh, (now,), (wanted,))
            is_local = self.use_local_output and isinstance(found, DTensor)
            made.append(found.to_local() if is_local else found)
        return tuple(made) if isinstance(outputs, tuple) else made[0]

    def __repr__(self) -> str:
        return (f"PrepareModuleOutput(output_layouts={self.output_layouts}, "
                f"desired_output_layouts={self.desired_output_layouts}, "
                f"use_local_output={self.use_local_output})")  # fmt: skip


class PrepareModuleInputOutput(ParallelStyle):
    """A module's inputs and outputs where they have to lie: both of the styles above."""

    def __init__(self, *, input_layouts: Any = None, desired_input_layouts: Any = None,
                 input_kwarg_layouts: Any = None, desired_input_kwarg_layouts: Any = None,
                 use_local_input: bool = False, output_layouts: Any, desired_output_layouts: Any,
                 use_local_output: bool = True) -> None:  # fmt: skip
        self.prepare_module_input = PrepareModuleInput(
            input_layouts=input_layouts, desired_input_layouts=desired_input_layouts,
            input_kwarg_layouts=input_kwarg_layouts,
            desired_input_kwarg_layouts=desired_input_kwarg_layouts,
            use_local_output=use_local_input,
        )  # fmt: skip
        self.prepare_module_output = PrepareModuleOutput(
            output_layouts=output_layouts, desired_output_layouts=desired_output_layouts,
            use_local_output=use_local_output,
        )  # fmt: skip

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        self.prepare_module_input._apply(module, device_mesh)
        return self.prepare_module_output._apply(module, device_mesh)
