"""Modes (no_grad, inference), hooks of saved tensors, detection of anomalies.

Each function is a scenario; `t` is the library.
"""

from __future__ import annotations

import threading

from conformance.autograd.observing import plain

# ---- modes


def no_grad_results(t):
    x = t.ones(2, requires_grad=True)
    with t.no_grad():
        y = x * 2
        inner = t.is_grad_enabled()
        with t.enable_grad():
            z = x * 2
        leaf = t.ones(2, requires_grad=True)
    return y.requires_grad, inner, z.requires_grad, leaf.requires_grad, t.is_grad_enabled()


def set_grad_enabled_as_function(t):
    t.set_grad_enabled(False)
    inside = t.is_grad_enabled()
    t.set_grad_enabled(True)
    with t.set_grad_enabled(False):
        within = t.is_grad_enabled()
    return inside, within, t.is_grad_enabled()


def decorators(t):
    @t.no_grad()
    def f():
        return t.is_grad_enabled()

    @t.no_grad
    def g():
        return t.is_grad_enabled()

    @t.inference_mode()
    def h():
        return t.is_inference_mode_enabled()

    @t.set_grad_enabled(False)
    def k():
        return t.is_grad_enabled()

    return f(), g(), h(), k(), t.is_grad_enabled(), f.__name__


def generator_decorator(t):
    @t.no_grad()
    def numbers():
        got = yield t.is_grad_enabled()
        got = yield got, t.is_grad_enabled()
        return t.is_grad_enabled()

    found, g = [], numbers()
    found.append(next(g))
    found.append(t.is_grad_enabled())
    found.append(g.send("sent"))
    try:
        next(g)
    except StopIteration as stop:
        found.append(stop.value)
    return found


def generator_decorator_throw(t):
    @t.no_grad()
    def numbers():
        try:
            yield 1
        except ValueError:
            yield t.is_grad_enabled()

    g = numbers()
    next(g)
    return g.throw(ValueError()), t.is_grad_enabled()


def generator_decorator_close(t):
    seen = []

    @t.no_grad()
    def numbers():
        try:
            yield 1
        finally:
            seen.append(t.is_grad_enabled())

    g = numbers()
    next(g)
    g.close()
    return seen


def mode_after_exception(t):
    try:
        with t.no_grad():
            raise KeyError
    except KeyError:
        return t.is_grad_enabled()


def inference_tensors(t):
    with t.inference_mode():
        x = t.ones(2)
        y = t.ones(2, requires_grad=True)
        z = y * 2
    return x.is_inference(), y.requires_grad, z.requires_grad, (x + 1).is_inference()


def inference_version(t):
    with t.inference_mode():
        x = t.ones(2)
    x._version


def inference_save(t):
    with t.inference_mode():
        x = t.ones(2)
    t.ones(2, requires_grad=True) * x


def inference_unsaved_use(t):
    with t.inference_mode():
        x = t.ones(2)
    y = t.ones(2, requires_grad=True)
    (y + x).sum().backward()
    return y.grad


def inference_write_outside(t):
    with t.inference_mode():
        x = t.ones(2)
    x.add_(1)


def inference_write_inside(t):
    with t.inference_mode():
        x = t.ones(2)
        x.add_(1)
    return x


def inference_normal_write_inside(t):
    x = t.ones(2)
    with t.inference_mode():
        x.add_(1)
    return x, x.is_inference(), x._version


def inference_requires_grad_outside(t):
    with t.inference_mode():
        x = t.ones(2)
    x.requires_grad_()


def inference_view_of_normal(t):
    x = t.ones(2, requires_grad=True) * 2
    with t.inference_mode():
        v = x[0]
    return v.is_inference(), v.requires_grad


def inference_view_write_outside(t):
    x = t.ones(2, requires_grad=True) * 2
    with t.inference_mode():
        v = x[0:1]
    v.add_(1)


def inference_off_inside(t):
    with t.inference_mode(), t.inference_mode(False):
        x = t.ones(2, requires_grad=True)
        return x.is_inference(), (x * 2).requires_grad


def inference_clone(t):
    with t.inference_mode():
        x = t.ones(2)
    y = x.clone()
    return y.is_inference(), y.requires_grad_().requires_grad


def mode_per_thread(t):
    found = []
    with t.no_grad():
        thread = threading.Thread(target=lambda: found.append(t.is_grad_enabled()))
        thread.start()
        thread.join()
    return found


# ---- saved tensors and anomaly


def saved_hooks(t):
    x, seen = t.tensor([1.0, 2.0], requires_grad=True), []

    def pack(v):
        seen.append(plain(v))
        return v.tolist()

    with t.autograd.graph.saved_tensors_hooks(pack, lambda v: t.tensor(v) * 10):
        y = x * x
    y.sum().backward()
    return seen, x.grad


def saved_hooks_of_result(t):
    x, seen = t.tensor([1.0, 2.0], requires_grad=True), []
    with t.autograd.graph.saved_tensors_hooks(lambda v: seen.append(plain(v)) or v, lambda v: v):
        y = x.exp()
    y.sum().backward()
    return seen, x.grad


def saved_hooks_wrong_unpack(t):
    x = t.tensor([1.0, 2.0], requires_grad=True)
    with t.autograd.graph.saved_tensors_hooks(lambda v: v, lambda v: 1):
        y = x * x
    y.sum().backward()


def saved_hooks_nested(t):
    x, seen = t.tensor([1.0], requires_grad=True), []
    hooks = t.autograd.graph.saved_tensors_hooks
    with hooks(lambda v: seen.append("outer") or v, lambda v: v):
        with hooks(lambda v: seen.append("inner") or v, lambda v: v):
            y = x.sin()
        z = x.cos()
    (y + z).sum().backward()
    return seen, x.grad


def saved_hooks_disabled(t):
    graph = t.autograd.graph
    hooks = graph.saved_tensors_hooks(lambda v: v, lambda v: v)
    with graph.disable_saved_tensors_hooks("not here"), hooks:
        pass


def save_on_cpu(t):
    x = t.tensor([1.0, 2.0], requires_grad=True)
    with t.autograd.graph.save_on_cpu():
        y = (x * x).sum()
    y.backward()
    return x.grad


def anomaly_nan(t):
    x = t.tensor([0.0], requires_grad=True)
    with t.autograd.detect_anomaly():
        y = (x / x).sum() * 1
        y.backward()


def anomaly_no_nan_check(t):
    x = t.tensor([0.0], requires_grad=True)
    with t.autograd.detect_anomaly(check_nan=False):
        (x * float("nan")).sum().backward()
    return t.is_anomaly_enabled()


def anomaly_switch(t):
    before = t.is_anomaly_enabled()
    with t.autograd.set_detect_anomaly(True):
        inside = t.is_anomaly_enabled(), t.is_anomaly_check_nan_enabled()
    return before, inside, t.is_anomaly_enabled()


def decorated_class(t):
    @t.no_grad()
    class Made:
        def __init__(self):
            self.made = t.is_grad_enabled()

        def method(self):
            return t.is_grad_enabled()

    made = Made()
    return made.made, made.method()


def numpy_without_recording(t):
    x = t.ones(2, requires_grad=True)
    with t.no_grad():
        return x.numpy().tolist(), (x * 2).numpy().tolist()


def multithreading(t):
    before = t.autograd.is_multithreading_enabled()
    with t.autograd.set_multithreading_enabled(False):
        within = t.autograd.is_multithreading_enabled()
    return before, within, t.autograd.is_multithreading_enabled()


def views_of_inference_tensors(t):
    with t.inference_mode():
        x = t.ones(2, 3, requires_grad=True)
        views = [x.view(-1), x[0], x.t(), x.expand(2, 2, 3)]
        return [(v.requires_grad, v._is_view(), v.is_leaf) for v in views]


def views_of_another_type_follow_the_mode(t):
    ordinary, seen = t.ones(4), []
    with t.inference_mode():
        made = t.ones(4)
        for x in (ordinary, made):
            seen += [x.view(t.int32).is_inference(), x.view(t.float32).is_inference()]
    for x in (ordinary, made):
        seen += [x.view(t.int32).is_inference(), x.view(t.float32).is_inference()]
    same = made.view(t.float32)
    same[1:].mul_(3)
    w = t.ones(4, requires_grad=True)
    (w * same).sum().backward()
    shares = same.untyped_storage().data_ptr() == made.untyped_storage().data_ptr()
    return seen, made, same._version, w.grad, same._is_view(), shares, made[1:].view(t.int32)


def views_that_a_write_made_useless(t):
    x = t.ones(1, requires_grad=True)
    with t.no_grad():
        y = x[:]
        y *= 2
    return repr(y)
