"""Rules of reductions whose overloads are other ones than their rows."""

from __future__ import annotations

import math
from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau.jit.operators.forms import element_type
from flambeau.jit.optimise.batching import derived
from flambeau.jit.optimise.batching.arithmetic import pointwise
from flambeau.jit.optimise.batching.program import Call
from flambeau.jit.optimise.batching.rules import plain_only, rule, tensor_of
from flambeau.jit.optimise.batching.values import Batched, NotBatchable


@rule("all", "any")
def truth(call: Call, self: Any, dim: Any = None, keepdim: Any = False) -> Any:
    """Along one dim, which the row takes for a list of one."""
    plain_only(dim, keepdim)
    return derived.of_row(call.name, call.rounds, self, dim, keepdim)


@rule("var", "std")
def spread(call: Call, self: Any, dim: Any = None, unbiased: Any = True, correction: Any = None,
           keepdim: Any = False) -> Any:  # fmt: skip
    """What is taken off the number of elements has two names."""
    plain_only(dim, unbiased, correction, keepdim)
    given = int(unbiased) if correction is None else correction
    elements = math.prod(tensor_of(self)._data.shape[1:])
    if dim is None and elements <= given:
        raise NotBatchable("a spread of too few elements, whose gradients know no dims")
    return derived.of_row(call.name, call.rounds, self, dim, given, keepdim)


@rule("norm")
def norm(call: Call, self: Any, p: Any, dim: Any = None, keepdim: Any = False,
         dtype: Any = None) -> Any:  # fmt: skip
    """Over all dims or some."""
    plain_only(p, dim, keepdim, dtype)
    return derived.of_row("norm", call.rounds, self, p, dim or [], keepdim, element_type(dtype))


@rule("max", "min")
def extreme(call: Call, self: Any, other: Any = None) -> Any:
    """The larger of two tensors; the largest of all: elements that are the same share the gradient,
    as along dims."""
    if other is not None:
        return pointwise(call, self=self, other=other)
    return derived.of_row(f"a{call.name}", call.rounds, self, (), False)


@rule("layer_norm", "rms_norm")
def layer_norm(call: Call, input: Any, **given: Any) -> Any:
    """Over the last dims of each round."""
    plain_only(*given.values())
    result: Tensor = call.again(input=tensor_of(input))
    return Batched(result)
