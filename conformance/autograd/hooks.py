"""Hooks of tensors and nodes, retained gradients, the graph as it is seen from Python.

Each function is a scenario; `t` is the library.
"""

from __future__ import annotations

from typing import Any

from conformance.autograd.observing import plain


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
    t.autograd.graph.register_multi_grad_hook((x, y), lambda g: seen.append(plain(g)), mode="any")
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


def pack_hook_that_writes(t):
    x = t.ones(2, requires_grad=True)
    with t.autograd.graph.saved_tensors_hooks(lambda s: s.detach().add_(1), lambda s: s):
        x * t.ones(2)


def pack_hook_that_writes_to_a_result(t):
    x = t.ones(2, requires_grad=True)
    with t.autograd.graph.saved_tensors_hooks(lambda s: s.add_(1), lambda s: s):
        x.exp()


def numbers_go_through_no_hook(t):
    packed = []
    x = t.ones(2, requires_grad=True)
    with t.autograd.graph.saved_tensors_hooks(lambda s: packed.append(s) or s, lambda s: s):
        y = (x * 2) ** 2 / 4
    y.sum().backward()
    return [p.shape for p in packed], x.grad


def _watched(t: Any) -> Any:
    """A leaf, a non-leaf, and what was called on them, in order."""
    log: list[str] = []

    def tensor(name: str) -> Any:
        return lambda g: log.append(f"{name} tensor")

    def before(name: str) -> Any:
        return lambda gs: log.append(f"{name} before")

    def after(name: str) -> Any:
        return lambda outs, ins: log.append(f"{name} after")

    x = t.tensor(1.0, requires_grad=True)
    y = x.clone()
    leaf = y.grad_fn.next_functions[0][0]
    for name, of, node in (("x", x, leaf), ("y", y, y.grad_fn)):
        of.register_hook(tensor(name))
        node.register_prehook(before(name))
        node.register_hook(after(name))
    return x, y, leaf, log


def hooks_of_inputs(t):
    found = []
    for wanted in ("x", "y", "xy"):
        for call in ("grad", "backward"):
            x, y, leaf, log = _watched(t)
            inputs = [{"x": x, "y": y}[name] for name in wanted]
            if call == "grad":
                t.autograd.grad(y.sum(), inputs)
            else:
                y.sum().backward(inputs=inputs)
            found.append((wanted, call, list(log)))
    return found


def inputs_of_backward_run(t):
    x = t.ones(2, requires_grad=True)
    y = x.exp()
    y.sum().backward(inputs=[y])
    y.sum().backward(inputs=[y])


def hooks_of_outputs_without_gradient(t):
    seen = []
    x = t.arange(3.0).requires_grad_()
    first, second, _ = x.unbind()
    handle = first.register_hook(lambda g: seen.append(g))
    second.backward(retain_graph=True)
    first.backward(retain_graph=True)
    handle.remove()
    second.backward()
    return seen, x.grad


def hooks_that_fill_in_for_outputs_without_gradient(t):
    x = t.ones(2, 2, requires_grad=True)
    first, second = x.unbind()
    first.register_hook(lambda g: t.full((2,), 7.0) if g is None else g * 2)
    second.sum().backward(retain_graph=True)
    (first + second).sum().backward()
    return x.grad


def nodes_are_functions(t):
    x, y = t.tensor([2.0, 3.0], requires_grad=True), t.ones(2)
    node = (x * y).grad_fn
    return node(t.ones(2))


def nodes_of_several_outputs_are_functions(t):
    x = t.ones(2, 2, requires_grad=True)
    return x.unbind()[0].grad_fn(t.ones(2), t.zeros(2))


def nodes_called_with_too_much(t):
    x = t.ones(2, requires_grad=True)
    (x * x).grad_fn(t.ones(2), t.ones(2))


def nodes_called_with_numbers(t):
    x = t.ones(2, requires_grad=True)
    (x * x).grad_fn(1)
