"""Along a dimension: sums so far, order, quantiles, places, what is there once."""

from __future__ import annotations

from typing import Any

from .drawing import Drawing, Text, called


def drawn(p: Drawing) -> None:
    if p.chance(0.15):
        p.dtype = p.one("int64", "int32", "uint8", "bool")
    p.one(_cumulative, _sorted, _chosen, _quantile, _searched, _histogram, _unique, _reduced,
          _reduced, _softmax)(p)  # fmt: skip


def _shape(p: Drawing) -> tuple[int, ...]:
    shape = p.sizes(p.size(0 if p.chance(0.2) else 1, 4), 1, 6)
    return shape if p.chance(0.95) else (*shape, 0)


def _cumulative(p: Drawing) -> None:
    shape = _shape(p)
    x = p.tensor(shape)
    name = p.one("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp")
    options = p.some(0.2, dtype=Text("torch.float64")) if name in ("cumsum", "cumprod") else {}
    if p.chance(0.1) and len(shape) > 0:
        text = called("torch.cumulative_trapezoid", x, dim=p.dim(len(shape)))
    else:
        text = called(f"torch.{name}", x, p.dim(len(shape)), **options)
    p.gradients(p.result(text))


def _distinct(p: Drawing, shape: tuple[int, ...]) -> Text:
    """Numbers of which no two are the same, as far as the type allows."""
    return p.tensor(shape, p.one("float32", "float64"), layout=p.one("rows", "permuted", "sliced",
                    "transposed", "last", "offset"))  # fmt: skip


def _sorted(p: Drawing) -> None:
    shape = _shape(p)
    stable = p.chance(0.4)
    x = p.tensor(shape) if stable else _distinct(p, shape)
    options = p.some(0.5, dim=p.dim(len(shape)), descending=p.one(True, False))
    if stable:
        options["stable"] = True
    name = p.one("sort", "sort", "argsort", "msort")
    if name == "msort":
        p.gradients(p.result(called("torch.msort", _distinct(p, shape))))
        return
    p.gradients(p.result(called(f"torch.{name}", x, **options)))


def _chosen(p: Drawing) -> None:
    shape = _shape(p)
    x = _distinct(p, shape)
    dim = p.dim(len(shape))
    size = shape[dim] if shape else 1
    options = p.some(0.6, dim=dim)
    if p.chance(0.5):
        options.update(p.some(0.4, largest=p.one(True, False), sorted=True))
        p.gradients(p.result(called("torch.topk", x, p.size(0, size), **options)))
        return
    options.update(p.some(0.4, keepdim=True))
    p.gradients(p.result(called("torch.kthvalue", x, p.size(1, max(size, 1)), **options)))


def _quantile(p: Drawing) -> None:
    shape = _shape(p)
    if p.chance(0.4):
        name = p.one("median", "nanmedian", "mode")
        options = {"dim": p.dim(len(shape))} if p.chance(0.7) or name == "mode" else {}
        if options:
            options.update(p.some(0.4, keepdim=True))
        p.gradients(p.result(called(f"torch.{name}", _distinct(p, shape), **options)))
        return
    p.dtype = p.one("float32", "float64")
    x = p.tensor(shape)
    q: Any = p.one(0.3, 0.5, Text(f"torch.tensor([0.1, 0.5, 0.9], dtype=torch.{p.dtype})"))
    options = p.some(0.5, dim=p.dim(len(shape)), keepdim=True, interpolation=p.one(
        "linear", "lower", "higher", "midpoint", "nearest"))  # fmt: skip
    p.gradients(p.result(called(p.one("torch.quantile", "torch.nanquantile"), x, q, **options)))


def _searched(p: Drawing) -> None:
    rows = p.sizes(p.size(0, 2), 1, 3)
    edges = p.let("e", f"{p.tensor((*rows, p.size(1, 6)), p.dtype, learns=False)}.sort(-1)[0]")
    options = p.some(0.3, right=True, out_int32=True)
    if p.chance(0.4):
        flat = p.let("e", f"{edges}.reshape(-1).sort()[0]")
        x = p.tensor(p.sizes(p.size(0, 3), 1, 5), learns=False)
        p.result(called("torch.bucketize", p.one(x, 0.5, 1), flat, **options))
        return
    x = p.tensor((*rows, p.size(0, 5)), learns=False)
    p.result(called("torch.searchsorted", edges, x, **options))


def _histogram(p: Drawing) -> None:
    x = p.tensor(p.sizes(p.size(1, 2), 1, 9), learns=False)
    name = p.one("histc", "histogram", "bincount", "histogramdd")
    if name == "histc":
        options = p.some(0.5, bins=p.size(1, 6), min=-1, max=2)
        p.result(called("torch.histc", x, **options))
    elif name == "histogram":
        options = p.some(0.4, range=(-1.0, 1.0), density=True)
        if p.chance(0.3):
            edges = Text(f"torch.tensor([-1.0, 0.0, 0.5, 2.0]).to({x}.dtype)")
            p.result(called("torch.histogram", x, edges))
            return
        p.result(called("torch.histogram", x, p.size(1, 6), **options))
    elif name == "histogramdd":
        x = p.tensor(p.sizes(2, 2, 4), learns=False)
        p.result(called("torch.histogramdd", x, p.size(1, 4), **p.some(0.4, density=True)))
    else:
        i = p.indices((p.size(0, 6),), p.size(1, 6))
        options = p.some(0.4, minlength=p.size(0, 9))
        p.result(called("torch.bincount", i, **options))


def _unique(p: Drawing) -> None:
    shape = _shape(p)
    x = p.tensor(shape, fill="small", learns=False)
    options = p.some(0.5, return_inverse=True, return_counts=True)
    options.update(p.some(0.4, dim=p.dim(len(shape))))
    name = p.one("unique", "unique_consecutive")
    if name == "unique" and p.chance(0.3):
        options["sorted"] = True
    p.result(called(f"torch.{name}", x, **options))


REDUCED = (
    "sum mean prod amax amin var std logsumexp nansum nanmean all any argmax argmin max min norm"
    " count_nonzero aminmax var_mean std_mean"
).split()
ONE = ("prod", "argmax", "argmin", "max", "min", "aminmax")


def _reduced(p: Drawing) -> None:
    shape = _shape(p)
    name = p.one(*REDUCED)
    x = _distinct(p, shape) if name in ("argmax", "argmin", "max", "min") else p.tensor(shape)
    dims: Any = p.dim(len(shape))
    if name not in ONE and shape and p.chance(0.5):
        low = 1 if name in ("var", "std", "var_mean", "std_mean") else 0
        dims = p.random.sample(range(len(shape)), p.size(low, len(shape)))
    options = {"dim": dims} if p.chance(0.75) or name == "logsumexp" else {}
    if options and name != "count_nonzero":
        options.update(p.some(0.4, keepdim=True))
    if name in ("var", "std", "var_mean", "std_mean"):
        options.update(p.some(0.4, correction=p.one(0, 2, 1)))
    if name in ("sum", "mean", "prod", "nansum"):
        options.update(p.some(0.2, dtype=Text("torch.float64")))
    p.gradients(p.result(called(f"torch.{name}", x, **options)))


def _softmax(p: Drawing) -> None:
    shape = _shape(p)
    name = p.one("softmax", "log_softmax", "softmin", "gumbel_softmax")
    options = {"dim": p.dim(len(shape))}
    if name == "gumbel_softmax":
        options.update(p.some(0.4, hard=True, tau=0.5))
    else:
        options.update(p.some(0.2, dtype=Text("torch.float64")))
    p.gradients(p.result(called(f"F.{name}", p.tensor(shape), **options)))
