"""Products of matrices: which parts make which parts, and which make terms. Convolutions, and
embeddings, which are products, too."""

from __future__ import annotations

from flambeau.distributed.placements import Partial, Placement, Replicate, Shard
from flambeau.distributed.tensor.rules.call import Call, Choice, Rule

R, P = Replicate(), Partial("sum")


def matrices(call: Call) -> list[Choice]:
    """`mm` and `bmm`: parts of rows, of columns, of items, or terms of the sum."""
    last = len(call.shape(0)) - 1
    choices = [call.everywhere()]
    if last > 1:
        choices.append(Choice((Shard(0), Shard(0)), (Shard(0),)))
    choices.append(Choice((Shard(last - 1), R), (Shard(last - 1),)))
    choices.append(Choice((R, Shard(last)), (Shard(last),)))
    choices.append(Choice((Shard(last), Shard(last - 1)), (P,)))
    return [*choices, Choice((P, R), (P,)), Choice((R, P), (P,))]


def added(call: Call) -> list[Choice]:
    """`addmm` and `baddbmm`: what is added lies as the result does."""
    rest = Call(call.overload, call.name, call.args[1:], call.kwargs)
    rest.outputs, rest.mesh_dim, rest.parts = call.outputs, call.mesh_dim, call.parts
    return [Choice((_beside(call, c.outputs[0]), *c.inputs), c.outputs) for c in matrices(rest)]


def _beside(call: Call, result: Placement) -> Placement:
    """Where what is added to a result lies, which may have fewer dims or one element along some."""
    if not isinstance(result, Shard):
        return result
    shape, whole = call.shape(0), call.outputs[0].shape
    own = result.dim - len(whole) + len(shape)
    return Shard(own) if own >= 0 and shape[own] == whole[result.dim] else R


def vector(call: Call) -> list[Choice]:
    """`mv`: parts of rows, or terms."""
    parts = [Choice((Shard(0), R), (Shard(0),)), Choice((Shard(1), Shard(0)), (P,))]
    return [call.everywhere(), *parts, Choice((P, R), (P,)), Choice((R, P), (P,))]


def dot(call: Call) -> list[Choice]:
    """Terms of the sum."""
    return [call.everywhere(), Choice((Shard(0), Shard(0)), (P,))]


def embedding(call: Call) -> list[Choice]:
    """Parts of the indices, or of what is looked up. (A table in parts: see `special`.)"""
    last = len(call.shape(1))
    choices = [call.everywhere(), Choice((Shard(1), R), (Shard(last),))]
    return choices + [Choice((R, Shard(d)), (Shard(d),)) for d in range(last)]


def embedding_backward(call: Call) -> list[Choice]:
    """Parts of the indices make terms; parts of what was looked up make parts."""
    last = len(call.shape(0)) - 1
    choices = [call.everywhere(), Choice((Shard(last), R), (Shard(1),)), Choice((P, R), (P,))]
    return choices + [Choice((Shard(d), Shard(d)), (P,)) for d in range(last)]


def convolution(call: Call) -> list[Choice]:
    """Parts along the batch."""
    rest = (R,) * (len(call.tensors) - 1)
    return [call.everywhere(), Choice((Shard(0), *rest), (Shard(0),))]


def convolution_backward(call: Call) -> list[Choice]:
    """Parts along the batch; gradients of weight and bias are sums over it."""
    wanted = call.argument("output_mask")
    outputs = [Shard(0) if place == 0 else P for place, w in enumerate(wanted) if w]
    if len(outputs) != len(call.outputs):
        return [call.everywhere()]
    return [call.everywhere(), Choice((Shard(0), Shard(0), R), tuple(outputs))]


RULES: dict[str, Rule] = {
    "mm": matrices, "bmm": matrices, "addmm": added, "baddbmm": added, "mv": vector, "dot": dot,
    "embedding": embedding, "embedding_dense_backward": embedding_backward,
    "convolution": convolution, "convolution_backward": convolution_backward,
}  # fmt: skip
