"""Backward passes within backward passes: how deep, with what callbacks, in which modes.

Each function is a scenario; `t` is the library.
"""

from __future__ import annotations

from typing import Any


def _deep(t: Any, seen: list[Any]) -> Any:
    class Deep(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            with t.enable_grad():
                ctx.x = x.detach().requires_grad_() - 1
            return ctx.x.detach()

        @staticmethod
        def backward(ctx, g):
            seen.append(t.is_grad_enabled())
            if ctx.x < 0:
                return g
            with t.enable_grad():
                Deep.apply(ctx.x).sum().backward()
            return g

    return Deep


def very_deep(t):
    seen = []
    x = t.tensor(700.0, requires_grad=True)
    _deep(t, seen).apply(x).sum().backward()
    return len(seen), any(seen), x.grad


def errors_from_the_depth(t):
    class Deep(t.autograd.Function):
        @staticmethod
        def forward(ctx, x, level):
            ctx.level = level
            return x * 1

        @staticmethod
        def backward(ctx, g):
            if ctx.level == 0:
                raise ValueError("from below")
            with t.enable_grad():
                x = g.detach().requires_grad_()
                Deep.apply(x, ctx.level - 1).backward()
            return g, None

    x = t.ones(1, requires_grad=True)
    Deep.apply(x, 100).backward()


def _calling_back(t: Any, work: Any) -> Any:
    return type("CallingBack", (t.autograd.Function,), {
        "forward": staticmethod(lambda ctx, x: x * 1),
        "backward": staticmethod(lambda ctx, g: (work(), g)[1]),
    })  # fmt: skip


def callbacks(t):
    engine, log = t.autograd.Variable._execution_engine, []

    def first():
        log.append(("first", x.grad is not None))
        engine.queue_callback(lambda: log.append("added by the first"))

    x = t.ones(1, requires_grad=True)
    y = _calling_back(t, lambda: engine.queue_callback(first)).apply(x)
    x.register_hook(lambda g: log.append("hook"))
    y.backward()
    y = x * 1
    y.backward()
    return log


def callbacks_of_each_depth(t):
    engine, log = t.autograd.Variable._execution_engine, []
    inner = _calling_back(t, lambda: engine.queue_callback(lambda: log.append("inner")))

    def work():
        engine.queue_callback(lambda: log.append("outer"))
        with t.enable_grad():
            inner.apply(t.ones(1, requires_grad=True)).backward()
        log.append("inner is done")

    x = t.ones(1, requires_grad=True)
    _calling_back(t, work).apply(x).backward()
    return log


def callbacks_without_backward(t):
    t.autograd.Variable._execution_engine.queue_callback(lambda: None)


def order_of_nodes_is_the_user_s(t):
    found = []
    for numbers in ((100, 99), (99, 100)):
        x, order = t.ones(1, requires_grad=True), []
        a, b = x + 1, x + 2
        c = a + b
        for name, tensor, number in (("a", a, numbers[0]), ("b", b, numbers[1])):
            tensor.grad_fn._set_sequence_nr(number)
            tensor.register_hook(lambda g, name=name, order=order: order.append(name))
        c.grad_fn._set_sequence_nr(98)
        c.backward()
        found.append((order, a.grad_fn._sequence_nr(), x.grad))
    return found


def module_hooks_and_second_order(t):
    seen = []
    loss = t.nn.MSELoss()
    loss.register_full_backward_hook(lambda module, before, after: seen.append(len(before)))
    x, y = t.ones(2, requires_grad=True), t.zeros(2)
    (first,) = t.autograd.grad(loss(x, y), x, create_graph=True)
    (second,) = t.autograd.grad(first.sum(), x)
    return seen, first, second


def sparse_gradients_of_functions(t):
    def sparse():
        return t.sparse_coo_tensor(t.tensor([[1, 1]]), t.ones(2), (2,), check_invariants=False)

    class Given(t.autograd.Function):
        @staticmethod
        def forward(ctx, x, given):
            ctx.save_for_backward(given)
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return ctx.saved_tensors[0], None

    found = []
    for parts in ((sparse(), t.ones(2)), (t.ones(2), sparse()), (sparse(), sparse())):
        x = t.ones(2, requires_grad=True)
        sum(Given.apply(x, part) for part in parts).sum().backward()
        found.append((x.grad.is_sparse, x.grad.to_dense() if x.grad.is_sparse else x.grad))
    return found


def sparse_gradients_to_start_with(t):
    def sparse():
        return t.sparse_coo_tensor(t.tensor([[1, 1]]), t.ones(2), (2,), check_invariants=False)

    found = []
    for record in (False, True):
        for before in (sparse, lambda: t.ones(2)):
            for start in (sparse, lambda: t.ones(2)):
                x = t.ones(2, requires_grad=True)
                x.grad = held = before()
                x.backward(start(), create_graph=record)
                dense = x.grad.to_dense() if x.grad.is_sparse else x.grad
                found.append((x.grad is held, x.grad.is_sparse, dense))
    return found
