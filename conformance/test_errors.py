"""Common mistakes: the exception, its first line, and that no tensor was touched, as in torch."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch as reference

import flambeau


def tensors(t: Any) -> SimpleNamespace:
    """What the mistakes are made with."""
    return SimpleNamespace(
        a=t.arange(6.0).reshape(2, 3),
        b=t.arange(8.0).reshape(4, 2),
        v=t.arange(4.0),
        i=t.arange(6).reshape(2, 3),
        m=t.tensor([True, False, True, True]),
        s=t.tensor(2.5),
        c=t.tensor([1 + 2j, 3 - 1j]),
        e=t.zeros(0, 3),
        q=t.arange(8.0).reshape(2, 2, 2),
        h=t.ones(2, 3, dtype=t.float16),
        d=t.ones(2, 3, dtype=t.float64),
    )


Mistake = Callable[[Any, Any], Any]
MISTAKES: dict[str, Mistake] = {
    # shapes
    "add shapes": lambda t, x: x.a + x.b,
    "add_ shapes": lambda t, x: x.a.add_(x.b),
    "mul vector": lambda t, x: x.a * x.v,
    "where shapes": lambda t, x: t.where(x.m, x.a, x.b),
    "matmul": lambda t, x: x.a @ x.b,
    "matmul vectors": lambda t, x: x.v @ x.v[:2],
    "matmul 0-dim": lambda t, x: x.a @ x.s,
    "mm of 3 dims": lambda t, x: t.mm(x.q, x.a),
    "bmm of 2 dims": lambda t, x: t.bmm(x.a, x.a),
    "bmm batches": lambda t, x: t.bmm(x.q, t.ones(3, 2, 2)),
    "bmm of bools and floats": lambda t, x: t.bmm(t.ones(2, 2, 2, dtype=t.bool), t.ones(2, 2, 2)),
    "matmul of bools and floats": lambda t, x: t.ones(2, 2, 2, dtype=t.bool) @ t.ones(1, 2, 2),
    "dot of matrices": lambda t, x: t.dot(x.a, x.a),
    "dot lengths": lambda t, x: t.dot(x.v, x.v[1:]),
    "mv": lambda t, x: t.mv(x.a, x.v),
    "addmm": lambda t, x: t.addmm(x.v, x.a, x.b),
    "linear": lambda t, x: t.nn.functional.linear(x.a, x.b),
    "view size": lambda t, x: x.a.view(4),
    "view of transposed": lambda t, x: x.a.t().view(6),
    "view two unknown": lambda t, x: x.a.view(-1, -1),
    "view negative": lambda t, x: x.a.view(-2, 3),
    "reshape size": lambda t, x: x.a.reshape(5, -1),
    "reshape empty unknown": lambda t, x: x.e.reshape(0, -1),
    "expand": lambda t, x: x.a.expand(2, 4),
    "expand fewer dims": lambda t, x: x.a.expand(3),
    "expand new -1": lambda t, x: x.a.expand(-1, 2, 3),
    "cat shapes": lambda t, x: t.cat([x.a, x.b]),
    "cat ranks": lambda t, x: t.cat([x.a, x.v]),
    "cat nothing": lambda t, x: t.cat([]),
    "cat 0-dim": lambda t, x: t.cat([x.s, x.s]),
    "cat dim": lambda t, x: t.cat([x.a, x.a], 2),
    "stack shapes": lambda t, x: t.stack([x.a, x.v]),
    "stack nothing": lambda t, x: t.stack([]),
    "split sizes": lambda t, x: x.v.split([1, 2]),
    "split negative": lambda t, x: x.v.split(-1),
    "chunk zero": lambda t, x: x.v.chunk(0),
    "squeeze dim": lambda t, x: x.a.squeeze(2),
    "unsqueeze dim": lambda t, x: x.a.unsqueeze(4),
    "transpose dim": lambda t, x: x.a.transpose(0, 2),
    "t of 3 dims": lambda t, x: x.q.t(),
    "permute length": lambda t, x: x.a.permute(0),
    "permute repeated": lambda t, x: x.a.permute(0, 0),
    "permute dim": lambda t, x: x.a.permute(0, 5),
    "flip repeated": lambda t, x: x.a.flip(0, 0),
    "roll": lambda t, x: x.a.roll((1, 2), (0,)),
    "meshgrid of two devices": lambda t, x: t.meshgrid(x.v, x.v.to("meta"), indexing="ij"),
    "histogram into other types": lambda t, x: t.histogram(
        x.v, 2, out=(t.ones(2, dtype=t.float64), t.ones(3))
    ),
    "histogram with other edges": lambda t, x: t.histogram(
        x.v, 2, out=(t.ones(2), t.ones(3, dtype=t.float64))
    ),
    "diagonal dims": lambda t, x: x.a.diagonal(0, 1, 1),
    "tril of vector": lambda t, x: x.v.tril(),
    "unfold": lambda t, x: x.v.unfold(0, 9, 1),
    "repeat fewer": lambda t, x: x.a.repeat(2),
    "as_strided": lambda t, x: x.v.as_strided((3, 3), (3, 1)),
    "narrow": lambda t, x: x.v.narrow(0, 3, 2),
    "select": lambda t, x: x.a.select(0, 2),
    "movedim": lambda t, x: x.a.movedim((0, 1), (0,)),
    "flatten": lambda t, x: x.a.flatten(1, 0),
    "unflatten": lambda t, x: x.a.unflatten(1, (2, 2)),
    # dims of reductions
    "sum dim": lambda t, x: x.a.sum(2),
    "sum dim repeated": lambda t, x: x.a.sum((0, 0)),
    "sum negative dim": lambda t, x: x.a.sum(-3),
    "mean of integers": lambda t, x: x.i.mean(),
    "max of nothing": lambda t, x: x.e.max(),
    "argmax of nothing": lambda t, x: x.e.argmax(),
    "max empty dim": lambda t, x: x.e.max(0),
    "median dim": lambda t, x: x.a.median(5),
    "cumsum dim": lambda t, x: x.a.cumsum(3),
    "softmax dim": lambda t, x: x.a.softmax(2),
    "softmax of integers": lambda t, x: x.i.softmax(0),
    "topk": lambda t, x: x.v.topk(9),
    "kthvalue": lambda t, x: x.v.kthvalue(0),
    "sort dim": lambda t, x: x.a.sort(2),
    "norm of integers": lambda t, x: t.linalg.vector_norm(x.i),
    # indices
    "index": lambda t, x: x.a[2],
    "negative index": lambda t, x: x.a[-3],
    "too many indices": lambda t, x: x.a[0, 0, 0],
    "index of 0-dim": lambda t, x: x.s[0],
    "float index": lambda t, x: x.v[1.0],
    "float tensor index": lambda t, x: x.v[x.v],
    "tensor index": lambda t, x: x.v[t.tensor([0, 4])],
    "mask shape": lambda t, x: x.a[x.m],
    "index shapes": lambda t, x: x.a[t.tensor([0, 1]), t.tensor([0, 1, 2])],
    "set shape": lambda t, x: x.a.__setitem__(0, x.v),
    "set index": lambda t, x: x.a.__setitem__(5, 1.0),
    "set text": lambda t, x: x.a.__setitem__(0, "one"),
    "slice step": lambda t, x: x.v[::-1],
    "slice zero step": lambda t, x: x.v[::0],
    "string index": lambda t, x: x.v["a"],
    "gather dtype": lambda t, x: x.a.gather(0, x.a),
    "gather index": lambda t, x: x.a.gather(0, t.tensor([[5, 0, 0]])),
    "gather ranks": lambda t, x: x.a.gather(0, t.tensor([0])),
    "index_select dtype": lambda t, x: x.a.index_select(0, x.v),
    "index_select index": lambda t, x: x.a.index_select(0, t.tensor([2])),
    "index_select rank": lambda t, x: x.a.index_select(0, t.tensor([[0]])),
    "scatter dtype": lambda t, x: x.a.scatter_(0, x.a, 1.0),
    "scatter index": lambda t, x: x.a.scatter_(0, t.tensor([[7]]), 1.0),
    "scatter_add type": lambda t, x: x.a.scatter_add_(0, x.i * 0, x.d),
    "index_add": lambda t, x: x.a.index_add_(0, t.tensor([0, 1, 1]), x.a),
    "masked_fill dtype": lambda t, x: x.v.masked_fill(x.v, 1.0),
    "masked_fill value": lambda t, x: x.v.masked_fill(x.m, x.v),
    "masked_select": lambda t, x: x.v.masked_select(x.v),
    "take": lambda t, x: x.v.take(t.tensor([4])),
    "embedding": lambda t, x: t.nn.functional.embedding(t.tensor([9]), x.b),
    # types
    "matmul types": lambda t, x: x.a @ x.d.t(),
    "linear types": lambda t, x: t.nn.functional.linear(x.a, x.d),
    "in-place type": lambda t, x: x.i.add_(1.5),
    "in-place division": lambda t, x: x.i.div_(2),
    "bitwise float": lambda t, x: x.a & x.a,
    "shift float": lambda t, x: x.a << 1,
    "not of float": lambda t, x: ~x.a,
    "bool minus": lambda t, x: x.m - x.m,
    "negative bool": lambda t, x: -x.m,
    "compare complex": lambda t, x: x.c < x.c,
    "floor of complex": lambda t, x: x.c.floor(),
    "max of complex": lambda t, x: x.c.max(),
    "complex to float": lambda t, x: (
        x.v[:2].copy_(x.c) and t.tensor(x.c[0].item(), dtype=t.float32)
    ),
    "integer power": lambda t, x: x.i.pow(-1),
    "integer division by zero": lambda t, x: x.i // 0,
    "add text": lambda t, x: x.a + "1",
    "add none": lambda t, x: x.a + None,
    "add list": lambda t, x: x.a + [1.0, 2.0, 3.0],
    "exp of number": lambda t, x: t.exp(1.0),
    "too many arguments": lambda t, x: t.exp(x.a, x.a),
    "relu of complex": lambda t, x: x.c.relu(),
    "clamp without bounds": lambda t, x: x.a.clamp(),
    # making
    "negative size": lambda t, x: t.zeros(-1),
    "ragged list": lambda t, x: t.tensor([[1, 2], [3]]),
    "text": lambda t, x: t.tensor("a"),
    "overflow": lambda t, x: t.tensor(300, dtype=t.uint8),
    "arange sign": lambda t, x: t.arange(3, 1),
    "arange zero": lambda t, x: t.arange(0, 3, 0),
    "linspace steps": lambda t, x: t.linspace(0, 1, -1),
    "eye": lambda t, x: t.eye(-1),
    "full none": lambda t, x: t.full((2,), None),
    "device": lambda t, x: t.zeros(2, device="nowhere"),
    "randperm": lambda t, x: t.randperm(-1),
    "randint": lambda t, x: t.randint(3, 3, (2,)),
    "multinomial": lambda t, x: t.multinomial(x.v * 0, 1),
    "normal": lambda t, x: t.normal(0.0, -1.0, (2,)),
    "bernoulli": lambda t, x: x.v.bernoulli(2.0),
    # one value
    "item of many": lambda t, x: x.a.item(),
    "bool of many": lambda t, x: bool(x.a),
    "float of many": lambda t, x: float(x.a),
    "int as index of float": lambda t, x: [1, 2, 3][x.s],
    "len of 0-dim": lambda t, x: len(x.s),
    "iterate 0-dim": lambda t, x: list(x.s),
    # out=
    "out type": lambda t, x: t.add(x.a, x.a, out=x.i),
    "out not a tensor": lambda t, x: t.add(x.a, x.a, out=[1]),
    "out grad": lambda t, x: t.add(x.a, x.a.clone().requires_grad_(), out=x.d),
    # networks
    "conv2d channels": lambda t, x: t.nn.functional.conv2d(t.ones(1, 3, 4, 4), t.ones(2, 2, 3, 3)),
    "conv2d kernel": lambda t, x: t.nn.functional.conv2d(t.ones(1, 1, 2, 2), t.ones(1, 1, 3, 3)),
    "conv2d groups": lambda t, x: t.nn.functional.conv2d(
        t.ones(1, 3, 4, 4), t.ones(2, 1, 3, 3), groups=2
    ),
    "max_pool2d padding": lambda t, x: t.nn.functional.max_pool2d(t.ones(1, 1, 4, 4), 2, padding=2),
    "cross_entropy target": lambda t, x: t.nn.functional.cross_entropy(x.a, t.tensor([0, 3])),
    "cross_entropy batch": lambda t, x: t.nn.functional.cross_entropy(x.a, t.tensor([0])),
    "cross_entropy type": lambda t, x: t.nn.functional.cross_entropy(x.a, x.i[:, 0].int()),
    "bce range": lambda t, x: t.nn.functional.binary_cross_entropy(x.a, x.a),
    "bce shape": lambda t, x: t.nn.functional.binary_cross_entropy(x.a, x.v),
    "layer_norm": lambda t, x: t.nn.functional.layer_norm(x.a, (4,)),
    "batch_norm": lambda t, x: t.nn.functional.batch_norm(x.a[:1], None, None, training=True),
    "dropout": lambda t, x: t.nn.functional.dropout(x.a, 1.5),
    "one_hot": lambda t, x: t.nn.functional.one_hot(x.i, 3),
    "interpolate": lambda t, x: t.nn.functional.interpolate(x.q),
    "pad": lambda t, x: t.nn.functional.pad(x.a, (1, 1, 1, 1, 1, 1)),
    "einsum": lambda t, x: t.einsum("ij,jk->ik", x.a, x.b),
    "einsum letters": lambda t, x: t.einsum("ijk", x.a),
    # linear algebra
    "inverse": lambda t, x: t.linalg.inv(x.a),
    "singular": lambda t, x: t.linalg.inv(t.zeros(2, 2)),
    "cholesky": lambda t, x: t.linalg.cholesky(-t.eye(2)),
    "solve": lambda t, x: t.linalg.solve(t.eye(3), x.a),
    "det": lambda t, x: t.linalg.det(x.v),
}


def outcome(library: Any, mistake: Mistake) -> tuple[Any, bool]:
    """(the error's type and first line, whether all tensors are as before)."""
    given = tensors(library)
    before = {name: (value.clone(), value._version) for name, value in vars(given).items()}
    try:
        mistake(library, given)
        error = None
    except Exception as raised:
        error = (type(raised).__name__, str(raised).split("\n")[0])
    same = all(
        library.equal(value, before[name][0]) and value._version == before[name][1]
        for name, value in vars(given).items()
    )
    return error, same


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MISTAKES)
def test_mistake(name: str) -> None:
    ours, theirs = (outcome(library, MISTAKES[name]) for library in (flambeau, reference))
    assert ours[0] == theirs[0]
    assert ours[1] or not theirs[1]
