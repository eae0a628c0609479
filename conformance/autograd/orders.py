"""Gradients of gradients: through in-place writes, views, hooks on saved tensors, checkpoints.

Each function is a scenario; `t` is the library.
"""

from __future__ import annotations

import importlib

IN_PLACE = {
    "mul_": lambda y, x: y.mul_(x), "div_": lambda y, x: y.div_(x + 1),
    "pow_": lambda y, x: y.pow_(x), "pow_ by a number": lambda y, x: y.pow_(3),
    "sin_": lambda y, x: y.sin_(), "cos_": lambda y, x: y.cos_(), "tan_": lambda y, x: y.tan_(),
    "log_": lambda y, x: y.log_(), "exp_": lambda y, x: y.exp_(), "sqrt_": lambda y, x: y.sqrt_(),
    "tanh_": lambda y, x: y.tanh_(), "sigmoid_": lambda y, x: y.sigmoid_(),
    "lerp_": lambda y, x: y.lerp_(x * x, 0.3), "cumprod_": lambda y, x: y.cumprod_(0),
    "addcmul_": lambda y, x: y.addcmul_(y.clone(), x), "square_": lambda y, x: y.square_(),
    "addcdiv_": lambda y, x: y.addcdiv_(x, x + 1), "atan2_": lambda y, x: y.atan2_(x + 1),
    "hypot_": lambda y, x: y.hypot_(x * 2), "reciprocal_": lambda y, x: y.reciprocal_(),
    "rsqrt_": lambda y, x: y.rsqrt_(), "digamma_": lambda y, x: y.digamma_(),
    "lgamma_": lambda y, x: y.lgamma_(), "xlogy_": lambda y, x: y.xlogy_(x + 1),
    "erf_": lambda y, x: y.erf_(), "by itself": lambda y, x: y.mul_(y.clone()),
    "a part": lambda y, x: y[1:].mul_(x[1:]), "a view": lambda y, x: y.view(3, 1).t().pow_(3),
    "an item": lambda y, x: y.__setitem__(0, y[0] * x[0] * y[1]),
    "masked": lambda y, x: y.mul_(x).masked_fill_(y > 3, 2.0),
    "mask": lambda y, x: y.__setitem__(y > 1.5, y[y > 1.5] * x[y > 1.5]),
    "twice": lambda y, x: y.mul_(x).mul_(x).sin_(),
}  # fmt: skip


def _orders(t, function):
    """The gradients of a sum of squares by order, to the third."""
    x = t.arange(1.0, 4.0, dtype=t.float64).requires_grad_()
    y = x * 1.25
    function(y, x)
    found, value = [], (y * y).sum()
    for _ in range(3):
        (slope,) = t.autograd.grad(value, x, create_graph=True, allow_unused=True)
        if slope is None:
            break
        rounded = (slope.detach() * 1e6).round() / 1e6 + 0.0
        found.append((rounded, slope.requires_grad))
        if not slope.requires_grad:
            break
        value = slope.sum()
    return found


def in_place_writes(t):
    found = {}
    for name, function in IN_PLACE.items():
        try:
            found[name] = _orders(t, function)
        except RuntimeError as error:
            found[name] = str(error)[:200]
    return found


def _second(t, function):
    x = t.arange(1.0, 3.0, dtype=t.float64).requires_grad_()
    (slope,) = t.autograd.grad(function(x), x, create_graph=True)
    return slope, t.autograd.grad((slope * slope).sum(), x)


def through_hooks_that_change_nothing(t):
    def function(x):
        with t.autograd.graph.saved_tensors_hooks(lambda s: s, lambda s: s):
            return (x**3).sum()

    return _second(t, function)


def through_hooks_that_copy(t):
    def function(x):
        with t.autograd.graph.saved_tensors_hooks(lambda s: s.clone(), lambda s: s.clone()):
            return (x.exp() * x * x.sin()).sum()

    return _second(t, function)


def through_hooks_that_keep_arrays(t):
    def function(x):
        with t.autograd.graph.saved_tensors_hooks(
            lambda s: s.detach().numpy().copy(), lambda s: t.tensor(s)
        ):
            return ((x * 2) * x).sum()

    return _second(t, function)


def through_views_and_hooks(t):
    def function(x):
        with t.autograd.graph.saved_tensors_hooks(lambda s: s, lambda s: s.clone()):
            y = x * 1
            return (y[:1] * y[1:] * y[:1]).sum() + y.t().prod()

    return _second(t, function)


def through_save_on_cpu(t):
    def function(x):
        with t.autograd.graph.save_on_cpu():
            return (x.exp() * x).sum()

    return _second(t, function)


def through_checkpoint(t):
    checkpoint = importlib.import_module(t.__name__ + ".utils.checkpoint").checkpoint
    return _second(t, lambda x: checkpoint(lambda y: (y.exp() * y).sum(), x, use_reentrant=False))


def through_custom_functions_and_hooks(t):
    class Cube(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 3 * x * x * grad

    def function(x):
        with t.autograd.graph.saved_tensors_hooks(lambda s: s.clone(), lambda s: s):
            return Cube.apply(x * 2).sum()

    return _second(t, function)


def hooks_may_write_to_what_they_get(t):
    x = t.ones(2, requires_grad=True)
    with t.autograd.graph.saved_tensors_hooks(lambda s: (s.detach().add_(1), s)[1], lambda s: s):
        y = x / 3
    return y, t.ones(2) / 3, t.ones(2) * 3


STEPS = {
    "relu": lambda f, x: f.relu(x), "leaky_relu": lambda f, x: f.leaky_relu(x),
    "hardtanh": lambda f, x: f.hardtanh(x), "relu6": lambda f, x: f.relu6(x),
    "threshold": lambda f, x: f.threshold(x, 0.5, 0.0),
    "softshrink": lambda f, x: f.softshrink(x), "hardshrink": lambda f, x: f.hardshrink(x),
    "rrelu": lambda f, x: f.rrelu(x, training=False),
    "max_pool1d": lambda f, x: f.max_pool1d(x.view(1, 1, -1), 2),
    "max_pool2d": lambda f, x: f.max_pool2d(x.view(1, 1, 2, -1), 2),
    "max_pool3d": lambda f, x: f.max_pool3d(x.view(1, 1, 1, 2, -1), (1, 2, 2)),
    "adaptive_max_pool2d": lambda f, x: f.adaptive_max_pool2d(x.view(1, 1, 2, -1), 1),
}  # fmt: skip


def slopes_that_are_steps(t):
    found = {}
    for name, function in STEPS.items():
        x = t.tensor([-1.0, 0.25, 2.0, 3.0], requires_grad=True)
        y = function(t.nn.functional, x).sum()
        (slope,) = t.autograd.grad(y, x, create_graph=True)
        found[name] = [slope, slope.requires_grad, t.autograd.grad(slope.sum(), x)]
    return found


def slopes_of_classes_are_steps(t):
    x = t.tensor([[-1.0, 0.25, 2.0]], requires_grad=True)
    y = t.nn.functional.nll_loss(x, t.tensor([1]))
    (slope,) = t.autograd.grad(y, x, create_graph=True)
    return slope, slope.requires_grad, t.autograd.grad(slope.sum(), x)


def slopes_of_weights_are_steps(t):
    x = t.tensor([[-1.0, 0.25, 2.0]], requires_grad=True)
    w = t.tensor([0.25], requires_grad=True)
    y = t.nn.functional.prelu(x, w).sum()
    slopes = t.autograd.grad(y, (x, w), create_graph=True)
    return (
        slopes,
        [slope.requires_grad for slope in slopes],
        t.autograd.grad(slopes[0].sum(), (x, w)),
    )


def squares_know_that_they_end(t):
    found = []
    for function in (lambda x: x**2, lambda x: x.pow(2.0), lambda x: x.square(), lambda x: x * x):
        value = x = t.tensor([1.0, 2.0], requires_grad=True)
        value = function(x).sum()
        for _ in range(4):
            (slope,) = t.autograd.grad(value, x, create_graph=True, allow_unused=True)
            found.append((slope, slope is not None and slope.requires_grad))
            if slope is None or not slope.requires_grad:
                break
            value = slope.sum()
    return found


def divisions_in_place(t):
    found = []
    for mode in (None, "floor", "trunc"):
        x = t.tensor([1.0, 2.5], requires_grad=True)
        y = t.tensor([3.0, 0.5], requires_grad=True)
        z = x.sin() * 7
        z.div_(y, rounding_mode=mode)
        slopes = t.autograd.grad((z * z).sum(), [x, y], create_graph=True, allow_unused=True)
        found.append([None if slope is None else slope.detach() for slope in slopes])
    return found


def parts_of_a_joined_gradient_may_be_written_to(t):
    x, y = t.ones(2, requires_grad=True), t.ones(2, requires_grad=True)
    x.register_hook(lambda g: g.mul_(2))
    joined = t.cat([x * 1, y])
    (joined * joined).sum().backward(create_graph=True)
    return x.grad, y.grad, x.grad.requires_grad


def power_of_negative_numbers_to_complex_ones(t):
    found = []
    exponent = t.tensor([0.3 + 0.2j, -0.1 + 1j, 2j], dtype=t.complex128, requires_grad=True)
    for base in (t.tensor([-1.0, -2.5, 3.0], dtype=t.float64), -1):
        y = t.pow(base, exponent)
        (first,) = t.autograd.grad(y.real.sum(), exponent, create_graph=True)
        (second,) = t.autograd.grad(first.imag.sum(), exponent)
        found.append((y, first, second))
    return found


def second_order_through_results_of_writes_to_views(t):
    found = []
    for write in ("relu_", "sigmoid_", "tanh_", "exp_", "sqrt_"):
        x = t.tensor([[0.5, 1.0], [2.0, 3.0]], requires_grad=True)
        y = (x * 1.5)[:, 1:]
        getattr(y, write)()
        (first,) = t.autograd.grad(y.pow(3).sum(), x, create_graph=True)
        (second,) = t.autograd.grad(first.sum(), x)
        found.append((first, second))
    return found


def second_order_through_a_result_whose_view_is_gone(t):
    x = t.tensor([0.5, 1.0], requires_grad=True)
    y = x * 1.5
    y[1:].exp_()
    (first,) = t.autograd.grad(y.pow(3).sum(), x, create_graph=True)
    (second,) = t.autograd.grad(first.sum(), x)
    return first, second


def derivatives_that_are_not_written_down(t):
    x, m = t.rand(4, requires_grad=True), t.rand(3, 3, requires_grad=True)
    found = []
    for make in (
        lambda: t.igamma(x, x), lambda: t.igammac(x, x), lambda: t.special.zeta(x + 2, x),
        lambda: t.geqrf(m)[0], lambda: t.heaviside(x, x), lambda: t.unique(x),
        lambda: t.unique(x, return_inverse=True)[0], lambda: t.unique(m, dim=0),
        lambda: t.unique_consecutive(x), lambda: t.unique_consecutive(m, dim=0),
        lambda: t.bincount(t.tensor([0, 1, 1, 0]), x), lambda: t.unique(x, return_counts=True)[1],
    ):  # fmt: skip
        y = make()
        name = y.grad_fn and y.grad_fn.name()
        try:
            y.sum().backward()
            found.append(name)
        except RuntimeError as error:
            found.append((name, type(error).__name__, str(error)))
    return found


def products_with_several_zeros_at_a_place(t):
    found = []
    place = t.tensor([0, 0])
    for values in ([0.0, 0.0], [0.0, 2.0]):
        for function in (t.scatter_reduce, t.index_reduce):
            x, source = t.ones(1, requires_grad=True), t.tensor(values, requires_grad=True)
            y = function(x, 0, place, source, "prod")
            first = t.autograd.grad(y.sum(), (x, source), create_graph=True)
            try:
                found.append((first, t.autograd.grad(first[1].sum(), (x, source))))
            except RuntimeError as error:
                found.append((first[1].grad_fn.name(), str(error)))
    return found


def names_behind_threshold(t):
    x = t.ones(2, requires_grad=True)
    y = t.nn.functional.threshold(x, 0.5, 0.0)
    (first,) = t.autograd.grad(y.exp().sum(), x, create_graph=True)
    (second,) = t.autograd.grad(first.sum(), x)
    return first.grad_fn.name(), first, second
