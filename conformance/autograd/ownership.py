"""Whose a gradient is: `.grad` shares memory with nobody, and belongs to what learns by then.

Each function is a scenario; `t` is the library.
"""

from __future__ import annotations


def _learning(t, *values):
    return t.tensor(values or (1.0, 2.0), dtype=t.float64, requires_grad=True)


def the_caller_s_gradient(t):
    x = _learning(t)
    x.backward(x, create_graph=True)
    same = x.grad is x
    x.grad.mul_(3)
    return x, x.grad, same


def one_gradient_for_two_leaves(t):
    a, b = _learning(t), _learning(t)
    (a + b).backward(t.ones(2, dtype=t.float64), create_graph=True)
    a.grad.mul_(3)
    return a.grad, b.grad


def an_expanded_gradient(t):
    a = _learning(t)
    a.sum().backward(t.ones((), dtype=t.float64), create_graph=True)
    strides = a.grad.stride()
    a.sum().backward()
    return strides, a.grad


def with_a_graph_it_is_a_recorded_copy(t):
    a = t.ones(2, 3, dtype=t.float64).t().requires_grad_()
    (a * a).sum().backward(create_graph=True)
    names = [a.grad.grad_fn.name(), a.grad.stride()]
    (a * a).sum().backward(create_graph=True)
    return [*names, a.grad.grad_fn.name(), a.grad.stride(), a.grad]


def retained_gradients_are_copies(t):
    y = _learning(t) * 1
    y.retain_grad()
    given = t.ones(2, dtype=t.float64)
    y.backward(given)
    given.mul_(5)
    return y.grad, y.grad is given


def views_that_retain(t):
    b = _learning(t) * 1
    v, w = b[:1], b[:]
    v.retain_grad()
    w.retain_grad()
    v.mul_(3)
    b.mul_(2)
    (b.sum() + (w * 2).sum() + v.sum()).backward()
    return v.grad, w.grad, v.retains_grad


def frozen_after_the_forward_pass(t):
    p, q, seen = _learning(t), _learning(t), []
    y = (p * p * q).sum()
    p.register_hook(lambda grad: seen.append(grad.tolist()))
    p.requires_grad_(False)
    y.backward()
    return p.grad, q.grad, seen


def frozen_leaves_run_their_other_hooks(t):
    found = []
    for freeze in (lambda p: p.requires_grad_(False), lambda p: p.detach_(), lambda p: p):
        p, seen = _learning(t), []
        y = p * 2
        node = y.grad_fn.next_functions[0][0]
        node.register_prehook(lambda grads: seen.append(("before", grads)))  # noqa: B023
        node.register_hook(lambda *grads: seen.append(("after", grads)))  # noqa: B023
        p.register_post_accumulate_grad_hook(lambda leaf: seen.append(("filled", leaf.grad)))  # noqa: B023
        p.register_hook(lambda grad: seen.append(("sent", grad)))  # noqa: B023
        freeze(p)
        y.sum().backward()
        found.append((seen, p.grad, p.requires_grad))
    return found


def detached_after_the_forward_pass(t):
    p = _learning(t)
    y = (p * p).sum()
    p.detach_()
    y.backward()
    return p.grad


def frozen_and_asked_for(t):
    p = _learning(t)
    y = (p * p).sum()
    p.requires_grad_(False)
    return t.autograd.grad(y, p)


def inputs_named_twice(t):
    p = _learning(t)
    (p * p).sum().backward(inputs=[p, p])
    return p.grad


def inputs_between(t):
    p = _learning(t)
    q = p * 1
    (q * q * q).sum().backward(inputs=[q, p], create_graph=True)
    return q.grad, q.grad.grad_fn.name(), p.grad, p.grad.grad_fn.name(), q.retains_grad


def inputs_that_retain_already(t):
    p = _learning(t)
    q = p * 1
    q.retain_grad()
    (q * q).sum().backward(inputs=[q, p])
    return q.grad, p.grad


def inputs_again(t):
    p = _learning(t)
    for _ in range(2):
        (p * p).sum().backward(inputs=[p])
    return p.grad


def gradients_to_start_with_are_converted(t):
    found = []
    for dtype in (t.float64, t.float16, t.int64, t.bool):
        p, q = t.ones(2, requires_grad=True), t.ones(2, requires_grad=True)
        p.backward(t.ones(2, dtype=dtype))
        (q * 2).backward(t.ones(2, dtype=dtype))
        found += [p.grad, q.grad]
    return found


def complex_gradients_to_start_with(t):
    (t.ones(2, requires_grad=True) * 2).backward(t.ones(2, dtype=t.complex64))


def zeros_for_what_is_not_reached(t):
    x, w = _learning(t), _learning(t)
    found = []
    for create_graph in (False, True):
        y = (x * x).sum()
        slopes = t.autograd.grad(y, (x, w), create_graph=create_graph, materialize_grads=True)
        found.append([(slope, slope.requires_grad) for slope in slopes])
    return found


def functions_that_give_none(t):
    seen = []

    class Double(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            seen.append(("Double", grad.tolist()))
            return grad * 2

    class Nothing(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return None

    def told(name):
        return lambda grad: seen.append((name, None if grad is None else grad.tolist()))

    x = _learning(t)
    x.register_hook(told("x"))
    y = x * 3
    y.register_hook(told("y"))
    z = Double.apply(y)
    z.register_hook(told("z"))
    z.grad_fn.register_hook(lambda ins, outs: seen.append([len(ins), outs[0] is None]))
    Nothing.apply(z).sum().backward()
    none = t.autograd.grad(Nothing.apply(x * 2).sum(), x, allow_unused=True)
    return seen, x.grad, none


def edges_in_the_place_of_tensors(t):
    edge_of = t.autograd.graph.get_gradient_edge
    x = _learning(t)
    y = x * 2
    found = [t.autograd.grad((y * y).sum(), [edge_of(y), x])]
    edge = edge_of(y)
    found.append([type(edge).__name__, edge.node.name(), edge.output_nr, edge_of(x).node.name()])
    t.autograd.backward(edge_of(x * 3), t.ones(2, dtype=t.float64))
    return found, x.grad


def edges_of_what_does_not_learn(t):
    t.autograd.graph.get_gradient_edge(t.ones(2))


def writes_that_are_not_counted(t):
    x = _learning(t)
    b = x * 1
    y = (b * b).sum()
    with t.no_grad(), t.autograd._unsafe_preserve_version_counter(b):
        b.mul_(2)
    y.backward()
    return x.grad, b._version


def settings_of_threads(t):
    found = [t._C._is_multithreading_enabled()]
    with t.autograd.set_multithreading_enabled(False):
        found.append(t._C._is_multithreading_enabled())
    return [*found, t._C._is_multithreading_enabled()]


def hooks_after_accumulation_give_nothing(t):
    x = _learning(t)
    x.register_post_accumulate_grad_hook(lambda p: p.grad * 2)
    x.sum().backward()


def hooks_on_tensors_that_do_not_learn(t):
    t.autograd.graph.register_multi_grad_hook((_learning(t), t.ones(2)), print)


def numbers_are_not_saved(t):
    class Function(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, 2.0)
            return x * 2

    Function.apply(_learning(t))


def infinite_gradients_of_one_element(t):
    found = []
    for name in ("median", "max", "min", "nanmedian"):
        for start in (float("inf"), float("nan")):
            x = _learning(t, 1.0, 2.0, 3.0)
            getattr(t, name)(x).backward(t.tensor(start, dtype=t.float64))
            found.append(x.grad)
    return found


def the_lesser_of_an_integer_and_a_float(t):
    found = []
    for name in ("minimum", "maximum", "fmin", "fmax"):
        for turned in (False, True):
            b, i = t.tensor([0.5, 1.5], requires_grad=True), t.tensor([1, 1])
            getattr(t, name)(*((b, i) if turned else (i, b))).sum().backward()
            found.append(b.grad)
    return found
