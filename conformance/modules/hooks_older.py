"""`register_backward_hook`, the older kind: what it sees of layers, and what it warns of."""

from __future__ import annotations

from collections import namedtuple

from .hooks_modules import module

Pair = namedtuple("Pair", "first second")  # noqa: PYI024


def _layer(t, layer):
    for number, parameter in enumerate(layer.parameters()):
        parameter.data.fill_(number + 0.5)
    return layer


def of_linear_layers(t, see):
    found = []
    for bias in (True, False):
        for shape in ((2, 3), (3,), (2, 2, 3)):
            layer = _layer(t, t.nn.Linear(3, 2, bias=bias))
            layer.register_backward_hook(see(f"{bias} {shape}"))
            for wanted in (True, False):
                x = t.ones(shape, requires_grad=wanted)
                layer(x).sum().backward()
                found.append((x.grad, layer.weight.grad))
    return found


def linear_layers_whose_gradients_are_replaced(t, see):
    found = []
    for shape in ((2, 3), (2, 2, 3)):
        layer = _layer(t, t.nn.Linear(3, 2))
        layer.register_backward_hook(
            see("hook", lambda m, gi, go: tuple(None if g is None else g * 3 for g in gi))
        )
        x = t.ones(shape, requires_grad=True)
        layer(x).sum().backward()
        found.append((x.grad, layer.weight.grad, layer.bias.grad))
    return found


def linear_layers_that_are_frozen(t, see):
    found = []
    for frozen in ("weight", "bias"):
        layer = _layer(t, t.nn.Linear(3, 2))
        getattr(layer, frozen).requires_grad_(False)
        layer.register_backward_hook(see(frozen))
        x = t.ones(2, 3, requires_grad=True)
        layer(x).sum().backward()
        found.append((x.grad, layer.weight.grad, layer.bias.grad))
    return found


def graphs_of_linear_layers(t, see):
    def walk(node):
        if node is None:
            return None
        return node.name(), [(walk(before), number) for before, number in node.next_functions]

    found = []
    for bias in (True, False):
        for shape in ((2, 3), (3,), (2, 2, 3)):
            for frozen in (True, False):
                layer = t.nn.Linear(3, 2, bias=bias)
                layer.weight.requires_grad_(not frozen)
                found.append(walk(layer(t.ones(shape, requires_grad=True)).grad_fn))
    return found


def gradients_within_linear_layers(t, see):
    layer = _layer(t, t.nn.Linear(3, 2))
    x = t.ones(2, 2, 3, requires_grad=True)
    y = layer(x).pow(2).sum()
    node = layer(x).grad_fn
    z = layer(x)
    product = z.grad_fn.next_functions[0][0]
    edges = [t.autograd.graph.GradientEdge(n, i) for n, i in product.next_functions]
    first = t.autograd.grad(z.pow(2).sum(), edges, retain_graph=True)
    second = t.autograd.grad(z.pow(2).sum(), [x, layer.weight], create_graph=True)
    third = t.autograd.grad(second[0].pow(2).sum(), [x, layer.weight], allow_unused=True)
    y.backward()
    return first, second, third, x.grad, node.name()


def of_several_operators(t, see):
    for forward in (
        lambda x: x * 2,
        lambda x: (x * 2).exp(),
        lambda x: (x * 2, x * 3),
        lambda x: x.unbind(),
        lambda x: (x.exp(),),
        lambda x: Pair(x * 2, x * 3),
        lambda x: {"first": 3, "second": x * 2},
        lambda x: [x * 2],
        lambda x: (x * 2, 3),
        lambda x: ((x * 2,),),
        lambda x: x.detach(),
        lambda x: x,
    ):
        x = t.ones(3, requires_grad=True)
        made = module(t, forward)
        made.register_backward_hook(see("hook"))
        out = made(x * 1)
        while not hasattr(out, "sum"):
            out = out["second"] if isinstance(out, dict) else out[0]
        if out.requires_grad:
            out.sum().backward()


def inputs_of_all_kinds(t, see):
    for args in ((), (3,), (None,)):
        x = t.ones(3, requires_grad=True)
        made = module(t, lambda *rest, x=x: x * 2)
        made.register_backward_hook(see("hook"))
        made(*args).sum().backward()
        made(x, *args).sum().backward()


def outputs_without_tensors(t, see):
    found = []
    for out in (None, 3, (), {}, {"a": 3}, [None], {"a": {"b": t.ones(1)}}):
        made = module(t, lambda out=out: out)
        made.register_backward_hook(see("hook"))
        try:
            made()
            found.append("passes")
        except Exception as error:
            found.append(f"{type(error).__name__}: {error}")
    return found


def a_dead_module(t, see):
    x = t.ones(3, requires_grad=True)
    made = module(t, lambda x: x * 2)
    made.register_backward_hook(see("hook"))
    y = made(x)
    del made
    y.sum().backward()


def next_to_full_hooks(t, see):
    found = []
    for first, second in (("_full", ""), ("", "_full"), ("", ""), ("_full", "_full")):
        made = t.nn.ReLU()
        getattr(made, f"register{first}_backward_hook")(see("hook"))
        try:
            getattr(made, f"register{second}_backward_hook")(see("hook"))
            found.append(made._is_full_backward_hook)
        except RuntimeError as error:
            found.append(str(error))
    return found


def on_every_module(t, see):
    x = t.ones(2, 3, requires_grad=True)
    net = t.nn.Sequential(_layer(t, t.nn.Linear(3, 2)), t.nn.ReLU())
    net.register_full_backward_pre_hook(see("pre"))
    handle = t.nn.modules.module.register_module_backward_hook(see("every"))
    try:
        net(x).sum().backward()
    finally:
        handle.remove()
    net(x).sum().backward()
    return x.grad
