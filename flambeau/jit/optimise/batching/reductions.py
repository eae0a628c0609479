"""Rules of reductions, and of what runs along a dim."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau.jit.ir import types as T
from flambeau.jit.ir.function import FunctionSchema, Parameter
from flambeau.jit.optimise.batching.arithmetic import pointwise
from flambeau.jit.optimise.batching.program import Call
from flambeau.jit.optimise.batching.rules import moved, plain_only, rule, tensor_of
from flambeau.jit.optimise.batching.values import Batched, NotBatchable


@rule("sum", "mean", "prod", "amax", "amin", "all", "any", "argmax", "argmin", "logsumexp", "var",
      "std", "norm")  # fmt: skip
def reduction(call: Call, self: Any, dim: Any = None, **given: Any) -> Any:
    """Over dims of each round; without any, over all of it."""
    plain_only(dim, *given.values())
    if dim is None or (type(dim) is not int and not dim):
        return _of_everything(call, call.kind, self, given)
    rank = self.rank
    dims = moved(dim, rank) if isinstance(dim, int) else [moved(one, rank) for one in dim]
    return Batched(call.again(self=tensor_of(self), dim=dims))


def _of_everything(call: Call, name: str, self: Any, given: Mapping[str, Any]) -> Any:
    """All elements of a round in one dim, and a reduction over that."""
    if given.get("keepdim"):
        raise NotBatchable("all dims of a round, which are kept")
    schema = _with_dim(name, tuple(given))
    if schema is None:
        raise NotBatchable("a reduction of everything")
    tensor = tensor_of(self)
    flat = tensor.flatten(1) if self.rank else tensor.unsqueeze(1)  # type: ignore[attr-defined]
    told: dict[str, Any] = {**given, "self": flat}
    return Batched(_implementation(schema)(*[_argument(p, told) for p in schema.arguments]))


@cache
def _with_dim(name: str, names: tuple[str, ...]) -> FunctionSchema | None:
    """The overload of a reduction that takes dims, and all that is given beside them."""
    from flambeau.jit.operators import table

    for schema in table.overloads(name):
        known = {p.name for p in schema.arguments}
        single = len(schema.returns) == 1
        if single and {"self", "dim", *names} <= known and "out" not in known:
            return schema
    return None


def _argument(parameter: Parameter, told: Mapping[str, Any]) -> Any:
    """What is told of a parameter; the one dim; else its default, False where it has none."""
    name = parameter.name
    if name in told:
        return told[name]
    if name == "dim":
        single = parameter.type in (T.INT, T.optional(T.INT))
        return 1 if single else [1]
    return False if name == "keepdim" else parameter.default


def _implementation(schema: FunctionSchema) -> Callable[..., Any]:
    from flambeau.jit.operators.calls import implementation

    return implementation(schema)


SHARED = {"aten::max": "aten::amax", "aten::min": "aten::amin"}
"""Extremes of everything: elements that are the same share the gradient, as in these."""


@rule("max", "min", "sort", "median", "mode")
def extreme(call: Call, self: Any, **given: Any) -> Any:
    """Values and indices along a dim; the larger of two tensors; the largest of all."""
    if "other" in given:
        return pointwise(call, self=self, **given)
    if not given and call.kind in SHARED:
        return _of_everything(call, SHARED[call.kind], self, {})
    if "dim" not in given:
        raise NotBatchable("an extreme of everything")
    return [Batched(part) for part in _along(call, self, **given)]


@rule("softmax", "log_softmax", "cumsum", "cumprod")
def along_dim(call: Call, self: Any, **given: Any) -> Any:
    """Along a dim of each round."""
    return Batched(_along(call, self, **given))


def _along(call: Call, self: Any, dim: int, **given: Any) -> Any:
    plain_only(dim, *given.values())
    return call.again(self=tensor_of(self), dim=moved(dim, self.rank))


@rule("layer_norm", "rms_norm")
def layer_norm(call: Call, input: Any, **given: Any) -> Any:
    """Over the last dims of each round."""
    plain_only(*given.values())
    result: Tensor = call.again(input=tensor_of(input))
    return Batched(result)
