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


def hooks_of_nodes_with_results_that_have_no_gradient(t):
    notes = []
    for function in (lambda x: x.max(0), lambda x: x.topk(1), t.frexp, t.std_mean, t.slogdet):
        x = t.tensor([[1.0, 2.0], [3.0, -1.0]], requires_grad=True)
        value = function(x)[0]
        value.grad_fn.register_prehook(lambda gs: notes.append(gs))
        value.grad_fn.register_hook(lambda ins, outs: notes.append((ins, outs)))
        value.sum().backward()
        notes.append(x.grad)
    return notes


def prehooks_that_replace(t):
    x = t.tensor([[1.0, 2.0], [3.0, -1.0]], requires_grad=True)
    values, _ = x.max(0)
    values.grad_fn.register_prehook(lambda gs: (gs[0] * 3,))
    values.sum().backward()
    return x.grad


def hooks_see_what_was_asked_for(t):
    notes = []
    x, y = t.ones(2, requires_grad=True), t.ones(2, requires_grad=True)
    product = x * y
    product.grad_fn.register_hook(lambda ins, outs: notes.append((ins, outs)))
    t.autograd.grad(product.sum(), [y], retain_graph=True)
    product.sum().backward(inputs=[product], retain_graph=True)
    product.sum().backward(inputs=[x])
    return notes


def hooks_of_leaves_that_are_sent_nothing(t):
    class Silent(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            return None

    notes = []
    x = t.ones(2, requires_grad=True)
    x.register_post_accumulate_grad_hook(lambda leaf: notes.append(leaf.grad))
    node = x.view_as(x).grad_fn.next_functions[0][0]
    node.register_prehook(lambda *gs: notes.append(gs))
    node.register_hook(lambda *gs: notes.append(gs))
    Silent.apply(x).sum().backward()
    return notes, x.grad


def hooks_of_leaves_by_backward(t):
    notes = []
    x = t.ones(2, requires_grad=True)
    node = x.view_as(x).grad_fn.next_functions[0][0]
    node.register_hook(lambda ins, outs: notes.append((ins, outs[0].clone())))
    (x * 2).sum().backward()
    (x * 3).sum().backward()
    return notes


def views_that_nothing_flows_through(t):
    x = t.ones(1, 3, requires_grad=True)
    found = []
    for mode in (t.no_grad, t.inference_mode):
        with mode():
            view = x.squeeze()
        x.sum().backward(inputs=[view])
        view.retain_grad()
        found.append((view.requires_grad, view.is_leaf, view.retains_grad, view.grad, x.grad))
    return found


def saved_numbers_where_nothing_learns(t):
    class Weighted(t.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor):
            ctx.save_for_backward(x, factor)
            return x * factor

        @staticmethod
        def backward(ctx, grad):
            return grad, None

    plain = Weighted.apply(t.ones(2), 2.0)
    return plain, Weighted.apply(t.ones(2, requires_grad=True), 2.0)


def names_of_nodes_as_types(t):
    x = t.ones(2, 3, requires_grad=True)
    y = x * 1
    view, other = y[0], y[1]
    view.mul_(2)
    return [type(value.grad_fn).__name__ for value in (x.t(), y, view, other, x[0], x.unbind()[0])]


def several_and_captured_roots(t):
    def run(named):
        for inputs in ("y", "z", "x"):
            t.autograd.grad(named["y"], [named[inputs]], t.ones(2), retain_graph=True,
                            allow_unused=True)  # fmt: skip

    found = {}
    for name in ("y", "yy", "yz"):
        x, y = _pair(t)
        named = {"x": x * 1, "y": y, "z": y * 3}
        notes = []
        t.autograd.graph.register_multi_grad_hook(
            [named[letter] for letter in name],
            lambda gs, notes=notes: notes.append(_there(gs)))  # fmt: skip
        run(named)
        found[name] = notes
    return list(found.items())


def hooks_of_several_outputs_run_output_by_output(t):
    notes = []
    x = t.ones(2, 3, requires_grad=True)
    one, two = t.std_mean(x)
    for number, value in enumerate((two, one, two, one)):
        value.register_hook(lambda g, number=number: notes.append((number, g is not None)))
    one.backward()
    return notes


def edges_of_unrecorded_views(t):
    x = t.ones(2, requires_grad=True)
    with t.no_grad():
        view = x[1:]
    return t.autograd.graph.get_gradient_edge(view)


def retained_gradients_follow_to_other_memory(t):
    x = t.ones(2, requires_grad=True)
    y = x * 2
    y.retain_grad()
    y.set_(t.zeros(2))
    return t.autograd.grad(y, [t.ones(1, requires_grad=True)], y, allow_unused=True), y.grad


def backward_of_what_does_not_learn(t):
    t.ones(2).backward()
