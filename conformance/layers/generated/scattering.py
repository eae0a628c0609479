"""Elements by index: gathering, scattering, tables."""

from __future__ import annotations

from typing import Any

from .drawing import Drawing, Text, called


def drawn(p: Drawing) -> None:
    if p.chance(0.15):
        p.dtype = p.one("int64", "int32", "complex64", "uint8")
    p.one(_gather, _scatter, _scatter_reduce, _along, _index_reduce, _select, _items, _put, _masked,
          _embedding, _bag)(p)  # fmt: skip


def _places(p: Drawing) -> tuple[tuple[int, ...], int, tuple[int, ...]]:
    """A shape, a dimension, and the shape of an index into it."""
    shape = p.sizes(p.size(1, 4), 1, 5)
    dim = p.dim(len(shape))
    index = [p.size(1, size) if p.chance(0.4) else size for size in shape]
    index[dim] = p.size(0 if p.chance(0.1) else 1, 6)
    return shape, dim, tuple(index)


def _gather(p: Drawing) -> None:
    shape, dim, index = _places(p)
    x = p.tensor(shape)
    i = p.indices(index, shape[dim], dtype="int64")
    options = p.some(0.1, sparse_grad=False)
    if p.chance(0.3):
        i = p.indices(tuple(1 if d != dim % len(shape) else s for d, s in enumerate(index)),
                      shape[dim], dtype="int64")  # fmt: skip
        p.gradients(p.result(called("torch.take_along_dim", x, i, dim)))
        return
    p.gradients(p.result(called("torch.gather", x, dim, i, **options)))


def _scatter(p: Drawing) -> None:
    shape, dim, index = _places(p)
    index = tuple(min(a, b) for a, b in zip(index, shape, strict=True))
    x = p.tensor(shape)
    i = p.indices(index, shape[dim], dtype="int64")
    src: Any = p.one(p.tensor(index), 2.0 if "int" not in p.dtype else 2)
    name = p.one("scatter", "scatter_add") if isinstance(src, Text) else "scatter"
    if name == "scatter":
        row = f"torch.arange({index[dim]}).view({_single(len(shape), dim)})"
        i = p.let("i", f"{row}.expand({index})")
    options = p.some(0.2, reduce=p.one("add", "multiply")) if name == "scatter" else {}
    p.gradients(p.result(called(f"torch.{name}", x, dim, i, src, **options)))


def _single(dims: int, dim: int) -> tuple[int, ...]:
    return tuple(-1 if place == dim % dims else 1 for place in range(dims))


def _scatter_reduce(p: Drawing) -> None:
    shape, dim, index = _places(p)
    i = p.indices(index, shape[dim], dtype="int64")
    longer = [max(a, b) for a, b in zip(index, shape, strict=True)]
    src = p.tensor(tuple(longer) if p.chance(0.2) else index)
    reduce = p.one("sum", "prod", "mean", "amax", "amin")
    options = p.some(0.5, include_self=p.one(True, False))
    x = p.tensor(shape)
    p.gradients(p.result(called("torch.scatter_reduce", x, dim, i, src, reduce, **options)))


def _along(p: Drawing) -> None:
    shape = p.sizes(p.size(1, 4), 1, 5)
    dim = p.dim(len(shape))
    count = p.size(0 if p.chance(0.1) else 1, 6)
    i = p.indices((count,), shape[dim])
    inner = list(shape)
    inner[dim] = count
    x = p.tensor(shape)
    name = p.one("index_select", "index_add", "index_copy", "index_fill")
    if name == "index_select":
        text = called("torch.index_select", x, dim, i)
    elif name == "index_fill":
        text = called("torch.index_fill", x, dim, i, 2)
    else:
        options = p.some(0.3, alpha=2) if name == "index_add" else {}
        if name == "index_copy":
            i = p.indices((count,), shape[dim], dtype="int64")
        text = called(f"torch.{name}", x, dim, i, p.tensor(tuple(inner)), **options)
    p.gradients(p.result(text))


def _index_reduce(p: Drawing) -> None:
    shape = p.sizes(p.size(1, 3), 1, 5)
    dim = p.dim(len(shape))
    count = p.size(1, 6)
    i = p.indices((count,), shape[dim])
    inner = list(shape)
    inner[dim] = count
    options = p.some(0.5, include_self=p.one(True, False))
    x, source = p.tensor(shape), p.tensor(tuple(inner))
    reduce = p.one("prod", "mean", "amax", "amin")
    p.gradients(p.result(called("torch.index_reduce", x, dim, i, source, reduce, **options)))


def _select(p: Drawing) -> None:
    shape = p.sizes(p.size(1, 4), 1, 5)
    x = p.tensor(shape)
    total = 1
    for size in shape:
        total *= size
    dim = p.dim(len(shape))
    text = p.one(
        called("torch.take", x, p.indices(p.sizes(p.size(0, 2), 1, 4), total, dtype="int64")),
        called("torch.select_scatter", x, p.tensor(_without(shape, dim)), dim,
               p.size(0, shape[dim] - 1)),
        called("torch.slice_scatter", x, p.tensor(shape), dim),
        called("torch.diagonal_copy", x) if len(shape) > 1 else called("torch.diag", x),
    )  # fmt: skip
    p.gradients(p.result(text))


def _without(shape: tuple[int, ...], dim: int) -> tuple[int, ...]:
    dim %= len(shape)
    return shape[:dim] + shape[dim + 1 :]


def _item(p: Drawing, size: int, shape: tuple[int, ...]) -> str:
    kind = p.one(":", ":", "slice", "number", "index", "index", "None")
    if kind == "slice":
        return f"{p.one('', p.size(0, size))}:{p.one('', p.size(0, size))}:{p.one('', 1, 2)}"
    if kind == "number":
        return str(p.size(0, size - 1))
    if kind == "index":
        return p.indices(shape, size, p.one(0, -size) if p.chance(0.3) else 0, "int64")
    return kind


def _items(p: Drawing) -> None:
    """Indexing with all there is."""
    shape = p.sizes(p.size(1, 4), 1, 5)
    x = p.tensor(shape)
    index = p.sizes(p.size(0, 2), 1, 3)
    items = [_item(p, size, index) for size in shape[: p.size(1, len(shape))]]
    if p.chance(0.2):
        items[-1:] = ["..."]
    p.gradients(p.result(f"{x}[{', '.join(items)}]"))


def _put(p: Drawing) -> None:
    shape = p.sizes(p.size(1, 3), 1, 5)
    x = p.tensor(shape)
    index = p.sizes(1, 1, 4)
    count = p.size(1, len(shape))
    indices = tuple(p.indices(index, size, dtype="int64") for size in shape[:count])
    values = p.tensor((*index, *shape[count:]))
    options = {"accumulate": True}
    p.gradients(p.result(called("torch.index_put", x, indices, values, **options)))


def _masked(p: Drawing) -> None:
    shape = p.sizes(p.size(1, 4), 1, 5)
    x = p.tensor(shape)
    mask = p.let("k", f"bits({p.seed()}, {shape[p.size(0, len(shape) - 1) :]})")
    name = p.one("select", "fill", "scatter", "where", "index")
    if name == "select":
        text = called("torch.masked_select", x, mask)
    elif name == "fill":
        text = called("torch.masked_fill", x, mask, 2)
    elif name == "scatter":
        text = called("torch.masked_scatter", x, mask, p.tensor(shape))
    elif name == "where":
        text = called("torch.where", mask, x, p.one(p.tensor(shape), 1))
    else:
        text = f"{x}[bits({p.seed()}, {shape[: p.size(1, len(shape))]})]"
    p.gradients(p.result(text))


def _table(p: Drawing) -> tuple[int, Text, dict[str, Any]]:
    rows = p.size(1, 8)
    weight = p.tensor((rows, p.size(1, 5)))
    options = p.some(0.25, padding_idx=p.size(-1, rows - 1), scale_grad_by_freq=True)
    options.update(p.some(0.15, max_norm=p.one(0.5, 1.0), norm_type=p.one(1.0, 2.0)))
    return rows, weight, options


def _embedding(p: Drawing) -> None:
    rows, weight, options = _table(p)
    i = p.indices(p.sizes(p.size(0, 3), 1, 4), rows)
    p.gradients(p.result(called("F.embedding", i, weight, **options)))


def _bag(p: Drawing) -> None:
    rows, weight, options = _table(p)
    options["mode"] = p.one("sum", "mean", "max")
    options.pop("scale_grad_by_freq", None)  # PyTorch takes the counts of other rows
    if p.chance(0.4):
        shape = p.sizes(2, 1, 5)
        i = p.indices(shape, rows)
    else:
        shape = (p.size(1, 8),)
        i = p.indices(shape, rows, dtype="int64")
        bags = sorted(p.size(0, shape[0]) for _ in range(p.size(0, 3)))
        options["offsets"] = Text(f"torch.tensor({[0, *bags]})")
        options.update(p.some(0.2, include_last_offset=True))
        if options.get("include_last_offset"):
            options["offsets"] = Text(f"torch.tensor({[0, *bags, shape[0]]})")
    if options["mode"] == "sum" and p.chance(0.4):
        options["per_sample_weights"] = p.tensor(shape)
    p.gradients(p.result(called("F.embedding_bag", i, weight, **options)))
