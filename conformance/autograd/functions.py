"""Custom functions: `autograd.Function` in all its forms.

Each function is a scenario; `t` is the library.
"""

from __future__ import annotations

import warnings
from typing import Any


def _returning(t: Any, backward: Any) -> Any:
    return type("Made", (t.autograd.Function,), {
        "forward": staticmethod(lambda ctx, x: x * 1),
        "backward": staticmethod(lambda ctx, g: backward(g)),
    })  # fmt: skip


def _forward(t: Any, forward: Any) -> Any:
    return type("Made", (t.autograd.Function,), {
        "forward": staticmethod(lambda ctx, x: forward(x)),
        "backward": staticmethod(lambda ctx, *g: g[0]),
    })  # fmt: skip


def function_basic(t):
    class Square(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * x * g

    x = t.tensor([1.0, 3.0], requires_grad=True)
    y = Square.apply(x)
    (first,) = t.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = t.autograd.grad(first.sum(), x)
    return y, y.grad_fn, first, second, y.is_leaf


def function_setup_context(t):
    class Scale(t.autograd.Function):
        @staticmethod
        def forward(x, factor):
            return x * factor

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.factor = inputs[1]

        @staticmethod
        def backward(ctx, g):
            return g * ctx.factor, None

    x = t.ones(2, requires_grad=True)
    Scale.apply(x, 3).sum().backward()
    return x.grad


def function_many_outputs(t):
    class Two(t.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x + y, x * y, "extra"

        @staticmethod
        def backward(ctx, a, b, c):
            return (
                a + b,
                b,
            )

    x, y = t.ones(2, requires_grad=True), t.ones(2)
    a, b, extra = Two.apply(x, y)
    a.sum().backward()
    return x.grad, extra, a.output_nr, b.output_nr, b.grad_fn


def function_no_materialize(t):
    seen = []

    class Two(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 1, x * 2

        @staticmethod
        def backward(ctx, a, b):
            seen.append((a is None, b is None))
            return a

    x = t.ones(2, requires_grad=True)
    Two.apply(x)[0].sum().backward()
    return seen, x.grad


def function_non_differentiable(t):
    class Sort(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            values, indices = x.sort()
            flags = values * 1
            ctx.mark_non_differentiable(flags)
            return values, indices, flags

        @staticmethod
        def backward(ctx, g, h, k):
            return g + h.sum() + k.sum()

    x = t.tensor([2.0, 1.0], requires_grad=True)
    values, indices, flags = Sort.apply(x)
    values.sum().backward()
    return values.requires_grad, indices.requires_grad, flags.requires_grad, x.grad


def function_mark_dirty(t):
    class Double(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = t.ones(2, requires_grad=True)
    y = x * 1
    z = Double.apply(y)
    z.sum().backward()
    return z is y, y._version, y.grad_fn, x.grad


def function_mark_dirty_leaf(t):
    class Double(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 2

    Double.apply(t.ones(2, requires_grad=True))


def function_returns_input(t):
    class Same(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 5

    x = t.ones(2, requires_grad=True)
    y = Same.apply(x)
    y.sum().backward()
    return y is x, y.grad_fn, x.grad


def function_saves_output(t):
    class Exp(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    x = t.tensor([0.5], requires_grad=True)
    y = Exp.apply(x)
    (g,) = t.autograd.grad(y, x, create_graph=True)
    (h,) = t.autograd.grad(g, x)
    return y, g, h


def function_output_changed(t):
    class Exp(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    y = Exp.apply(t.ones(2, requires_grad=True))
    y.add_(1)
    y.sum().backward()


def function_backward_twice(t):
    class Square(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    y = Square.apply(t.ones(2, requires_grad=True)).sum()
    y.backward()
    y.backward()


def function_too_many_grads(t):
    y = _returning(t, lambda g: (g, g)).apply(t.ones(2, requires_grad=True))
    y.sum().backward()


def function_too_few_grads(t):
    class Add(t.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x + y

        @staticmethod
        def backward(ctx, g):
            return g

    Add.apply(t.ones(2, requires_grad=True), t.ones(2)).sum().backward()


def function_extra_none(t):
    x = t.ones(2, requires_grad=True)
    _returning(t, lambda g: (g, None)).apply(x).sum().backward()
    return x.grad


def function_wrong_shape(t):
    x = t.ones(2, requires_grad=True)
    _returning(t, lambda g: t.ones(3)).apply(x).sum().backward()


def function_expandable_shape(t):
    x = t.ones(2, requires_grad=True)
    _returning(t, lambda g: t.ones(3, 2)).apply(x).sum().backward()
    return x.grad


def function_wrong_grad_type(t):
    x = t.ones(2, requires_grad=True)
    _returning(t, lambda g: 1).apply(x).sum().backward()


def function_grad_for_number(t):
    class Scale(t.autograd.Function):
        @staticmethod
        def forward(ctx, x, n):
            return x * n

        @staticmethod
        def backward(ctx, g):
            return g, g

    Scale.apply(t.ones(2, requires_grad=True), 2).sum().backward()


def function_none_grad(t):
    x = t.ones(2, requires_grad=True)
    _returning(t, lambda g: None).apply(x).sum().backward()
    return x.grad


def function_other_dtype_grad(t):
    x = t.ones(2, requires_grad=True)
    _returning(t, lambda g: g.double()).apply(x).sum().backward()
    return x.grad


def function_needs_input_grad(t):
    seen = []

    class Add(t.autograd.Function):
        @staticmethod
        def forward(ctx, x, y, n):
            seen.append(ctx.needs_input_grad)
            return x + y

        @staticmethod
        def backward(ctx, g):
            seen.append(ctx.needs_input_grad)
            return g, g, None

    Add.apply(t.ones(2, requires_grad=True), t.ones(2), 3).sum().backward()
    return seen


def function_once_differentiable(t):
    class Square(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @t.autograd.function.once_differentiable
        def backward(ctx, g):
            return 2 * g * ctx.saved_tensors[0]

    x = t.ones(2, requires_grad=True)
    (g,) = t.autograd.grad(Square.apply(x).sum(), x, create_graph=True)
    g.sum().backward()


def function_without_forward(t):
    class Nothing(t.autograd.Function):
        pass

    Nothing.apply(t.ones(1))


def function_without_backward(t):
    class Half(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

    Half.apply(t.ones(1, requires_grad=True)).backward()


def function_vjp(t):
    class Half(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def vjp(ctx, g):
            return g * 7

    x = t.ones(1, requires_grad=True)
    Half.apply(x).backward()
    return x.grad


def function_both_backward_and_vjp(t):
    class Half(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def vjp(ctx, g):
            return g

        @staticmethod
        def backward(ctx, g):
            return g

    Half.apply(t.ones(1, requires_grad=True)).backward()


def function_instance(t):
    class Half(t.autograd.Function):
        pass

    Half()(t.ones(1))


def function_saves_wrong_type(t):
    class Half(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(3)
            return x * 1

    Half.apply(t.ones(1, requires_grad=True))


def function_wrong_output(t):
    _forward(t, lambda x: 3).apply(t.ones(1, requires_grad=True))


def function_inside_no_grad(t):
    x = t.ones(1, requires_grad=True)
    with t.no_grad():
        y = _returning(t, lambda g: g).apply(x)
    return y.requires_grad, y.grad_fn


def function_grad_mode_in_forward(t):
    seen = []
    x = t.ones(1, requires_grad=True)
    _forward(t, lambda v: seen.append((t.is_grad_enabled(), (v * 2).requires_grad)) or v * 1).apply(
        x
    )
    return seen


def function_view_output_write(t):
    y = _forward(t, lambda v: v[:1]).apply(t.ones(2, requires_grad=True) * 1)
    y.add_(1)


def function_many_views_write(t):
    y, z = _forward(t, lambda v: (v[:1], v[1:])).apply(t.ones(2, requires_grad=True) * 1)
    y.add_(1)


def function_name_attribute(t):
    y = _forward(t, lambda v: v * 1).apply(t.ones(2, requires_grad=True))
    return y.grad_fn.name(), type(y.grad_fn).__name__, y.grad_fn.next_functions[0][0].name()


def setup_context_gets_defaults(t):
    class Power(t.autograd.Function):
        @staticmethod
        def forward(x, exponent=3):
            return x**exponent

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, ctx.exponent = inputs
            ctx.save_for_backward(x)

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * ctx.exponent * x ** (ctx.exponent - 1), None

    x = t.tensor([2.0], requires_grad=True)
    Power.apply(x).backward()
    first = x.grad.clone()
    Power.apply(x, 2).backward()
    return first, x.grad


def _marked(t: Any, forward: Any) -> Any:
    return type("Marked", (t.autograd.Function,), {
        "forward": staticmethod(forward),
        "backward": staticmethod(lambda ctx, *g: (g[0], g[0])),
    })  # fmt: skip


def dirty_without_being_an_input(t):
    def forward(ctx, a, b):
        c = 3 * a
        c.add_(b)
        ctx.mark_dirty(c)
        return c

    a, b = t.ones(2, requires_grad=True), t.ones(2, requires_grad=True)
    _marked(t, forward).apply(a.clone(), b).sum().backward()
    return a.grad, b.grad


def dirty_without_being_an_output(t):
    def forward(ctx, a, b):
        a.add_(b)
        ctx.mark_dirty(a)
        return a + b

    a = t.ones(2, requires_grad=True)
    _marked(t, forward).apply(a.clone(), t.ones(2))


def dirty_view_among_several_outputs(t):
    def forward(ctx, a, b):
        a.add_(b)
        ctx.mark_dirty(a)
        return a, a + b

    a, b = t.ones(2, requires_grad=True), t.ones(2, requires_grad=True)
    _marked(t, forward).apply(a.clone().view(2), b)


def once_differentiable_leaves_an_error_in_the_graph(t):
    class Scale(t.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor):
            ctx.save_for_backward(x)
            return x * x * factor

        @staticmethod
        @t.autograd.function.once_differentiable
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * 2 * x, None

    x, g = t.ones(2, requires_grad=True), t.ones(2, requires_grad=True)
    (slope,) = t.autograd.grad(Scale.apply(x, 2), x, g, create_graph=True)
    behind = [type(node).__name__ for node, _ in slope.grad_fn.next_functions]
    try:
        slope.sum().backward()
    except RuntimeError as error:
        return slope, type(slope.grad_fn).__name__, behind, str(error)
    return None


def outputs_without_gradient_are_not_filled(t):
    class Two(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            first, second = x.clone(), x.clone()
            ctx.mark_non_differentiable(second)
            ctx._materialize_non_diff_grads = False
            return first, second

        @staticmethod
        def backward(ctx, first, second):
            seen.append(second is None)
            return first

    seen: list[bool] = []
    x = t.ones(1, requires_grad=True)
    Two.apply(x)[0].backward()
    return seen, x.grad


def anomaly_names_all_who_induced_it(t):
    class Inner(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return g * float("nan")

    class Outer(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return Inner.apply(g)

    def texts(first, second):
        x, g = t.ones(2, requires_grad=True), t.ones(2, requires_grad=True)
        with t.autograd.set_detect_anomaly(first):
            (slope,) = t.autograd.grad(Outer.apply(x), x, g, create_graph=True)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                with t.autograd.set_detect_anomaly(second):
                    slope.sum().backward()
            except RuntimeError as error:
                said = str(error)
        found = [str(warning.message) for warning in caught]
        return said, [(w.partition(".")[0], "Inner.apply" in w, "Outer.apply" in w) for w in found]

    return texts(True, True), texts(False, True)


def base_class(t):
    function = t.autograd.Function
    return function.generate_vmap_rule, hasattr(function, "vmap"), hasattr(function, "jvp")


def function_that_writes_to_a_view_of_its_own(t):
    class Part(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            part = x.clone()[:2]
            part += 2
            return part

        @staticmethod
        def backward(ctx, grad):
            return t.cat([grad * 5, grad[:1]])

    x = t.ones(3, requires_grad=True)
    part = Part.apply(x)
    name = part.grad_fn.name()
    part.sum().backward()
    return name, part, x.grad
