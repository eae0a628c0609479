"""`fully_shard`: modules whose parameters, gradients and optimizer states are divided."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.distributed import world
from flambeau.distributed.device_mesh import DeviceMesh, init_device_mesh
from flambeau.distributed.fsdp.parameters import ShardedParameter, homes_of, placement_of
from flambeau.distributed.fsdp.policies import MixedPrecisionPolicy, OffloadPolicy
from flambeau.distributed.fsdp.state import State
from flambeau.nn.containers import ModuleDict, ModuleList
from flambeau.nn.module import Module

CONTAINERS = (ModuleList, ModuleDict)
ONCE = (
    "Each distinct composable distributed API can only be applied to a module once. fully_shard "
    "has already been applied to the following module:\n{}"
)
CLASSES: dict[type, type] = {}
"""Class of a module -> the class that it has once it is divided."""


class UnshardHandle:
    """What `unshard(async_op=True)` gives: the parameters are gathered after `wait`."""

    def __init__(self, state: State) -> None:
        self._state = state

    def wait(self) -> None:
        """Wait until they are, if nobody has yet."""
        if self._state.group.is_coming:
            self._state.gather()


class FSDPModule:
    """What modules can after `fully_shard`: it is put among the bases of their class."""

    _fsdp_state: State

    def reshard(self) -> None:
        """Give gathered parameters back, of this module alone."""
        self._fsdp_state.release()

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """Gather the parameters, of this module alone.

        Args:
            async_op: whether they come while the program goes on, until `wait` of what is returned
                or the module's forward.
        """
        if not async_op:
            self._fsdp_state.gather()
            return None
        self._fsdp_state.begin()
        return UnshardHandle(self._fsdp_state)

    def _states(self, recurse: bool) -> list[State]:
        modules = self.modules() if recurse else [self]  # type: ignore[attr-defined]
        states = [vars(module).get("_fsdp_state") for module in modules]
        return [state for state in states if state is not None]

    def _set(self, name: str, value: Any, recurse: bool) -> None:
        for state in self._states(recurse):
            setattr(state, name, value)

    def set_requires_gradient_sync(self, requires_gradient_sync: bool, *,
                                   recurse: bool = True) -> None:  # fmt: skip
        """Whether gradients are averaged in backward, or wait for a later one."""
        self._set("is_synchronised", requires_gradient_sync, recurse)

    def set_is_last_backward(self, is_last_backward: bool) -> None:
        """Whether parameters are given back after the next backward."""
        self._set("is_last_backward", is_last_backward, True)

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Whether parameters are given back after forward."""
        self._set("reshards", reshard_after_forward, recurse)

    def set_reshard_after_backward(self, reshard_after_backward: bool, *,
                                   recurse: bool = True) -> None:  # fmt: skip
        """Whether parameters are given back after backward."""
        self._set("reshards_after_backward", reshard_after_backward, recurse)

    def set_gradient_divide_factor(self, factor: float) -> None:
        """What sums of gradients are divided by, instead of the number of processes."""
        self._fsdp_state.divisor = factor

    def set_modules_to_forward_prefetch(self, modules: list[FSDPModule]) -> None:
        """Modules whose parameters begin to come once this one's are there, in forward.

        Without this, they are those of the module that was called next the last time.

        Raises:
            ValueError: one of them is not divided.
        """
        self._fsdp_state.forward_prefetch = _states_of(modules)

    def set_modules_to_backward_prefetch(self, modules: list[FSDPModule]) -> None:
        """Modules whose parameters begin to come once this one's are there, in backward.

        Without this, they are those of the module that returned before this one in forward.

        Raises:
            ValueError: one of them is not divided.
        """
        self._fsdp_state.backward_prefetch = _states_of(modules)

    def set_unshard_in_backward(self, unshard_in_backward: bool) -> None:
        """Whether parameters are gathered for backward; not where it does not read them."""
        self._fsdp_state.unshards_in_backward = unshard_in_backward

    def __deepcopy__(self, memo: Any) -> Any:
        raise AssertionError(
            "FSDP does not support deepcopy. Please use state dict for serialization."
        )


def fully_shard(module: Any, *, mesh: DeviceMesh | None = None,
                reshard_after_forward: bool | int | None = None,
                shard_placement_fn: Callable[..., Any] | None = None,
                mp_policy: MixedPrecisionPolicy = MixedPrecisionPolicy(),  # noqa: B008
                offload_policy: OffloadPolicy = OffloadPolicy(),  # noqa: B008
                ignored_params: set[Any] | None = None,
                dp_mesh_dims: Any = None) -> Any:  # fmt: skip
    """Divide the parameters of a module among processes, in place; of those below it first.

    Its parameters become distributed tensors. They are gathered before its forward and its
    backward, and given back after them; gradients are averaged into the parts. Parameters of
    submodules that were divided before stay with these.

    Args:
        module: a module.
        mesh: of one dim; or of two: copies along the first, parts along the second. All processes
            by default.
        reshard_after_forward: whether parameters are given back after forward; by default those of
            the outermost module are not.
        shard_placement_fn: called with each parameter; gives the dim to divide, `Shard(d)`, or
            None.
        mp_policy: types of numbers.
        offload_policy: where parts are kept.
        ignored_params: parameters that stay as they are.

    Raises:
        ValueError: the module has no forward, or the mesh more dims.
        AssertionError: it is divided already.
        NotImplementedError: a list of modules, or `dp_mesh_dims`.
    """
    if isinstance(module, (list, tuple)) or dp_mesh_dims is not None:
        raise NotImplementedError("fully_shard of lists of modules, dp_mesh_dims: not implemented")
    if isinstance(module, CONTAINERS):
        raise ValueError(
            f"fully_shard does not support containers that do not implement forward: {module}"
        )
    if "_fsdp_state" in vars(module):
        raise AssertionError(ONCE.format(module))
    mesh = mesh or init_device_mesh("cpu", (world.get_world_size(),))
    if mesh.ndim not in (1, 2):
        raise ValueError(f"fully_shard expects a 1D or 2D DeviceMesh but got {mesh}")
    ignored = {id(parameter) for parameter in ignored_params or ()}
    parameters = [_sharded(homes, mesh, shard_placement_fn, mp_policy)
                  for homes in homes_of(_own_modules(module), ignored)]  # fmt: skip
    reshards = None if reshard_after_forward is None else bool(reshard_after_forward)
    module._fsdp_state = State(module, parameters, reshards, mp_policy)
    module.__class__ = _class_of(type(module))
    return module


def _states_of(modules: list[FSDPModule]) -> list[State]:
    for module in modules:
        if not isinstance(module, FSDPModule):
            raise ValueError(f"Expects FSDPModule but got {type(module)}: {module}")
    return [module._fsdp_state for module in modules]


def _sharded(homes: Any, mesh: DeviceMesh, chooses: Any, policy: MixedPrecisionPolicy,
             ) -> ShardedParameter:  # fmt: skip
    owner, name = homes[0]
    placement = placement_of(owner._parameters[name], chooses)
    return ShardedParameter(homes, mesh, placement, policy)


def _own_modules(module: Module) -> list[Module]:
    """A module and those below it, but for what was divided before."""
    found = [module]
    for child in module.children():
        if "_fsdp_state" not in vars(child):
            found += _own_modules(child)
    return found


def _class_of(kind: type) -> type:
    known = CLASSES.get(kind)
    if known is None:
        names = {"__module__": kind.__module__, "__doc__": kind.__doc__}
        known = CLASSES[kind] = type(f"FSDP{kind.__name__}", (FSDPModule, kind), names)
    return known


def register_fsdp_forward_method(module: Any, method_name: str) -> None:
    """Let a method of a divided module be called as its forward is: with parameters gathered.

    Raises:
        ValueError: the module has no such method.
    """
    if not isinstance(module, FSDPModule):
        return
    if not hasattr(module, method_name):
        raise ValueError(f"{type(module)} does not have a method {method_name}")
    state, method = module._fsdp_state, getattr(module, method_name)

    def call(*args: Any, **named: Any) -> Any:
        args, named = state._enter(module, args, named)  # type: ignore[arg-type]
        return state._leave(module, args, method(*args, **named))  # type: ignore[arg-type]

    setattr(module, method_name, call)
