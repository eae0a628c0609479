"""Which nodes and hooks run, for which inputs, and what they get.

Each function is a scenario; `t` is the library.
"""

from __future__ import annotations


def _pair(t):
    x = t.tensor([1.0, 2.0], requires_grad=True)
    return x, x * 2


def _there(grads):
    return [grad is not None for grad in grads]


def _function(t, notes):
    class Both(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, one, two):
            notes.append((one, two, ctx.saved_tensors[0]))
            return one * 2 + two * 3

    return Both


def what_is_captured_where_the_node_runs_too(t):
    x, y = _pair(t)
    y.register_hook(lambda g: g * 10)
    return t.autograd.grad(y.sum(), [x, y])


def what_is_captured_where_it_does_not(t):
    _, y = _pair(t)
    y.register_hook(lambda g: g * 10)
    y.grad_fn.register_prehook(lambda gs: (gs[0] * 7,))
    return t.autograd.grad(y.sum(), [y])


def hooks_of_leaves_that_are_only_captured(t):
    x, y = _pair(t)
    notes = []
    node = x.view_as(x).grad_fn.next_functions[0][0]
    node.register_prehook(lambda gs: notes.append("before"))
    node.register_hook(lambda *gs: notes.append("after"))
    found = t.autograd.grad(y.sum(), [x], retain_graph=True)
    y.sum().backward(inputs=[x])
    return found, notes, x.grad


def of_several_roots_those_that_lead_to_inputs(t):
    _, y = _pair(t)
    w, u = _pair(t)
    y.retain_grad()
    u.retain_grad()
    t.autograd.backward([y.sum(), u.sum()], inputs=[w])
    return y.grad, u.grad


def the_hooks_of_an_only_root(t):
    x, y = _pair(t)
    z = y * 3
    for tensor in (y, z):
        tensor.retain_grad()
    other = t.ones(2, requires_grad=True)
    found = t.autograd.grad(z, [other], t.ones(2), allow_unused=True)
    notes = []
    x.register_hook(lambda g: notes.append(g))
    x.backward(t.ones(2), inputs=[other])
    return found, z.grad, y.grad, x.grad, other.grad, notes


def the_node_of_an_input_runs(t):
    notes = []
    x, y = _pair(t)
    one, two = _function(t, notes).apply(y)
    (one.sum() + two.sum()).backward(inputs=[one])
    return notes, one.grad, x.grad


def the_node_of_an_input_frees_what_it_saved(t):
    notes = []
    _, y = _pair(t)
    one, _ = _function(t, notes).apply(y)
    one.sum().backward(inputs=[one])
    one.sum().backward(inputs=[one])


def hooks_of_outputs_without_gradient(t):
    notes = []
    x = t.ones(2, 3, requires_grad=True)
    for outputs in (x.split(1), t.std_mean(x, 0), x.topk(1), _function(t, [])().apply(x)):
        values = [value for value in outputs if value.requires_grad]
        for number, value in reversed(list(enumerate(values))):
            value.register_hook(lambda g, number=number: notes.append((number, g)))
            value.retain_grad()
        values[0].sum().backward()
        notes.append([value.grad for value in values])
    return notes


def nothing_is_not_replaced(t):
    first, second = t.ones(2, 3, requires_grad=True).split(1)
    second.register_hook(lambda g: t.ones(1, 3))
    first.sum().backward()


def _several_for(t, run):
    """What a hook on several tensors is told, by which tensors it is on."""
    found = {}
    for name in ("xy", "y", "yz", "xw", "yw", "pq", "xx", "z"):
        for mode in ("all", "any"):
            x, y = _pair(t)
            w = t.ones(2, requires_grad=True)
            first, second = y.split(1)
            tensors = {"x": x, "y": y, "z": y * 3, "w": w, "p": first, "q": second}
            notes = []
            t.autograd.graph.register_multi_grad_hook(
                [tensors[letter] for letter in name],
                (lambda gs, notes=notes: notes.append(_there(gs))) if mode == "all"
                else (lambda g, notes=notes: notes.append(g is not None)), mode=mode)  # fmt: skip
            run(tensors)
            found[name, mode] = notes
    return list(found.items())


def several_in_backward(t):
    return _several_for(t, lambda named: named["z"].sum().backward())


def several_and_a_root(t):
    return _several_for(t, lambda named: named["z"].backward(t.ones(2)))


def several_and_roots(t):
    return _several_for(t, lambda named: t.autograd.backward(
        [named["z"], named["x"], named["w"]], [t.ones(2)] * 3))  # fmt: skip


def several_of_a_part(t):
    return _several_for(t, lambda named: named["q"].sum().backward())


def several_with_inputs(t):
    return _several_for(t, lambda named: named["z"].sum().backward(inputs=[named["y"]]))


def several_with_inputs_that_are_leaves(t):
    return _several_for(t, lambda named: named["q"].sum().backward(inputs=[named["x"]]))


def several_of_a_leaf_that_is_the_root(t):
    return _several_for(t, lambda named: named["x"].backward(t.ones(2)))


def parts_that_are_asked_for(t):
    x, y = _pair(t)
    first, second = y.split(1)
    for value, factor in ((first, 2), (second, 3)):
        value.register_hook(lambda g, factor=factor: None if g is None else g * factor)
    total = (first * second).sum()
    keep = {"retain_graph": True, "allow_unused": True}
    choices = ([first], [second], [first, second], [first, x], [x, second])
    return [t.autograd.grad(total, inputs, **keep) for inputs in choices]


def gradients_in_inference_mode(t):
    x = t.ones(2, requires_grad=True)
    y = x * x
    with t.inference_mode():
        y.backward(t.ones(2), create_graph=True)
    return x.grad.requires_grad, x.grad
