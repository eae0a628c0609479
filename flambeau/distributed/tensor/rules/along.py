"""Operators along dims: reductions, softmax, normalisation, sorting, joining."""

from __future__ import annotations

from typing import Any

from flambeau.distributed.placements import NormPartial, Partial, Placement, Replicate, Shard
from flambeau.distributed.tensor.rules.call import Call, Choice, Rule, positive

TERMS = {"sum": "sum", "mean": "avg", "amax": "max", "max": "max", "amin": "min", "min": "min",
         "prod": "product", "any": "sum", "all": "product"}  # fmt: skip
"""How the results of parts make the result of the whole."""


def reduction(call: Call) -> list[Choice]:
    """Parts along dims that stay; along those that go, each process gives a term."""
    shape = call.shape(0)
    gone = _dims(call)
    choices = [call.everywhere()]
    for dim in range(len(shape)):
        if dim not in gone:
            after = dim if call.argument("keepdim", False) else dim - sum(d < dim for d in gone)
            choices.append(Choice((Shard(dim),), (Shard(after),) * len(call.outputs)))
        elif (term := _term(call, dim)) is not None:
            choices.append(Choice((Shard(dim),), (term,)))
    now = call.placement(0)
    if call.base == "sum" and now in (Partial("sum"), Partial("avg")):
        choices.append(Choice((now,), (now,)))
    if isinstance(now, Shard):
        return [c for c in choices if c.inputs[0] in (now, Replicate())]
    return [c for c in choices if not isinstance(c.inputs[0], Shard)]


def _dims(call: Call) -> list[int]:
    ndim = len(call.shape(0))
    given = call.argument("dim")
    if given is None or (isinstance(given, (list, tuple)) and not given):
        return list(range(ndim))
    listed = given if isinstance(given, (list, tuple)) else [given]
    return [positive(dim, ndim) for dim in listed]


def _term(call: Call, dim: int) -> Placement | None:
    """What parts along a dim that goes give; None if the whole is needed."""
    length = call.shape(0)[dim]
    if call.base == "linalg_vector_norm":
        return _norm_term(call.argument("ord", 2))
    if call.base not in TERMS or len(call.outputs) != 1:
        return None
    is_even = length % call.parts == 0
    if call.base not in ("sum", "prod", "any", "all") and not is_even:
        return None
    return Partial(TERMS[call.base])


def _norm_term(order: Any) -> Placement | None:
    if order == float("inf"):
        return Partial("max")
    return NormPartial("sum", order) if order > 0 else None


def rest_of(*names: str, default: Any = None) -> Rule:
    """A rule for operators that work along the dims that an argument names: all tensors have parts
    along the same other dim."""

    def rule(call: Call) -> list[Choice]:
        ndim = max(len(call.shape(place)) for place in range(len(call.tensors)))
        given = next((v for v in map(call.argument, names) if v is not None), default)
        listed = given if isinstance(given, (list, tuple)) else [given]
        used = range(ndim) if given is None else [positive(dim, ndim) for dim in listed]
        return [call.everywhere(), *_of_rest(call, used, ndim)]

    return rule


def _of_rest(call: Call, used: Any, ndim: int) -> list[Choice]:
    """All tensors in parts along one of the dims that are not used, where they have them all."""
    shapes = [call.shape(place) for place in range(len(call.tensors))]
    if any(len(shape) != ndim for shape in [*shapes, *(spec.shape for spec in call.outputs)]):
        return []
    free = [dim for dim in range(ndim) if dim not in used and _same_length(shapes, dim)]
    return [call.alike(dim) for dim in free if _is_there(call, dim)]


def _same_length(shapes: Any, dim: int) -> bool:
    return len({shape[dim] for shape in shapes}) == 1


def _is_there(call: Call, dim: int) -> bool:
    return any(call.placement(place) == Shard(dim) for place in range(len(call.tensors)))


def reduced_rest(call: Call) -> list[Choice]:
    """Reductions whose whole has to be there along the dims that go."""
    return [c for c in reduction(call) if not isinstance(c.outputs[0], Partial)]


def joined(call: Call) -> list[Choice]:
    """`cat`: parts along other dims, and terms of all."""
    count, ndim = len(call.tensors), len(call.shape(0))
    dim = positive(call.argument("dim", 0), ndim)
    choices = [call.everywhere()]
    choices += [call.alike(d) for d in range(ndim) if d != dim and _is_there(call, d)]
    choices += [Choice((k,) * count, (k,)) for k in call.kinds() if k == Partial("sum")]
    return choices


def stacked(call: Call) -> list[Choice]:
    """`stack`: parts along all dims, and terms of all."""
    count, ndim = len(call.tensors), len(call.shape(0))
    dim = positive(call.argument("dim", 0), ndim + 1)
    choices = [call.everywhere()]
    for place in range(ndim):
        if _is_there(call, place):
            choices.append(Choice((Shard(place),) * count, (Shard(place + (place >= dim)),)))
    return choices + [Choice((k,) * count, (k,)) for k in call.kinds() if isinstance(k, Partial)]


def layer_norm(call: Call) -> list[Choice]:
    """Parts along dims of items; weight and bias are copied."""
    items = len(call.shape(0)) - len(call.argument("normalized_shape"))
    rest = (Replicate(),) * (len(call.tensors) - 1)
    divided = [Choice((Shard(d), *rest), (Shard(d),) * len(call.outputs)) for d in range(items)
               if call.placement(0) == Shard(d)]  # fmt: skip
    return [call.everywhere(), *divided]


def layer_norm_backward(call: Call) -> list[Choice]:
    """Gradients of items are in parts as they are; those of weight and bias are sums over them."""
    items = len(call.shape(1)) - len(call.argument("normalized_shape"))
    choices = [call.everywhere()]
    for dim in range(items):
        if Shard(dim) not in (call.placement(0), call.placement(1)):
            continue
        inputs = (Shard(dim),) * 4 + (Replicate(),) * (len(call.tensors) - 4)
        wanted = call.argument("output_mask")
        outputs = [Shard(dim) if place == 0 else Partial("sum")
                   for place, is_wanted in enumerate(wanted) if is_wanted]  # fmt: skip
        if len(outputs) == len(call.outputs):
            choices.append(Choice(inputs, tuple(outputs)))
    return choices


RULES: dict[str, Rule] = {
    **dict.fromkeys((*TERMS, "linalg_vector_norm"), reduction),
    **dict.fromkeys("var std var_mean std_mean logsumexp argmax argmin median".split(),
                    reduced_rest),
    **dict.fromkeys("cumsum cumprod logcumsumexp _softmax _log_softmax _safe_softmax "
                    "_softmax_backward_data _log_softmax_backward_data sort topk gather scatter "
                    "scatter_add glu index_fill".split(), rest_of("dim")),
    **dict.fromkeys(("flip", "roll"), rest_of("dims")),
    **dict.fromkeys(("tril", "triu"), rest_of("", default=(-1, -2))),
    "cat": joined,
    "stack": stacked,
    "native_layer_norm": layer_norm,
    "native_layer_norm_backward": layer_norm_backward,
}  # fmt: skip
