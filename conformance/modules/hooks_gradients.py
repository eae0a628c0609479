"""Full backward hooks: which gradients they see, and which reach the inputs.

Each function is a scenario; `t` is the library, `see` makes hooks that note what they are given.
"""

from __future__ import annotations

from collections import namedtuple

from .hooks_modules import hooked, leaf, module, tensors

Pair = namedtuple("Pair", "first second")  # noqa: PYI024


def an_input_without_gradient(t, see):
    x, y = leaf(t), leaf(t)
    hooked(t, see, lambda x, y: y * 2)(x, y).sum().backward()
    return x.grad, y.grad


def inputs_that_want_none(t, see):
    x = leaf(t)
    made = hooked(t, see, lambda x, *rest: x * 2)
    made(x, t.ones(2), 3, None, t.arange(2), "text", [t.ones(1)]).sum().backward()
    return x.grad


def inputs_that_want_none_first(t, see):
    x = leaf(t)
    hooked(t, see, lambda a, b, x: x * a)(t.ones(3), t.arange(2), x).sum().backward()
    return x.grad


def no_input_wants_any(t, see):
    w = leaf(t)
    hooked(t, see, lambda *args: w * 2)(t.ones(2), 3).sum().backward()
    return w.grad


def no_inputs_at_all(t, see):
    w = leaf(t)
    hooked(t, see, lambda: w * 2)().sum().backward()
    return w.grad


def keyword_inputs_are_not_watched(t, see):
    x, y = leaf(t), leaf(t)
    hooked(t, see, lambda x, *, y: x * y)(x, y=y).sum().backward()
    return x.grad, y.grad


def only_pre_hooks(t, see):
    x = leaf(t)
    made = module(t, lambda x: x * 2)
    made.register_full_backward_pre_hook(see("pre"))
    made(x).sum().backward()
    return x.grad


def an_output_without_gradient(t, see):
    x = leaf(t)
    hooked(t, see, lambda x: (x * 2, x.exp()))(x)[0].sum().backward()
    return x.grad


def outputs_that_want_none(t, see):
    x = leaf(t)
    out = hooked(t, see, lambda x: (x * 2, x.detach(), t.arange(2), None, 3))(x)
    out[0].sum().backward()
    return x.grad, [getattr(part, "requires_grad", part) for part in out]


def the_same_output_twice(t, see):
    x = leaf(t)

    def forward(x):
        y = x * 2
        return y, y

    first, second = hooked(t, see, forward)(x)
    (first + second * 3).sum().backward()
    return x.grad, first is second


def an_input_returned(t, see):
    x = leaf(t)
    y = hooked(t, see, lambda x: x)(x)
    y.sum().backward()
    return x.grad, y is x, y.grad_fn.name(), y._is_view()


def the_same_input_twice(t, see):
    x = leaf(t)
    hooked(t, see, lambda x, y: x * 2 + y)(x, x).sum().backward()
    return x.grad


def a_nested_module_whose_output_is_unused(t, see):
    x = leaf(t)
    inner = hooked(t, see, lambda x: x.exp())
    outer = hooked(t, see, lambda x: (inner(x), x * 2))
    outer(x)[1].sum().backward()
    return x.grad


def a_nested_module_whose_output_is_dropped(t, see):
    x = leaf(t)
    inner = hooked(t, see, lambda x: x.exp())

    def forward(x):
        inner(x)
        return x * 2

    hooked(t, see, forward)(x).sum().backward()
    return x.grad


def a_namedtuple_comes_back(t, see):
    x = leaf(t)
    out = hooked(t, see, lambda x: Pair(x * 2, x * 3))(x)
    (out.first + out.second).sum().backward()
    return x.grad, type(out).__name__


def other_outputs_are_not_watched(t, see):
    seen = []
    for forward in (
        lambda x: {"a": x * 2},
        lambda x: [x * 2, x * 3],
        lambda x: None,
        lambda x: (x * 2, (x * 3,)),
        lambda x: ([x * 2],),
    ):
        x = leaf(t)
        out = hooked(t, see, forward)(x)
        for part in tensors(out):
            part.sum().backward()
        seen.append(x.grad)
    return seen
