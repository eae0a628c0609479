"""Averages gradients over processes while the backward pass goes on.

A hook on every parameter copies its gradient, divided, into its bucket. A bucket that is full is
reduced in the thread of the group, after all before it, since all processes have to reduce in one
order. The end of the backward pass waits for the buckets (or reduces those whose turn has not come)
and writes the averages where gradients are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flambeau._tensor.tensor import Tensor, wrap
from flambeau.autograd.grad_mode import no_grad
from flambeau.autograd.nesting import ExecutionEngine
from flambeau.distributed import collectives
from flambeau.distributed.data_parallel.buckets import GradBucket, assign
from flambeau.distributed.group import ProcessGroup
from flambeau.distributed.reduce_op import RedOpType

UNFINISHED = (
    "Expected to have finished reduction in the prior iteration before starting a new one. This "
    "error indicates that your module has parameters that were not used in producing loss. You can "
    "enable unused parameter detection by passing the keyword argument "
    "`find_unused_parameters=True` to `torch.nn.parallel.DistributedDataParallel`, and by \n"
    "making sure all `forward` function outputs participate in calculating loss."
)
TWICE = (
    "Expected to mark a variable ready only once. This error is caused by a parameter that is used "
    "in several backward passes of one iteration: try static_graph=True."
)
Hook = Callable[[Any, GradBucket], Any]


class Reducer:
    """The buckets of a model. One iteration: `prepare`, hooks, `finalize`."""

    def __init__(self, parameters: Sequence[Tensor], group: ProcessGroup, megabytes: float | None,
                 grads_are_views: bool, is_static: bool) -> None:  # fmt: skip
        self._parameters, self._group = list(parameters), group
        self._grads_are_views, self._is_static = grads_are_views, is_static
        self._members = members = assign(self._parameters, megabytes)
        self._buckets = [
            GradBucket(index, [self._parameters[number] for number in numbers])
            for index, numbers in enumerate(members)
        ]
        self._buckets[-1]._is_last = True
        self._place = {
            number: (index, position)
            for index, numbers in enumerate(members)
            for position, number in enumerate(numbers)
        }
        self._divisor = group.size()
        self.divides_by_all = True
        """Whether averages are over all processes, and not over those that have inputs."""
        self._hook: Hook | None = None
        self._hook_state: Any = None
        self._finds_unused = False
        self._expected: list[int] | None = None
        self._reset()
        self._active = False
        self._handles = [
            parameter.register_post_accumulate_grad_hook(self._hook_of(number))
            for number, parameter in enumerate(self._parameters)
        ]

    def set_hook(self, state: Any, hook: Hook) -> None:
        """Let a function reduce the buckets: its Future gives the averages."""
        if self._hook is not None:
            raise RuntimeError(
                "register_comm_hook or register_builtin_comm_hook can only be called once."
            )
        self._hook, self._hook_state = hook, state

    def bucket_bytes(self) -> list[int]:
        """The bytes of each bucket."""
        return [bucket.buffer().nbytes for bucket in self._buckets]

    def set_static(self) -> None:
        """From now on every iteration uses the same parameters, equally often."""
        self._is_static = True

    def _hook_of(self, number: int) -> Callable[[Tensor], None]:
        def ready(parameter: Tensor) -> None:
            if self._active:
                self._mark_used(number)

        return ready

    def _reset(self) -> None:
        self._waiting = [len(bucket._sizes) for bucket in self._buckets]
        self._is_ready = [False] * len(self._parameters)
        self._seen = [0] * len(self._parameters)
        self._next = 0
        self._works: list[Any] = []
        self._is_queued = False

    def prepare(self, used: set[int] | None) -> None:
        """A forward pass has ended whose backward pass is to be averaged.

        Args:
            used: the numbers of parameters that its outputs depend on; None: all.
        """
        if self._active and self._next < len(self._buckets):
            names = [n for n, is_ready in enumerate(self._is_ready) if not is_ready]
            raise RuntimeError(
                f"{UNFINISHED}\nParameter indices which did not receive grad for rank "
                f"{self._group.rank()}: {' '.join(map(str, names))}"
            )
        self._reset()
        self._active = True
        self._finds_unused = used is not None
        if used is None:
            return
        for number in range(len(self._parameters)):
            if number not in used:
                self._mark_ready(number)

    def set_active_processes(self, count: int) -> None:
        """In a join context: so many processes have inputs."""
        if not self.divides_by_all:
            self._divisor = count

    def meet(self) -> None:
        """Take part in the reductions of the others' backward pass, with gradients of 0."""
        self._reset()
        with no_grad():
            for bucket in self._buckets:
                buffer: Any = bucket.buffer()
                buffer.zero_()
                self._reduce(bucket)
            self._take_all()
        self._next = len(self._buckets)

    def pause(self) -> None:
        """The next backward pass is not averaged: gradients only add up."""
        if not self._is_queued:
            self._active = False

    def _mark_used(self, number: int) -> None:
        if not self._is_queued:
            self._is_queued = True
            ExecutionEngine.queue_callback(self._finalize)
        self._seen[number] += 1
        if self._is_static:
            if self._expected is not None and self._seen[number] == self._expected[number]:
                self._mark_ready(number)
            return
        if self._is_ready[number]:
            raise RuntimeError(f"{TWICE}\nParameter at index {number} has been marked ready twice.")
        self._mark_ready(number)

    def _mark_ready(self, number: int) -> None:
        """Put a gradient into its bucket; zeros where there is none."""
        self._is_ready[number] = True
        index, position = self._place[number]
        bucket, grad = self._buckets[index], self._parameters[number].grad
        with no_grad():
            if grad is None or not self._seen[number]:
                bucket._clear(position)
            else:
                bucket._put(position, grad, 1 if self._hook is not None else self._divisor)
        self._waiting[index] -= 1
        while self._next < len(self._buckets) and self._waiting[self._next] == 0:
            self._reduce(self._buckets[self._next])
            self._next += 1

    def _reduce(self, bucket: GradBucket) -> None:
        if self._hook is not None:
            self._works.append(self._hook(self._hook_state, bucket))
            return
        buffer = bucket.buffer()
        work: Any = collectives.all_reduce(buffer, RedOpType.SUM, self._group, async_op=True)
        self._works.append(work)

    def _finalize(self) -> None:
        """The end of the backward pass."""
        if self._is_static and self._expected is None:
            self._expected = list(self._seen)
        if self._is_static or self._finds_unused:
            for number, is_ready in enumerate(self._is_ready):
                if not is_ready:
                    self._mark_ready(number)
        if self._next < len(self._buckets):
            self._is_queued = False  # the next forward pass says what is missing
            return
        with no_grad():
            self._take_all()
        self._active = self._is_queued = False

    def _take_all(self) -> None:
        """Wait for the buckets, and write gradients where they belong."""
        used = None
        if self._finds_unused or self._is_static:
            used = np.array(self._seen, np.int64)
            collectives.all_reduce(wrap(used), RedOpType.SUM, self._group)
        for index, (bucket, work) in enumerate(zip(self._buckets, self._works, strict=True)):
            self._wait(bucket, work)
            for position, number in enumerate(self._members[index]):
                if used is None or used[number]:
                    self._write(number, bucket, position)

    def _wait(self, bucket: GradBucket, work: Any) -> None:
        """Wait until a bucket has the averages."""
        result = work.wait()
        if self._hook is None:
            return
        found = result[0] if isinstance(result, list) else result
        if found is not bucket.buffer():
            buffer: Any = bucket.buffer()
            buffer.copy_(found)

    def _write(self, number: int, bucket: GradBucket, position: int) -> None:
        parameter = self._parameters[number]
        grad: Any = parameter.grad
        if self._grads_are_views:
            if not bucket._is_view_of(position, grad):
                parameter.grad = bucket.view(position)
        elif grad is None:
            parameter.grad = bucket.view(position).clone()  # type: ignore[attr-defined]
        else:
            bucket._give(position, grad)


def parameters_of(outputs: Any, parameters: Sequence[Tensor]) -> set[int]:
    """The numbers of the parameters that outputs depend on."""
    from flambeau.utils._pytree import tree_leaves

    numbers = {id(parameter): number for number, parameter in enumerate(parameters)}
    nodes = [x.grad_fn for x in tree_leaves(outputs) if isinstance(x, Tensor) and x.grad_fn]
    found = {numbers[id(x)] for x in tree_leaves(outputs) if id(x) in numbers}
    seen = set()
    while nodes:
        node = nodes.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        leaf = getattr(node, "variable", None)
        if leaf is not None and id(leaf) in numbers:
            found.add(numbers[id(leaf)])
        nodes += [following for following, _ in node.next_functions]
    return found
