"""Slopes of operators to the third order: values, None-ness, and what they depend on.

Each function is a scenario; `t` is the library.
"""

from __future__ import annotations

import itertools
from functools import partial


def _climb(t, function, *inputs):
    """Vector-Jacobian products of orders 1 to 3 by the inputs and all earlier cotangents."""
    inputs = [x.detach().clone().requires_grad_() for x in inputs]
    outputs, found = [function(*inputs)], []
    for order in range(1, 4):
        outputs = [y for y in outputs if y is not None and y.requires_grad]
        if not outputs:
            break
        along = [_cotangent(t, y, order) for y in outputs]
        outputs = t.autograd.grad(outputs, inputs, along, create_graph=True, allow_unused=True)
        inputs = inputs + along
        found.append([None if g is None else (_rounded(g), g.requires_grad) for g in outputs])
    return found


def _rounded(tensor):
    """Without what roundings leave of 0, and without its sign."""
    return (tensor.detach() * 2.0**40).round() / 2.0**40 + 0.0


def _climbs(t, functions, x):
    return {name: _climb(t, partial(f, t.nn.functional), x) for name, f in functions.items()}


def _of_clone(function):
    return lambda f, x: function(f, x.clone())


def _cotangent(t, like, order):
    numbers = t.arange(like.numel(), dtype=t.float64) * 0.37 + order
    return t.cos(numbers).view(like.shape).to(like.dtype).requires_grad_()


def _numbers(t, *shape):
    count = 1
    for size in shape:
        count *= size
    return (t.sin(t.arange(count, dtype=t.float64) * 1.7 + 0.3) * 2).view(shape)


STEPS = {
    "leaky_relu": lambda f, x: f.leaky_relu(x, 0.2), "relu6": lambda f, x: f.relu6(x),
    "hardtanh": lambda f, x: f.hardtanh(x), "relu": lambda f, x: f.relu(x),
    "threshold": lambda f, x: f.threshold(x, 0.5, 0.1),
    "softshrink": lambda f, x: f.softshrink(x), "hardshrink": lambda f, x: f.hardshrink(x),
    "rrelu": lambda f, x: f.rrelu(x, training=False),
    "rrelu, training": lambda f, x: f.rrelu(x, 0.25, 0.25, training=True),
}  # fmt: skip


def steps(t):
    x = _numbers(t, 6)
    return _climbs(t, STEPS, x)


IN_PLACE = {
    "leaky_relu_": lambda f, x: f.leaky_relu_(x, 0.2), "relu_": lambda f, x: f.relu_(x),
    "hardtanh_": lambda f, x: f.hardtanh_(x), "threshold_": lambda f, x: f.threshold_(x, 0.5, 0.1),
    "rrelu_": lambda f, x: f.rrelu_(x, training=False), "elu_": lambda f, x: f.elu_(x),
    "rrelu_, training": lambda f, x: f.rrelu_(x, 0.25, 0.25, training=True),
}  # fmt: skip


def steps_in_place(t):
    x = _numbers(t, 6)
    return _climbs(t, {name: _of_clone(f) for name, f in IN_PLACE.items()}, x)


def leaky_slopes_in_place_need_the_result(t):
    x = t.tensor([-1.0, 2.0], requires_grad=True)
    y = t.nn.functional.leaky_relu_(x * 1, 0.1)
    y.mul_(2)
    return y.sum().backward()


def leaky_slopes_in_place_that_turn_round(t):
    x = t.tensor([-1.0, 2.0], requires_grad=True)
    y = t.nn.functional.leaky_relu_(x * 1, -0.1)
    try:
        y.sum().backward()
    except RuntimeError as error:
        return str(error).split(",")[0]
    return y


LINEAR = {
    "avg_pool1d": lambda f, x: f.avg_pool1d(x[0], 2),
    "avg_pool2d": lambda f, x: f.avg_pool2d(x, 2),
    "avg_pool3d": lambda f, x: f.avg_pool3d(x, (1, 2, 2)),
    "adaptive_avg_pool1d": lambda f, x: f.adaptive_avg_pool1d(x[0], 2),
    "adaptive_avg_pool2d": lambda f, x: f.adaptive_avg_pool2d(x, 2),
    "adaptive_avg_pool3d": lambda f, x: f.adaptive_avg_pool3d(x, (1, 2, 3)),
    "to one": lambda f, x: f.adaptive_avg_pool2d(x, 1),
    "area": lambda f, x: f.interpolate(x, size=2, mode="area"),
    "reflect": lambda f, x: f.pad(x, (1, 2, 1, 0), "reflect"),
    "replicate": lambda f, x: f.pad(x, (1, 2, 0, 1), "replicate"),
    "constant": lambda f, x: f.pad(x, (1, 2)),
    "circular": lambda f, x: f.pad(x, (1, 2, 0, 1), "circular"),
    "max_pool2d": lambda f, x: f.max_pool2d(x, 2),
    "adaptive_max_pool2d": lambda f, x: f.adaptive_max_pool2d(x, 2),
}  # fmt: skip


def linear_operators(t):
    x = _numbers(t, 1, 2, 4, 4)
    return _climbs(t, LINEAR, x)


def linear_operators_keep_their_input(t):
    x = t.ones(1, 1, 2, 2, requires_grad=True) * 1
    y = t.nn.functional.avg_pool2d(x, 2)
    x.mul_(2)
    return y.sum().backward()


def samples_of_grids(t):
    image, grid = _numbers(t, 2, 2, 3, 4), _numbers(t, 2, 2, 3, 2) * 0.6
    found = {}
    choices = (
        ("bilinear", "nearest", "bicubic"),
        ("zeros", "border", "reflection"),
        (True, False),
    )
    for mode, padding, corners in itertools.product(*choices):
        found[f"{mode} {padding} {corners}"] = _climb(
            t,
            lambda x, g: t.nn.functional.grid_sample(x, g, mode, padding, corners),  # noqa: B023
            image,
            grid,
        )
    return found


def samples_of_grids_in_space(t):
    image, grid = _numbers(t, 1, 2, 3, 2, 3), _numbers(t, 1, 1, 2, 2, 3) * 0.6
    return [
        _climb(
            t,
            lambda x, g: t.nn.functional.grid_sample(x, g, mode, align_corners=False),  # noqa: B023
            image,
            grid,
        )
        for mode in ("bilinear", "nearest")
    ]


def counts_have_no_slope(t):
    x = _numbers(t, 3)
    return (
        _climb(t, lambda x: t.linalg.vector_norm(x, 0), x),
        _climb(t, lambda x: t.nn.functional.normalize(x, p=0.0, dim=0), x),
    )


def products_of_one(t):
    return (
        _climb(t, lambda x: x.cumprod(0), _numbers(t, 1, 3)),
        _climb(t, t.linalg.det, _numbers(t, 1, 1)),
        _climb(t, t.linalg.det, _numbers(t, 2, 1, 1)),
    )


def reflections_without_vectors(t):
    return _climb(t, t.linalg.householder_product, _numbers(t, 3, 3), _numbers(t, 0))


def empty_batches(t):
    def function(x, w, b):
        return t.nn.functional.group_norm(x, 1, w, b)

    return _climb(t, function, _numbers(t, 0, 2), _numbers(t, 2), _numbers(t, 2))[0]


def running_sums_in_logarithms(t):
    return _climb(t, lambda x: t.logcumsumexp(x, 0), _numbers(t, 4))[:2]


def losses_at_their_edges(t):
    x = t.tensor([-2.0, -0.5, -0.25, 0.0, 0.5, 2.0, float("nan")], dtype=t.float64)
    f = t.nn.functional
    zeros = t.zeros(7, dtype=t.float64)
    return [
        _climb(t, lambda x, y: f.smooth_l1_loss(x, y, beta=0.5), x, zeros),
        _climb(t, lambda x, y: f.huber_loss(x, y, delta=0.5), x, zeros),
        _climb(t, lambda x, y: f.l1_loss(x, y, reduction="sum"), x, zeros),
    ]


def slopes_far_out_and_at_kinks(t):
    far = [-float("inf"), -1e3, -3.0, -0.5, 0.0, 0.5, 3.0, 1e3, float("inf"), float("nan")]
    x = t.tensor(far, dtype=t.float64)
    names = "elu selu celu hardswish hardtanh relu6 softplus silu gelu softsign".split()
    return {name: _climb(t, getattr(t.nn.functional, name), x) for name in names}


PAIRS = {
    "pow": lambda t, x, y: t.pow(x, y), "copysign": lambda t, x, y: t.copysign(x, y),
    "hypot": lambda t, x, y: t.hypot(x, y), "atan2": lambda t, x, y: t.atan2(x, y),
    "xlogy": lambda t, x, y: t.xlogy(x, y), "maximum": lambda t, x, y: t.maximum(x, y),
    "fmod": lambda t, x, y: t.fmod(x, y), "remainder": lambda t, x, y: t.remainder(x, y),
    "logaddexp": lambda t, x, y: t.logaddexp(x, y), "lerp": lambda t, x, y: t.lerp(x, y, y),
}  # fmt: skip


def pairs_at_their_edges(t):
    points = [-2.0, -1.0, 0.0, 0.5, 1.0, 2.0]
    x = t.tensor([a for a in points for _ in points], dtype=t.float64)
    y = t.tensor(points * len(points), dtype=t.float64)
    return {name: _climb(t, partial(f, t), x, y) for name, f in PAIRS.items()}


def powers_of_zero(t):
    return _climb(t, lambda x: 0.0**x, t.tensor([-1.0, 0.5, 1.0, 2.0], dtype=t.float64))[:1]


def right_answers_without_doubt(t):
    x = t.tensor([0.0, 1.0, 0.5], dtype=t.float64)
    y = t.tensor([0.0, 1.0, 1.0], dtype=t.float64)
    return _climb(t, lambda x: t.nn.functional.binary_cross_entropy(x, y), x)[:2]


def extremes_of_what_is_not_a_number(t):
    functions = (
        t.amax, lambda x: t.amin(x, 0), lambda x: t.aminmax(x)[1], t.max, t.min, t.median,
        lambda x: x.max(0)[0], lambda x: x.norm(float("inf")), lambda x: x.norm(float("-inf")),
        t.nanmedian,
    )  # fmt: skip
    found = []
    for function in functions:
        for values in ([float("nan"), 1.0, 2.0], [1.0, 3.0, 3.0], [float("inf"), 2.0, 0.0]):
            x = t.tensor(values, requires_grad=True)
            function(x).backward()
            found.append(x.grad)
    return found


def variance_of_too_few(t):
    found = []
    for values in ([2.0], [1.0, 3.0], [2.0, 2.0], [1.0, 3.0, 2.0]):
        for correction in range(4):
            x = t.tensor(values, requires_grad=True)
            (slope,) = t.autograd.grad(t.var(x, correction=correction), x, create_graph=True)
            found.append((slope, slope.requires_grad))
    return found


def strict_derivatives(t):
    """Strictly, each result depends on each input, and can be differentiated if that was asked."""
    other = t.ones(2, requires_grad=True)
    functions = {
        "detached": lambda a: a.detach(),
        "apart": lambda a: a.long().float().requires_grad_().clone(),
        "linear": lambda a: a.clone(),
        "square": lambda a: a * a,
        "one detached": lambda a: (a * 2, a.detach()),
        "one apart": lambda a: (a * a, a.long().float().requires_grad_().clone()),
        "of another": lambda a: a * other,
    }
    return [
        _strictly(t, name, function, t.tensor([1.0, 2.0], requires_grad=learns), graph)
        for learns in (False, True)
        for graph in (False, True)
        for name, function in functions.items()
    ]


def _strictly(t, name, function, x, graph):
    functional, v = t.autograd.functional, t.ones(2)
    words = {"strict": True, "create_graph": graph}
    pair = (v, v) if name.startswith("one") else v

    def total(a):
        result = function(a)
        return (result[-1] if isinstance(result, tuple) else result).sum()

    found = []
    for call in (
        lambda: functional.vjp(function, x, pair, **words)[1],
        lambda: functional.jvp(function, x, v, **words)[1],
        lambda: functional.jacobian(function, x, **words),
        lambda: functional.hessian(total, x, **words),
        lambda: functional.vhp(total, x, v, **words)[1],
        lambda: functional.hvp(total, x, v, **words)[1],
    ):
        try:
            found.append(call())
        except RuntimeError as error:
            found.append(str(error))
    return found


def vectors_of_derivatives(t):
    """How many vectors a product takes, and of which sizes."""
    functional, x, v = t.autograd.functional, t.tensor([1.0, 2.0]), t.ones(2)
    found = []
    for vectors in ((v, v), (v,), v[:1], (v[:1], v)):
        for call in (
            lambda v: functional.vjp(lambda a: a * a, x, v)[1],
            lambda v: functional.vjp(lambda a, b: (a, b), (x, x), v)[1],
            lambda v: functional.jvp(lambda a: a * a, x, v)[1],
            lambda v: functional.jvp(lambda a, b: a * b, (x, x), v)[1],
            lambda v: functional.vhp(lambda a: (a**3).sum(), x, v)[1],
            lambda v: functional.hvp(lambda a: (a**3).sum(), x, v)[1],
        ):
            try:
                found.append(call(vectors))
            except RuntimeError as error:
                found.append(str(error))
    return found


def slopes_of_logit_that_keeps_nothing_inside(t):
    x = t.tensor([-3.0, -0.5, 0.0, 0.25, 1.0, 1.5], dtype=t.float64, requires_grad=True)
    found = []
    for eps in (None, -1.5, -0.1, 0.0, 0.25):
        y = t.logit(x, eps)
        found.append((y.detach(), t.autograd.grad(y.sum(), x)))
    return found


def slopes_of_the_copy_of_a_singular_triangle(t):
    a = t.tensor([[1.0, 2.0], [0.0, 0.0]], requires_grad=True)
    b = t.ones(2, 2, requires_grad=True)
    _, copy = t.triangular_solve(b, a)
    return t.autograd.grad(copy.sum(), (b, a), allow_unused=True)


def operands_that_a_gradient_does_not_hang_on(t):
    """Of the gradient of `linear` for the input, which the input itself has no part in."""
    found = []
    for sizes in ((3,), (2, 3), (2, 2, 3)):
        x, w = t.ones(sizes, requires_grad=True), t.ones(2, 3, requires_grad=True)
        y = t.nn.functional.linear(x, w)
        of_x, of_w = t.autograd.grad(y.mean(), (x, w), create_graph=True)
        for part in (of_x, of_w):
            found.append(t.autograd.grad(part.sum(), (x, w), allow_unused=True, retain_graph=True))
    return found
