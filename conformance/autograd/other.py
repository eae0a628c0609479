"""Memory, deep graphs, copies, threads.

Each function is a scenario; `t` is the library.
"""

from __future__ import annotations

import gc
import weakref

import numpy as np


def no_cycle(t):
    was = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        x = t.ones(3, requires_grad=True)
        y = (x.exp() * x).view(3)
        y.mul_(2)
        z = y.sum()
        refs = [weakref.ref(v) for v in (y, z)]
        z.backward()
        del y, z
        return [r() is None for r in refs]
    finally:
        if was:
            gc.enable()


def deep_graph(t):
    x = t.ones(1, requires_grad=True)
    y = x
    for _ in range(20000):
        y = y + 1
    y.backward()
    return x.grad


def deepcopy(t):
    import copy

    x = t.ones(2, requires_grad=True)
    x.grad = t.ones(2)
    y = copy.deepcopy(x)
    return y, y.requires_grad, y.grad, y.is_leaf


def deepcopy_non_leaf(t):
    import copy

    copy.deepcopy(t.ones(2, requires_grad=True) * 2)


def pickle_keeps_requires_grad(t):
    import pickle

    x = pickle.loads(pickle.dumps(t.ones(2, requires_grad=True)))
    return x, x.requires_grad


def pickle_shares_storage(t):
    import pickle

    x = t.arange(4.0)
    a, b = pickle.loads(pickle.dumps((x, x[1:3])))
    a[1] = 9
    return b


def variable(t):
    x = t.autograd.Variable(t.ones(2), requires_grad=True)
    return x.requires_grad, type(x).__name__


def numpy_round_trip_version(t):
    x = t.from_numpy(np.ones(2))
    x.numpy()[0] = 5
    return x, x._version


def zero_grad_is_none(t):
    x = t.ones(2, requires_grad=True)
    x.sum().backward()
    x.grad = None
    return x.grad


def backward_in_no_grad(t):
    x = t.ones(2, requires_grad=True)
    y = (x * x).sum()
    with t.no_grad():
        y.backward()
    return x.grad, x.grad.requires_grad


def backward_inside_backward(t):
    class Inner(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            x = ctx.saved_tensors[0].detach().requires_grad_()
            with t.enable_grad():
                (x * x).sum().backward()
            return x.grad * g

    x = t.tensor([3.0], requires_grad=True)
    Inner.apply(x).sum().backward()
    return x.grad
