"""Recipes for functions of `nn.functional` that are one operator each, chosen by their options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.jit.trace.recipes import RECIPES, bound, recipe, tuple_of


def chooses(public: str, names: str, how: Callable[..., tuple[Any, ...]], *,
            names_values: bool = True, **defaults: Any) -> None:  # fmt: skip
    """A function that is one operator: `how` gives its name and its arguments.

    names_values: whether values without a name are called what the parameters are, as they are
        where in torch the function is written in Python.
    """

    def run(trace: Any, itself: Any, args: Any, kwargs: Any) -> Any:
        values = bound(names, args, kwargs, **defaults)
        if names_values:
            trace.name(dict(zip(names.split(), values, strict=True)))
        aten, *given = how(*values)
        return trace.operator(aten, itself, args, kwargs, given=given, named={})

    RECIPES[f"nn.functional.{public}"] = run


def _in_place(name: str) -> Callable[..., tuple[Any, ...]]:
    def how(x: Any, *rest: Any) -> tuple[Any, ...]:
        *options, inplace = rest
        return (f"{name}_" if inplace else name, x, *options)

    return how


for _name in ("relu", "relu6", "selu", "silu", "mish", "hardsigmoid", "hardswish"):
    chooses(_name, "input inplace", _in_place(_name), inplace=False)
chooses("leaky_relu", "input negative_slope inplace", _in_place("leaky_relu"),
        negative_slope=0.01, inplace=False)  # fmt: skip
chooses("elu", "input alpha inplace", _in_place("elu"), alpha=1.0, inplace=False)
chooses("celu", "input alpha inplace", _in_place("celu"), alpha=1.0, inplace=False)
chooses("hardtanh", "input min_val max_val inplace", _in_place("hardtanh"), min_val=-1.0,
        max_val=1.0, inplace=False)  # fmt: skip
chooses("threshold", "input threshold value inplace", _in_place("threshold"), inplace=False)
chooses("rrelu", "input lower upper training inplace", _in_place("rrelu"), lower=1 / 8,
        upper=1 / 3, training=False, inplace=False)  # fmt: skip
chooses("glu", "input dim", lambda x, dim: ("glu", x, dim), dim=-1)
chooses("tanh", "input", lambda x: ("tanh", x))
chooses("sigmoid", "input", lambda x: ("sigmoid", x))
for _name in ("dropout", "alpha_dropout", "feature_alpha_dropout"):
    chooses(_name, "input p training inplace",
            lambda x, p, training, inplace, name=_name: (f"{name}_" if inplace else name, x, p,
                                                         training),
            p=0.5, training=_name == "dropout", inplace=False)  # fmt: skip
for _name in ("dropout1d", "dropout2d", "dropout3d"):
    chooses(_name, "input p training inplace",
            lambda x, p, training, inplace: ("feature_dropout_" if inplace else "feature_dropout",
                                             x, p, training),
            p=0.5, training=True, inplace=False)  # fmt: skip
for _name in ("softmax", "log_softmax"):
    chooses(_name, "input dim _stacklevel dtype",
            lambda x, dim, _, dtype, name=_name: (name, x, dim, dtype))  # fmt: skip
chooses("layer_norm", "input normalized_shape weight bias eps",
        lambda x, shape, w, b, eps: ("layer_norm", x, shape, w, b, eps, True),
        eps=1e-5)  # fmt: skip
chooses("group_norm", "input num_groups weight bias eps",
        lambda x, groups, w, b, eps: ("group_norm", x, groups, w, b, eps, True),
        eps=1e-5)  # fmt: skip
chooses("batch_norm", "input running_mean running_var weight bias training momentum eps",
        lambda x, m, v, w, b, training, momentum, eps: (
            "batch_norm", x, w, b, m, v, training, momentum, eps, True),
        training=False, momentum=0.1, eps=1e-5)  # fmt: skip
chooses("instance_norm", "input running_mean running_var weight bias use_input_stats momentum eps",
        lambda x, m, v, w, b, use, momentum, eps: (
            "instance_norm", x, w, b, m, v, use, momentum, eps, True),
        use_input_stats=True, momentum=0.1, eps=1e-5)  # fmt: skip
chooses("embedding", "input weight padding_idx max_norm norm_type scale_grad_by_freq sparse",
        lambda x, w, pad, _m, _n, scale, sparse: (
            "embedding", w, x, -1 if pad is None else pad % w.size(0), scale, sparse),
        scale_grad_by_freq=False, sparse=False)  # fmt: skip

REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}
chooses("cross_entropy",
        "input target weight size_average ignore_index reduce reduction label_smoothing",
        lambda x, t, w, _s, ignore, _r, reduction, smoothing: (
            "cross_entropy_loss", x, t, w, REDUCTIONS[reduction], ignore, float(smoothing)),
        ignore_index=-100, reduction="mean", label_smoothing=0.0)  # fmt: skip
chooses("nll_loss", "input target weight size_average ignore_index reduce reduction",
        lambda x, t, w, _s, ignore, _r, reduction: (
            "nll_loss_nd", x, t, w, REDUCTIONS[reduction], ignore),
        ignore_index=-100, reduction="mean")  # fmt: skip
chooses("kl_div", "input target size_average reduce reduction log_target",
        lambda x, t, _s, _r, reduction, log: (
            "kl_div", x, t, REDUCTIONS.get(reduction, 0), log),
        reduction="mean", log_target=False)  # fmt: skip
chooses("binary_cross_entropy", "input target weight size_average reduce reduction",
        lambda x, t, w, _s, _r, reduction: (
            "binary_cross_entropy", x, t, w, REDUCTIONS[reduction]), reduction="mean")  # fmt: skip
chooses("binary_cross_entropy_with_logits",
        "input target weight size_average reduce reduction pos_weight",
        lambda x, t, w, _s, _r, reduction, pos: (
            "binary_cross_entropy_with_logits", x, t, w, pos, REDUCTIONS[reduction]),
        reduction="mean")  # fmt: skip


def _adaptive(kind: str, count: int) -> Callable[..., tuple[Any, ...]]:
    def how(x: Any, size: Any, *_: Any) -> tuple[Any, ...]:
        sizes = [
            x.shape[n - count] if s is None else s for n, s in enumerate(tuple_of(size, count))
        ]
        return (f"adaptive_{kind}_pool{count}d", x, sizes)

    return how


for _count in (1, 2, 3):
    chooses(f"adaptive_avg_pool{_count}d", "input output_size", _adaptive("avg", _count))


def _convolution(count: int, transposed: bool) -> None:
    names = "input weight bias stride padding dilation groups"
    defaults: dict[str, Any] = {"stride": 1, "padding": 0, "dilation": 1, "groups": 1}
    if transposed:
        names = "input weight bias stride padding output_padding groups dilation"
        defaults["output_padding"] = 0

    def how(*values: Any) -> tuple[Any, ...]:
        options = dict(zip(names.split(), values, strict=True))
        if isinstance(options["padding"], str):
            return ("_convolution_mode", *values[:3], tuple_of(options["stride"], count),
                    options["padding"], tuple_of(options["dilation"], count),
                    options["groups"])  # fmt: skip
        parts = [tuple_of(options[n], count) for n in ("stride", "padding", "dilation")]
        out = tuple_of(options.get("output_padding", 0), count)
        return ("_convolution", *values[:3], *parts, transposed, out, options["groups"],
                False, False, True, True)  # fmt: skip

    public = f"conv_transpose{count}d" if transposed else f"conv{count}d"
    chooses(public, names, how, names_values=False, **defaults)
    batched = RECIPES[f"nn.functional.{public}"]

    def run(trace: Any, itself: Any, args: Any, kwargs: Any) -> Any:
        values = dict(zip(names.split(), args, strict=False)) | kwargs
        if values["input"].dim() != count + 1:
            return batched(trace, itself, args, kwargs)
        values["input"] = values["input"].unsqueeze(0)
        return batched(trace, itself, (), values).squeeze(0)

    RECIPES[public] = RECIPES[f"nn.functional.{public}"] = run


for _count in (1, 2, 3):
    _convolution(_count, False)
    _convolution(_count, True)


@recipe("nn.functional.interpolate")
def _interpolate(trace: Any, itself: Any, args: Any, kwargs: Any) -> Any:
    """The form with factors where factors are given: `upsample_nearest2d(x, None, [2., 2.])`."""
    x, size, factor, mode, corners, recompute, antialias = bound(
        "input size scale_factor mode align_corners recompute_scale_factor antialias", args, kwargs,
        mode="nearest", antialias=False,
    )  # fmt: skip
    trace.name({"input": x})
    spatial = x.dim() - 2
    if mode == "area" or recompute:
        return trace.openly("interpolate", itself, args, kwargs)
    kind = {"linear": "linear1d", "bilinear": "bilinear2d", "trilinear": "trilinear3d",
            "bicubic": "bicubic2d"}.get(mode)  # fmt: skip
    aten = f"upsample_{kind}" if kind else f"upsample_nearest{spatial}d"
    if mode == "nearest-exact":
        aten = f"_upsample_nearest_exact{spatial}d"
    if antialias:
        aten = f"_{aten}_aa"
    sizes = None if size is None else tuple_of(size, spatial)
    factors = None if factor is None else [float(f) for f in tuple_of(factor, spatial)]
    given = (x, sizes, *([bool(corners)] if kind else []), factors)
    return trace.operator(aten, itself, args, kwargs, given=given, named={}, overload="vec")
