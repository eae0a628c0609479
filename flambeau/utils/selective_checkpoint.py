"""Checkpointing that keeps some results: a policy says of each operator whether its result is kept
or computed again in backward.

    def policy(context, operator, *args, **kwargs):
        keep = operator is torch.ops.aten.mm.default
        return CheckpointPolicy.MUST_SAVE if keep else CheckpointPolicy.PREFER_RECOMPUTE

    context_fn = functools.partial(create_selective_checkpoint_contexts, policy)
    checkpoint(function, x, use_reentrant=False, context_fn=context_fn)
"""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau.utils._python_dispatch import TorchDispatchMode
from flambeau.utils._pytree import tree_flatten, tree_map


class CheckpointPolicy(enum.Enum):
    """What becomes of an operator's result. What may go to the computer's memory is kept: it is
    there already."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


OF_A_PACKET = (
    "Please update the OpOverloadPacket to a specific OpOverload.For example, if you have "
    "`torch.ops.aten.mm`, change it to `torch.ops.aten.mm.default`."
)
RECOMPUTED = (CheckpointPolicy.MUST_RECOMPUTE, CheckpointPolicy.PREFER_RECOMPUTE)


class SelectiveCheckpointContext:
    """What a policy is told: whether this is the second run, and the result of the operator."""

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute = is_recompute
        self.op_output = op_output


class Kept:
    """A result as it was kept, with the counts of writes to its tensors."""

    def __init__(self, result: Any) -> None:
        self.result = tree_map(_detached, result)
        self.versions = self._counts()

    def _counts(self) -> list[int]:
        leaves, _ = tree_flatten(self.result)
        return [leaf._version for leaf in leaves if isinstance(leaf, Tensor)]

    def given(self, may_change: bool) -> Any:
        """The result once more.

        Raises:
            RuntimeError: it was written to, and `may_change` is False.
        """
        if not may_change and self._counts() != self.versions:
            raise RuntimeError(
                "Tensor cached during selective activation checkpoint has been mutated"
            )
        return tree_map(_detached, self.result)


def _detached(value: Any) -> Any:
    return value.detach() if isinstance(value, Tensor) else value


Results = dict[Any, list[Kept | None]]


class _Keeping(TorchDispatchMode):
    """Keeps results of the first run; None stands for those that are computed again."""

    def __init__(self, policy: Callable[..., Any], results: Results) -> None:
        super().__init__()
        self.policy, self.results = policy, results

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        context = SelectiveCheckpointContext(is_recompute=False, op_output=result)
        choice = self.policy(context, func, *args, **kwargs)
        if isinstance(choice, bool):
            choice = CheckpointPolicy.MUST_SAVE if choice else CheckpointPolicy.PREFER_RECOMPUTE
        self.results[func].append(None if choice in RECOMPUTED else Kept(result))
        return result


class _Giving(TorchDispatchMode):
    """Gives the kept results to a second run, which may come several times."""

    def __init__(self, results: Results, may_change: bool) -> None:
        super().__init__()
        self.results, self.may_change = results, may_change
        self.places: dict[Any, int] = defaultdict(int)

    def __enter__(self) -> Any:
        self.places.clear()
        return super().__enter__()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        place = self.places[func]
        self.places[func] += 1
        known = self.results.get(func, ())
        kept = known[place] if place < len(known) else None
        if kept is None:
            return func(*args, **(kwargs or {}))
        return kept.given(self.may_change)


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False
) -> tuple[Any, Any]:
    """The contexts of the first and the second run, for `checkpoint(context_fn=...)`.

    A list has the operators (`torch.ops.aten.mm.default`) whose results are kept.

    Raises:
        TypeError: neither a function nor a list.
        ValueError: a list with something else than operators.
    """
    policy = policy_fn_or_list
    if isinstance(policy, list):
        for operator in policy:
            if not hasattr(operator, "overloadpacket"):
                hint = OF_A_PACKET if type(operator).__name__ == "OpOverloadPacket" else ""
                raise ValueError(
                    "Expected op in `op_list` to be an OpOverload but got: "
                    f"{operator} of type {type(operator)}. {hint}"
                )
        kept = list(policy)

        def policy(context: Any, operator: Any, *args: Any, **kwargs: Any) -> Any:
            found = any(operator is one for one in kept)
            return CheckpointPolicy.MUST_SAVE if found else CheckpointPolicy.PREFER_RECOMPUTE

    elif not callable(policy):
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    results: Results = defaultdict(list)
    return _Keeping(policy, results), _Giving(results, allow_cache_entry_mutation)
