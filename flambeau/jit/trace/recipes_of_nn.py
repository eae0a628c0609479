"""Recipes for functions of `nn.functional` and layers with several operators or results."""

from __future__ import annotations

from typing import Any

from flambeau._ops.table.namespace import get, ops
from flambeau.jit.trace.recipes import bound, recipe, tuple_of
from flambeau.jit.trace.recipes_of_functional import REDUCTIONS

# ---- losses: both sides are broadcast first


def _of_pair(public: str, names: str, *options: str, **defaults: Any) -> None:
    @recipe(f"nn.functional.{public}")
    def run(trace: Any, itself: Any, args: Any, kwargs: Any) -> Any:
        given = bound(names, args, kwargs, reduction="mean", **defaults)
        values = dict(zip(names.split(), given, strict=True))
        trace.name({"input": values["input"], "target": values["target"]})
        x, target = values["input"], values["target"]
        sides = ops.broadcast_tensors(x, target)
        trace.name({"input": sides[0], "target": sides[1]}, as_parameter=True)
        extra = [float(values[name]) for name in options]
        reduction = REDUCTIONS[values["reduction"]]
        return trace.operator(public, itself, args, kwargs, given=(*sides, reduction, *extra),
                              named={})  # fmt: skip


OLD = "input target size_average reduce reduction"
_of_pair("l1_loss", OLD)
_of_pair("mse_loss", OLD)
_of_pair("smooth_l1_loss", f"{OLD} beta", "beta", beta=1.0)
_of_pair("huber_loss", "input target reduction delta", "delta", delta=1.0)


# ---- pooling, with and without places


def _max_pool(count: int) -> None:
    public = f"max_pool{count}d"
    names = "input kernel_size stride padding dilation ceil_mode return_indices"

    def given_of(args: Any, kwargs: Any) -> tuple[Any, ...]:
        x, kernel, stride, padding, dilation, ceil, _ = bound(
            names, args, kwargs, padding=0, dilation=1, ceil_mode=False, return_indices=False
        )
        sizes = [kernel, kernel if stride is None else stride, padding, dilation]
        return (x, *(tuple_of(size, count) for size in sizes), ceil)

    @recipe(f"nn.functional.{public}_with_indices")
    def with_indices(trace: Any, itself: Any, args: Any, kwargs: Any) -> Any:
        return trace.operator(f"{public}_with_indices", itself, args, kwargs,
                              given=given_of(args, kwargs), named={})  # fmt: skip

    @recipe(f"nn.functional.{public}")
    def pool(trace: Any, itself: Any, args: Any, kwargs: Any) -> Any:
        given = dict(zip(names.split(), args, strict=False)) | kwargs
        if given.get("return_indices"):
            return with_indices(trace, itself, args, kwargs)
        return trace.operator(public, itself, args, kwargs, given=given_of(args, kwargs),
                              named={})  # fmt: skip


def _adaptive_max_pool(count: int) -> None:
    public = f"adaptive_max_pool{count}d"

    @recipe(f"nn.functional.{public}", f"nn.functional.{public}_with_indices")
    def pool(trace: Any, itself: Any, args: Any, kwargs: Any) -> Any:
        x, size, wanted = bound("input output_size return_indices", args, kwargs)
        sizes = [x.shape[n - count] if s is None else s
                 for n, s in enumerate(tuple_of(size, count))]  # fmt: skip
        both = get(f"nn.functional.{public}_with_indices")
        values, places = trace.operator(public, lambda *_: both(x, size), (x, sizes), {})
        return (values, places) if wanted or itself.__name__.endswith("indices") else values


for _count in (1, 2, 3):
    _max_pool(_count)
    _adaptive_max_pool(_count)
