"""Autograd behaves as torch's does: one scenario, two libraries, the same observations.

A scenario gets the library and returns plain data (numbers, names, flags), or raises; the types and
the first lines of errors are compared too.
"""

from __future__ import annotations

import gc
import inspect
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch as reference

import flambeau


def observe(scenario: Callable[[Any], Any], library: Any) -> Any:
    """What a scenario returns, or its error, and the warnings of the way."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = plain(scenario(library))
        except Exception as error:
            result = (type(error).__name__, str(error).split("\n")[0])
    return result, sorted({w.category.__name__ for w in caught})


def plain(value: Any) -> Any:
    """Tensors as nested lists with their types; everything else as it is."""
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if hasattr(value, "detach"):
        numbers = [f"{number:.5g}" for number in value.detach().resolve_conj().reshape(-1).tolist()]
        return [str(value.dtype).removeprefix("torch."), list(value.shape), numbers]
    if hasattr(value, "name") and hasattr(value, "next_functions"):
        return value.name()
    if isinstance(value, (type(None), bool, int, float, complex, str)):
        return value
    return type(value).__name__


class Scenarios:
    """Each method is one scenario; `t` is the library."""

    # ---- leaves

    def leaf_flags(t):
        x = t.ones(2, requires_grad=True)
        y = x * 2
        z = y.detach()
        return [(v.is_leaf, v.requires_grad, v.grad_fn, v.output_nr) for v in (x, y, z)]

    def requires_grad_of_integers(t):
        return t.ones(2, dtype=t.int64, requires_grad=True)

    def requires_grad_set_on_integers(t):
        t.ones(2, dtype=t.int64).requires_grad_()

    def requires_grad_off_on_non_leaf(t):
        (t.ones(2, requires_grad=True) * 2).requires_grad_(False)

    def requires_grad_on_non_leaf_again(t):
        return (t.ones(2, requires_grad=True) * 2).requires_grad_().requires_grad

    def in_place_on_leaf(t):
        t.ones(2, requires_grad=True).add_(1)

    def in_place_on_view_of_leaf(t):
        t.ones(2, requires_grad=True)[0].add_(1)

    def in_place_on_leaf_without_grad_mode(t):
        x = t.ones(2, requires_grad=True)
        with t.no_grad():
            x.add_(1)
        return x, x._version, x.requires_grad

    def grad_of_wrong_shape(t):
        t.ones(2, requires_grad=True).grad = t.ones(3)

    def grad_of_wrong_dtype(t):
        t.ones(2, requires_grad=True).grad = t.ones(2, dtype=t.float64)

    def grad_of_wrong_type(t):
        t.ones(2, requires_grad=True).grad = 1

    def grad_of_non_leaf(t):
        y = t.ones(2, requires_grad=True) * 2
        return y.grad

    def data_shares_memory(t):
        x = t.ones(2, requires_grad=True)
        x.data.mul_(3)
        return x, x._version, x.data.requires_grad

    def set_data(t):
        x = t.ones(2, requires_grad=True)
        x.data = t.zeros(3)
        return x, x.is_leaf

    def detach_shares_version(t):
        x = t.ones(2)
        y = x.detach()
        y.add_(1)
        return x, x._version, y._version

    def detach_in_place_on_view(t):
        x = t.ones(2, requires_grad=True) * 2
        x[0].detach_()

    def detach_in_place(t):
        x = t.ones(2, requires_grad=True) * 2
        x.detach_()
        return x.requires_grad, x.is_leaf, x.grad_fn

    def item_assignment_of_requires_grad(t):
        x = t.zeros(3)
        y = t.ones(1, requires_grad=True)
        x[1:2] = y * 2
        x.sum().backward()
        return x.grad_fn, y.grad, x.requires_grad

    def numpy_of_grad_tensor(t):
        t.ones(2, requires_grad=True).numpy()

    def numpy_array_of_grad_tensor(t):
        np.asarray(t.ones(2, requires_grad=True))

    def float_of_grad_tensor(t):
        return float(t.ones((), requires_grad=True) * 2)

    # ---- backward

    def backward_twice(t):
        x = t.ones(2, requires_grad=True)
        y = (x * x).sum()
        y.backward()
        y.backward()

    def backward_twice_without_saved(t):
        x = t.ones(2, requires_grad=True)
        y = (x + 1).sum()
        y.backward()
        y.backward()
        return x.grad

    def backward_twice_retained(t):
        x = t.ones(2, requires_grad=True)
        y = (x * x).sum()
        y.backward(retain_graph=True)
        y.backward()
        return x.grad

    def backward_of_vector(t):
        (t.ones(2, requires_grad=True) * 2).backward()

    def backward_of_complex(t):
        (t.ones((), dtype=t.complex64, requires_grad=True) * 2).backward()

    def backward_without_grad(t):
        t.ones(()).backward()

    def backward_with_wrong_gradient(t):
        (t.ones(2, requires_grad=True) * 2).backward(t.ones(3))

    def backward_with_wrong_gradient_type(t):
        (t.ones(2, requires_grad=True) * 2).backward([1.0, 2.0])

    def backward_with_number(t):
        (t.ones(2, requires_grad=True) * 2).backward(2.0)

    def backward_of_many(t):
        x = t.ones(2, requires_grad=True)
        t.autograd.backward([x.sum(), (x * x).sum()], [t.tensor(2.0), None])
        return x.grad

    def backward_of_many_wrong_count(t):
        x = t.ones(2, requires_grad=True)
        t.autograd.backward([x.sum(), (x * x).sum()], [t.tensor(2.0)])

    def backward_inputs(t):
        x, y = t.ones(2, requires_grad=True), t.ones(2, requires_grad=True)
        (x * y).sum().backward(inputs=[x])
        return x.grad, y.grad

    def backward_inputs_empty(t):
        x = t.ones(2, requires_grad=True)
        x.sum().backward(inputs=[])

    def backward_inputs_non_leaf(t):
        x = t.ones(2, requires_grad=True)
        y = x * 2
        (y * 3).sum().backward(inputs=[y])
        return x.grad, y.grad

    def create_graph_grads_have_history(t):
        x = t.tensor([2.0], requires_grad=True)
        (x**3).sum().backward(create_graph=True)
        first = x.grad
        x.grad = None
        first.sum().backward()
        return first, first.requires_grad, x.grad

    def third_derivative(t):
        x = t.tensor(2.0, requires_grad=True, dtype=t.float64)
        y = x**4
        found = []
        for _ in range(4):
            (y,) = t.autograd.grad(y, x, create_graph=True)
            found.append(y)
        return found

    def accumulates_in_place(t):
        x = t.ones(2, requires_grad=True)
        x.sum().backward()
        first = x.grad
        x.sum().backward()
        return first is x.grad, x.grad

    def grad_takes_leaf_strides(t):
        x = t.ones(2, 3).t().requires_grad_()
        (x * 2).sum().backward()
        y = t.ones(2, 3, requires_grad=True)
        y.t().contiguous().sum().backward()
        return x.grad.stride(), y.grad.stride()

    def grad_dtype_follows_input(t):
        x = t.ones(2, dtype=t.float16, requires_grad=True)
        (x.double() * 2).sum().backward()
        return x.grad

    def grad_of_broadcast(t):
        x, y = t.ones(3, 1, requires_grad=True), t.ones(2, requires_grad=True)
        (x * y + 1).sum().backward()
        return x.grad, y.grad

    def real_input_of_complex_result(t):
        x = t.tensor([1.0, 2.0], requires_grad=True)
        (x * t.tensor([1j, 2 + 1j])).abs().sum().backward()
        return x.grad

    def unreachable_part(t):
        x = t.ones(2, requires_grad=True)
        a, b = x.unbind()
        a.backward()
        return x.grad

    # ---- grad

    def grad_unused(t):
        x, y = t.ones(2, requires_grad=True), t.ones(2, requires_grad=True)
        t.autograd.grad(x.sum(), [x, y])

    def grad_allow_unused(t):
        x, y = t.ones(2, requires_grad=True), t.ones(2, requires_grad=True)
        return t.autograd.grad(x.sum(), [x, y], allow_unused=True)

    def grad_materialize(t):
        x, y = t.ones(2, requires_grad=True), t.ones(3, requires_grad=True)
        return t.autograd.grad(x.sum(), [x, y], materialize_grads=True)

    def grad_materialize_conflict(t):
        x = t.ones(2, requires_grad=True)
        t.autograd.grad(x.sum(), x, allow_unused=False, materialize_grads=True)

    def grad_of_no_grad_input(t):
        x, y = t.ones(2, requires_grad=True), t.ones(2)
        t.autograd.grad((x * y).sum(), y)

    def grad_of_intermediate(t):
        x = t.tensor([1.0, 2.0], requires_grad=True)
        y = x * x
        z = (y * y).sum()
        return t.autograd.grad(z, [y, x]), x.grad

    def grad_same_input_twice(t):
        x = t.tensor([1.0, 2.0], requires_grad=True)
        return t.autograd.grad((x * x).sum(), [x, x])

    def grad_of_output_itself(t):
        x = t.tensor([1.0, 2.0], requires_grad=True)
        return t.autograd.grad(x, x, t.tensor([3.0, 4.0]))

    def grad_batched(t):
        x = t.tensor([1.0, 2.0], requires_grad=True)
        return t.autograd.grad(x * x, x, t.eye(2), is_grads_batched=True)

    def grad_wrong_shape(t):
        x = t.tensor([1.0, 2.0], requires_grad=True)
        t.autograd.grad(x * x, x, t.ones(3))

    def grad_leaves_grad_alone(t):
        x = t.tensor([1.0, 2.0], requires_grad=True)
        t.autograd.grad((x * x).sum(), x)
        return x.grad

    # ---- hooks

    def tensor_hook_replaces(t):
        x = t.ones(2, requires_grad=True)
        x.register_hook(lambda g: g * 3)
        y = x * 2
        y.register_hook(lambda g: g + 1)
        y.sum().backward()
        return x.grad

    def tensor_hooks_in_order(t):
        x, seen = t.ones(2, requires_grad=True), []
        x.register_hook(lambda g: seen.append("a"))
        handle = x.register_hook(lambda g: seen.append("b"))
        x.register_hook(lambda g: seen.append("c"))
        handle.remove()
        handle.remove()
        x.sum().backward()
        return seen

    def tensor_hook_without_grad(t):
        t.ones(2).register_hook(lambda g: g)

    def tensor_hook_wrong_type(t):
        x = t.ones(2, requires_grad=True)
        x.register_hook(lambda g: 1)
        x.sum().backward()

    def tensor_hook_wrong_shape(t):
        x = t.ones(2, requires_grad=True)
        y = x * 2
        y.register_hook(lambda g: t.ones(3))
        y.sum().backward()

    def tensor_hook_raises(t):
        x = t.ones(2, requires_grad=True)
        x.register_hook(lambda g: 1 / 0)
        x.sum().backward()

    def hook_sees_grad(t):
        x, seen = t.ones(2, requires_grad=True), []
        y = x * 2
        y.register_hook(lambda g: seen.append(plain(g)))
        (y * 3).sum().backward()
        return seen

    def hook_before_in_place(t):
        x, seen = t.ones(2, requires_grad=True), []
        y = x * 2
        y.register_hook(lambda g: seen.append(plain(g)))
        y.mul_(3)
        y.register_hook(lambda g: seen.append(plain(g)))
        y.sum().backward()
        return seen, x.grad

    def retain_grad_on_intermediate(t):
        x = t.ones(2, requires_grad=True)
        y = x * 2
        y.retain_grad()
        y.retain_grad()
        (y * y).sum().backward()
        return y.grad, y.retains_grad, x.retains_grad

    def retain_grad_through_in_place(t):
        x = t.ones(2, requires_grad=True)
        y = x * 2
        y.retain_grad()
        y.mul_(5)
        (y * y).sum().backward()
        return y.grad, x.grad

    def retain_grad_without_grad(t):
        t.ones(2).retain_grad()

    def retain_grad_on_leaf(t):
        x = t.ones(2, requires_grad=True)
        x.retain_grad()
        return x.retains_grad

    def retain_grad_sees_hook(t):
        x = t.ones(2, requires_grad=True)
        y = x * 2
        y.retain_grad()
        y.register_hook(lambda g: g * 10)
        y.sum().backward()
        return y.grad, x.grad

    def post_accumulate(t):
        x, seen = t.ones(2, requires_grad=True), []

        def hook(p):
            seen.append(plain(p.grad))
            p.grad = None

        x.register_post_accumulate_grad_hook(hook)
        x.sum().backward()
        (x * 3).sum().backward()
        return seen, x.grad

    def post_accumulate_on_non_leaf(t):
        (t.ones(2, requires_grad=True) * 2).register_post_accumulate_grad_hook(print)

    def multi_grad_hook_all(t):
        x, y, z = (t.ones(2, requires_grad=True) for _ in range(3))
        seen = []
        t.autograd.graph.register_multi_grad_hook(
            [x, y, z], lambda grads: seen.append([plain(g) for g in grads])
        )
        (x * 2 + y).sum().backward()
        (x * 2 + y * z).sum().backward()
        return seen

    def multi_grad_hook_any(t):
        x, y = t.ones(2, requires_grad=True), t.ones(2, requires_grad=True)
        seen = []
        t.autograd.graph.register_multi_grad_hook(
            (x, y), lambda g: seen.append(plain(g)), mode="any"
        )
        (x * 2 + y * 2).sum().backward()
        (x * 2 + y * 2).sum().backward()
        return len(seen), seen[0]

    def multi_grad_hook_wrong_mode(t):
        t.autograd.graph.register_multi_grad_hook([], print, mode="some")

    def node_hooks(t):
        x, seen = t.ones(2, requires_grad=True), []
        y = x * 2
        y.grad_fn.register_prehook(lambda go: seen.append(["pre", plain(go)]))
        y.grad_fn.register_hook(lambda gi, go: seen.append(["post", plain(gi), plain(go)]))
        y.sum().backward()
        return seen

    def node_hooks_replace(t):
        x = t.ones(2, requires_grad=True)
        y = x * 2
        y.grad_fn.register_prehook(lambda go: (go[0] * 10,))
        y.grad_fn.register_hook(lambda gi, go: (gi[0] + 1, None))
        y.sum().backward()
        return x.grad

    def accumulate_node_hooks(t):
        x, seen = t.ones(2, requires_grad=True), []
        y = x * 2
        node = y.grad_fn.next_functions[0][0]
        node.register_prehook(lambda go: seen.append(["pre", plain(go)]))
        node.register_hook(lambda gi, go: seen.append(["post", plain(gi), plain(go)]))
        y.sum().backward()
        return seen, node.variable is x, node.name()

    def graph_structure(t):
        x, y = t.ones(2, 2, requires_grad=True), t.ones(2, 2)
        z = ((x @ y).relu() + x.t()).sum()
        names, stack = [], [z.grad_fn]
        while stack:
            node = stack.pop()
            names.append(node.name())
            stack += [n for n, _ in node.next_functions if n is not None]
        return names

    def outputs_of_one_node(t):
        parts = t.ones(4, requires_grad=True).split(2)
        return [(p.grad_fn, p.output_nr) for p in parts], parts[0].grad_fn is parts[1].grad_fn

    # ---- in place and views

    def saved_changed(t):
        x = t.ones(2, requires_grad=True)
        y = x * 2
        z = y * y
        y.add_(1)
        z.sum().backward()

    def saved_result_changed(t):
        x = t.ones(2, requires_grad=True)
        y = x.exp()
        y.mul_(2)
        y.sum().backward()

    def saved_leaf_changed(t):
        x, w = t.ones(2, requires_grad=True), t.ones(2)
        y = x * w
        w.add_(1)
        y.sum().backward()

    def saved_view_changed(t):
        x, w = t.ones(2, requires_grad=True), t.ones(4)
        y = x * w[:2]
        w[2:].add_(1)
        y.sum().backward()

    def unsaved_changed(t):
        x = t.ones(2, requires_grad=True)
        y = x * 2
        z = y + 1
        y.add_(1)
        (z + y).sum().backward()
        return x.grad

    def in_place_chain(t):
        x = t.tensor([1.0, 2.0], requires_grad=True)
        y = x.clone()
        y.mul_(3).add_(x).pow_(2)
        y.sum().backward()
        return x.grad, y.grad_fn, y._version

    def write_to_view(t):
        x = t.tensor([1.0, 2.0, 3.0], requires_grad=True)
        y = x * 1
        y[1:].mul_(10)
        y.sum().backward()
        return x.grad, y.grad_fn, y

    def view_sees_write_to_base(t):
        x = t.tensor([1.0, 2.0, 3.0], requires_grad=True)
        y = x * 1
        v = y[1:]
        y.mul_(10)
        v.sum().backward()
        return v.grad_fn, x.grad

    def copy_into_no_grad_base(t):
        x = t.tensor([1.0, 2.0], requires_grad=True)
        base = t.zeros(4)
        base[1:3].copy_(x)
        base.mul_(2)
        base.sum().backward()
        return base.grad_fn, base.is_leaf, x.grad

    def multi_view_write(t):
        a, b = (t.ones(4, requires_grad=True) * 1).split(2)
        a.mul_(2)

    def unbind_write(t):
        a, b = (t.ones(2, 2, requires_grad=True) * 1).unbind()
        a.mul_(2)

    def multi_view_stale(t):
        base = t.ones(4, requires_grad=True) * 1
        a, b = base.split(2)
        base.mul_(2)
        return a.grad_fn

    def no_grad_view_write(t):
        base = t.ones(4, requires_grad=True) * 1
        with t.no_grad():
            v = base[:2]
        v.mul_(2)

    def view_flags(t):
        x = t.ones(2, 3, requires_grad=True)
        v = x.t()[0]
        w = v.detach()
        return v._is_view(), v._base is x, w._is_view(), w._base is None, x.view(6).grad_fn

    def set_item_with_history(t):
        x = t.tensor([1.0, 2.0], requires_grad=True)
        y = t.zeros(2, 2)
        y[0] = x
        y[1, 0] = x[0] * 2
        (y * t.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
        return x.grad, y.grad_fn

    def in_place_dtype(t):
        t.ones(2, dtype=t.int64).add_(1.5)

    def in_place_broadcast(t):
        t.ones(2).add_(t.ones(3, 2))

    def in_place_on_expanded(t):
        t.ones(1).expand(3).add_(1)

    def in_place_overlap(t):
        x = t.ones(4)
        x[1:].copy_(x[:-1])

    def version_counts(t):
        x = t.ones(3)
        v = x[:2]
        v.add_(1)
        x.zero_()
        x[0] = 1
        y = x.data
        y.add_(1)
        return x._version, v._version, y._version

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
        with t.autograd.graph.saved_tensors_hooks(
            lambda v: seen.append(plain(v)) or v, lambda v: v
        ):
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

    # ---- Function

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
        _forward(
            t, lambda v: seen.append((t.is_grad_enabled(), (v * 2).requires_grad)) or v * 1
        ).apply(x)
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

    # ---- other

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


@pytest.fixture(autouse=True)
def _every_warning() -> Iterator[None]:
    """torch gives some warnings once per process only."""
    reference.set_warn_always(True)
    yield
    reference.set_warn_always(False)


NAMES = [n for n, f in vars(Scenarios).items() if inspect.isfunction(f)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_scenario(name: str) -> None:
    scenario = getattr(Scenarios, name)
    assert observe(scenario, flambeau) == observe(scenario, reference)
