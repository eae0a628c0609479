"""When the parameters of a module are gathered and given back: hooks around it and in backward."""

from __future__ import annotations

from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau.autograd.nesting import ExecutionEngine
from flambeau.distributed.fsdp.parameters import ShardedParameter
from flambeau.distributed.fsdp.policies import MixedPrecisionPolicy
from flambeau.nn.module import Module
from flambeau.utils._pytree import tree_map


class State:
    """What `fully_shard` keeps of a module: the parameters that are gathered together."""

    def __init__(self, module: Module, parameters: list[ShardedParameter],
                 reshards: bool | None, policy: MixedPrecisionPolicy) -> None:  # fmt: skip
        self.module, self.parameters = module, parameters
        self.reshards, self.policy = reshards, policy
        self.reshards_after_backward = True
        self.is_synchronised = True
        self.is_last_backward = True
        self.divisor: float | None = None
        self.root: State | None = None
        self.below: list[State] = []
        self.is_awaited = False
        module.register_forward_pre_hook(self._enter, prepend=True, with_kwargs=True)
        module.register_forward_hook(self._leave)
        module.register_state_dict_pre_hook(self._give_back)
        module.register_load_state_dict_pre_hook(self._give_back)
        for parameter in parameters:
            if parameter.whole.requires_grad:
                parameter.whole.register_post_accumulate_grad_hook(self._reducer(parameter))

    # ---- forward

    def _begin(self) -> None:
        """The first call: who is called first is the root of those below."""
        if self.root is not None:
            return
        for module in self.module.modules():
            state = vars(module).get("_fsdp_state")
            if state is not None:
                state.root = self
                self.below.append(state)

    def _enter(self, module: Module, args: Any, named: Any) -> Any:
        self._begin()
        self.gather()
        kind = self.policy.param_dtype
        if kind is None or not self.policy.cast_forward_inputs:
            return args, named
        return cast(args, kind), cast(named, kind)

    def _leave(self, module: Module, args: Any, output: Any) -> Any:
        reshards = self.reshards if self.reshards is not None else self.root is not self
        if reshards:
            self.release()
        if self.policy.output_dtype is not None:
            output = cast(output, self.policy.output_dtype)
        tree_map(self._await, output)
        return output

    # ---- backward

    def _await(self, value: Any) -> None:
        """The gradient of an output is the first thing that backward knows of the module."""
        if isinstance(value, Tensor) and value.requires_grad:
            value.register_hook(self._gather_for_backward)

    def _gather_for_backward(self, grad: Any) -> None:
        self.gather()
        self._await_end()

    def _await_end(self) -> None:
        """Once in each backward pass, be told of its end."""
        root = self.root or self
        if not root.is_awaited:
            root.is_awaited = True
            ExecutionEngine.queue_callback(root._end)

    def _reducer(self, parameter: ShardedParameter) -> Any:
        def reduce(whole: Tensor) -> None:
            self._await_end()
            parameter.reduce(self.divisor, self.is_synchronised)
            if self.reshards_after_backward and self.is_last_backward:
                parameter.release()

        return reduce

    def _end(self) -> None:
        self.is_awaited = False
        for state in self.below or [self]:
            if state.reshards_after_backward and state.is_last_backward:
                state.release()

    # ---- both

    def _give_back(self, *args: Any) -> None:
        self.release()

    def gather(self) -> None:
        """Gather all parameters."""
        for parameter in self.parameters:
            parameter.gather()

    def release(self) -> None:
        """Give the memory of all gathered parameters back."""
        for parameter in self.parameters:
            parameter.release()


def cast(values: Any, kind: Any) -> Any:
    """Floating-point tensors in another type."""

    def one(value: Any) -> Any:
        is_float = isinstance(value, Tensor) and value.dtype.is_floating_point
        return value.to(kind) if is_float else value

    return tree_map(one, values)
