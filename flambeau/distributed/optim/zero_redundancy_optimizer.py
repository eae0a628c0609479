"""An optimizer whose state is divided among the processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau._core.missing import NotImplementedInFlambeau
from flambeau.autograd.grad_mode import no_grad
from flambeau.distributed import collectives, objects
from flambeau.distributed.algorithms.join import Join, Joinable, JoinHook
from flambeau.distributed.world import the_group
from flambeau.optim.optimizer import Optimizer

MEMBERS = "params"


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """Each process has the optimizer's state of a part of the parameters only, and updates these;
    then it gives them to the others.

    Parameters are divided greedily by their sizes. Gradients have to be the same in all processes,
    as DistributedDataParallel makes them.

    Args:
        params: parameters, or groups of them.
        optimizer_class: the optimizer that updates a part.
        process_group: the processes; None for all.
        parameters_as_bucket_view: without meaning here.
        overlap_with_ddp: not implemented.
        defaults: for `optimizer_class`.
    """

    def __init__(self, params: Any, optimizer_class: type[Any], process_group: Any = None,
                 parameters_as_bucket_view: bool = False, overlap_with_ddp: bool = False,
                 **defaults: Any) -> None:  # fmt: skip
        if overlap_with_ddp:
            raise NotImplementedInFlambeau("ZeroRedundancyOptimizer(overlap_with_ddp=True)")
        self.process_group = the_group(process_group)
        self.rank, self.world_size = self.process_group.rank(), self.process_group.size()
        self._class, self._defaults = optimizer_class, defaults
        self._owner: dict[int, int] = {}
        self._loads = [0] * self.world_size
        self._consolidated: dict[str, Any] | None = None
        self._is_built = False
        super().__init__(params, defaults)
        self._build()

    def _build(self) -> None:
        """Divide the parameters, and make the optimizer of this process's part."""
        for group in self.param_groups:
            self._divide(group[MEMBERS])
        parts = [self._part(group) for group in self.param_groups]
        self.optim = self._class(parts, **self._defaults)
        self._is_built = True
        self._to_global()

    def _divide(self, parameters: list[Any]) -> None:
        for parameter in sorted(parameters, key=lambda each: -each.numel()):
            rank = self._loads.index(min(self._loads))
            self._owner[id(parameter)] = rank
            self._loads[rank] += parameter.numel()

    def _part(self, group: dict[str, Any]) -> dict[str, Any]:
        own = [each for each in group[MEMBERS] if self._owner[id(each)] == self.rank]
        return {**group, MEMBERS: own}

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters, which are divided as well."""
        super().add_param_group(param_group)
        if self._is_built:
            added = self.param_groups[-1]
            self._divide(added[MEMBERS])
            self.optim.add_param_group(self._part(added))

    def _to_local(self) -> None:
        """Let the part's groups have the settings that schedules change here."""
        for own, group in zip(self.optim.param_groups, self.param_groups, strict=True):
            own.update({key: value for key, value in group.items() if key != MEMBERS})

    def _to_global(self) -> None:
        for own, group in zip(self.optim.param_groups, self.param_groups, strict=True):
            group.update({key: value for key, value in own.items() if key != MEMBERS})

    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        """Update this process's part, and take the others' parts."""
        Join.notify_join_context(self)
        self._to_local()
        loss = self.optim.step(closure=closure, **kwargs) if closure else self.optim.step(**kwargs)
        self._exchange()
        self._to_global()
        return loss

    def _exchange(self) -> None:
        with no_grad():
            works: list[Any] = [
                collectives.broadcast(each, group=self.process_group, async_op=True,
                                      group_src=self._owner[id(each)])
                for group in self.param_groups for each in group[MEMBERS]
            ]  # fmt: skip
        for work in works:
            work.wait()

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Bring all parts of the state to rank `to`, which can call `state_dict` then.

        All processes call this.
        """
        self._to_local()
        own = self.optim.state_dict()
        gathered: list[Any] | None = [None] * self.world_size if self.rank == to else None
        objects.gather_object(own, gathered, group=self.process_group, group_dst=to)
        self._consolidated = None if gathered is None else self._merged(gathered)

    def _merged(self, parts: list[dict[str, Any]]) -> dict[str, Any]:
        """One state dict of those of all ranks."""
        merged = super().state_dict()
        merged["state"] = {}
        numbers = self._numbers()
        for rank, part in enumerate(parts):
            own = self._of_rank(rank)
            for local, state in part["state"].items():
                merged["state"][numbers[id(own[local])]] = state
        merged["state"] = dict(sorted(merged["state"].items()))
        return merged

    def _of_rank(self, rank: int) -> list[Any]:
        """The parameters of a rank, in the order of its numbers."""
        everything = (each for group in self.param_groups for each in group[MEMBERS])
        return [each for each in everything if self._owner[id(each)] == rank]

    def _numbers(self) -> dict[int, int]:
        everything = (each for group in self.param_groups for each in group[MEMBERS])
        return {id(each): number for number, each in enumerate(everything)}

    def state_dict(self) -> dict[str, Any]:
        """The state of all parts, on the rank to which `consolidate_state_dict` brought it.

        Raises:
            RuntimeError: it was not brought here.
        """
        if self._consolidated is None:
            raise RuntimeError(
                "Optimizer state has not been consolidated on this rank. Please call "
                f"`consolidate_state_dict(to={self.rank})` on all ranks beforehand if you meant to "
                "save the global state."
            )
        return self._consolidated

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take this process's part of a whole state dict; all processes call this."""
        numbers = self._numbers()
        own = self._of_rank(self.rank)
        state = {
            local: state_dict["state"][numbers[id(each)]]
            for local, each in enumerate(own) if numbers[id(each)] in state_dict["state"]
        }  # fmt: skip
        local = self.optim.state_dict()
        groups = [
            {**given, MEMBERS: mine[MEMBERS]}
            for given, mine in zip(state_dict["param_groups"], local["param_groups"], strict=True)
        ]
        self.optim.load_state_dict({"state": state, "param_groups": groups})
        self._to_global()

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """What this process does when its inputs have ended: it goes on updating its part."""
        return _ZeroJoinHook(self)

    @property
    def join_device(self) -> Any:
        """The device of the parameters."""
        return self.param_groups[0][MEMBERS][0].device

    @property
    def join_process_group(self) -> Any:
        """The processes."""
        return self.process_group


class _ZeroJoinHook(JoinHook):
    def __init__(self, zero: ZeroRedundancyOptimizer) -> None:
        self._zero = zero

    def main_hook(self) -> None:
        """Update this process's part with the gradients that the others have made."""
        self._zero.step()
