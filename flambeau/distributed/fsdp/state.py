"""When the parameters of a module are gathered and given back: hooks around it and in backward."""

from __future__ import annotations

from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau.autograd.engine import running
from flambeau.autograd.nesting import ExecutionEngine
from flambeau.distributed.fsdp.flat import ParameterGroup, Reduction
from flambeau.distributed.fsdp.parameters import ShardedParameter
from flambeau.distributed.fsdp.policies import MixedPrecisionPolicy
from flambeau.nn.module import Module
from flambeau.utils._pytree import tree_map


class State:
    """What `fully_shard` keeps of a module: the parameters that are gathered together.

    The state of the module that is called first, the root, knows those below it, and in which order
    they were called: so each lets the next one's parameters come while it computes.
    """

    def __init__(self, module: Module, parameters: list[ShardedParameter],
                 reshards: bool | None, policy: MixedPrecisionPolicy) -> None:  # fmt: skip
        self.module, self.parameters = module, parameters
        self.group = ParameterGroup(parameters)
        self.reshards, self.policy = reshards, policy
        self.reshards_after_backward = True
        self.unshards_in_backward = True
        self.is_synchronised = True
        self.is_last_backward = True
        self.divisor: float | None = None
        self.forward_prefetch: list[State] = []
        self.backward_prefetch: list[State] = []
        self.is_asked_for = False  # by `unshard`, and not by a guess
        self.arrived: set[int] = set()
        self.root: State | None = None
        self.below: list[State] = []
        self.is_awaited = False
        self.order, self.last_order = Order(), Order()
        self.reductions: list[Reduction] = []
        module.register_forward_pre_hook(self._enter, prepend=True, with_kwargs=True)
        module.register_forward_hook(self._leave)
        module.register_state_dict_pre_hook(self._give_back)
        module.register_load_state_dict_pre_hook(self._give_back)
        trained = [parameter for parameter in parameters if parameter.whole.requires_grad]
        self.expected = len(trained)
        for parameter in trained:
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

    def _begin_again(self) -> None:
        """The root's forward begins: nothing is left of a pass that failed, or of a guess."""
        self.is_awaited = False
        self.reductions.clear()
        self.last_order, self.order = self.order, Order()
        for state in self.below:
            state.arrived.clear()
            state._drop_guess()

    def _enter(self, module: Module, args: Any, named: Any) -> Any:
        self._begin()
        is_in_backward = running.task is not None  # what a checkpoint computes again
        if self.root is self and not is_in_backward:
            self._begin_again()
        self.gather()
        if not is_in_backward:
            self._let_come_in_forward()
        kind = self.policy.param_dtype
        if kind is None or not self.policy.cast_forward_inputs:
            return args, named
        return cast(args, kind), cast(named, kind)

    def _let_come_in_forward(self) -> None:
        """Begin to gather what is called next: what the program said, or what it was last time."""
        root = self.root or self
        root.order.entered.append(self)
        if self.forward_prefetch:
            for state in self.forward_prefetch:
                state.group.begin()
            return
        following = root.last_order.after(len(root.order.entered) - 1, self)
        if following is not None:
            following.group.begin()

    def _leave(self, module: Module, args: Any, output: Any) -> Any:
        root = self.root or self
        if running.task is None:
            root.order.left.append(self)
            reshards = self.reshards if self.reshards is not None else root is not self
            if reshards:
                self.release()
            if root is self:
                for state in self.below:
                    state._drop_guess()
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
        self._await_end()
        if self.unshards_in_backward:
            self.gather()
        guess = (self.root or self).order.before(self)
        for state in self.backward_prefetch or ([guess] if guess is not None else []):
            if state.unshards_in_backward:
                state.group.begin()

    def _await_end(self) -> None:
        """Once in each backward pass, be told of its end."""
        root = self.root or self
        if not root.is_awaited:
            root.is_awaited = True
            ExecutionEngine.queue_callback(root._end)

    def _reducer(self, parameter: ShardedParameter) -> Any:
        def reduce(whole: Tensor) -> None:
            self._await_end()
            self.arrived.add(id(parameter))
            if len(self.arrived) == self.expected:
                self._reduce()

        return reduce

    def _reduce(self) -> None:
        """All gradients of the module are there, or the end of the pass is."""
        self.arrived.clear()
        if self.is_synchronised:
            root = self.root or self
            root._finish_reductions()
            root.reductions += self.group.reduce(self.divisor)
        else:
            for parameter in self.parameters:
                parameter.set_aside()
        if self.reshards_after_backward and self.is_last_backward:
            self.release()

    def _finish_reductions(self) -> None:
        """Wait for what was begun: no more than one module's gradients are on their way."""
        reductions, self.reductions = self.reductions, []
        for reduction in reductions:
            reduction.finish()

    def _end(self) -> None:
        self.is_awaited = False
        for state in self.below or [self]:
            if any(parameter.has_grad() for parameter in state.parameters):
                state._reduce()
        self._finish_reductions()
        for state in self.below or [self]:
            state._drop_guess()
            if state.reshards_after_backward and state.is_last_backward:
                state.release()

    # ---- both

    def _give_back(self, *args: Any) -> None:
        self.release()

    def _drop_guess(self) -> None:
        """Forget what is coming if nobody asked for it."""
        if not self.is_asked_for:
            self.group.drop()

    def begin(self) -> None:
        """Begin to gather all parameters."""
        self.is_asked_for = True
        self.group.begin()

    def gather(self) -> None:
        """Gather all parameters."""
        self.is_asked_for = False
        self.group.gather()

    def release(self) -> None:
        """Give the memory of all gathered parameters back."""
        self.is_asked_for = False
        self.group.release()


class Order:
    """In which order modules were called in one forward pass of the root, and returned."""

    def __init__(self) -> None:
        self.entered: list[State] = []
        self.left: list[State] = []

    def after(self, number: int, state: State) -> State | None:
        """Who was called after the call `number`, if that was of this state."""
        if number + 1 >= len(self.entered) or self.entered[number] is not state:
            return None
        return self.entered[number + 1]

    def before(self, state: State) -> State | None:
        """Who returned before the last call of a state, and so comes after it in backward."""
        for number in reversed(range(len(self.left))):
            if self.left[number] is state:
                del self.left[number:]
                return self.left[-1] if self.left else None
        return None


def cast(values: Any, kind: Any) -> Any:
    """Floating-point tensors in another type."""

    def one(value: Any) -> Any:
        is_float = isinstance(value, Tensor) and value.dtype.is_floating_point
        return value.to(kind) if is_float else value

    return tree_map(one, values)
