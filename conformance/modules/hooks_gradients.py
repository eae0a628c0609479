"""Full backward hooks: which gradients they see, and which reach the inputs.

Each function is a scenario; `t` is the library, `see` makes hooks that note what they are given.
"""

from __future__ import annotations

from collections import namedtuple

from .hooks_modules import module, tensors

Pair = namedtuple("Pair", "first second")  # noqa: PYI024


def leaf(t):
    return t.tensor([1.0, -2.0, 3.0], requires_grad=True)


def hooked(t, see, forward, *, pre=True):
    """A module with that forward, and a hook of each kind."""
    made = module(t, forward)
    made.register_full_backward_hook(see("full"))
    if pre:
        made.register_full_backward_pre_hook(see("pre"))
    return made


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


def past_the_output_by_double_backward(t, see):
    x = leaf(t)
    y = hooked(t, see, lambda x: x.pow(3))(x)
    (grad,) = t.autograd.grad(y.sum(), x, create_graph=True)
    grad.pow(2).sum().backward()
    return grad, x.grad


def a_gradient_penalty(t, see):
    x = leaf(t)
    w = t.tensor([0.5, 1.0, 2.0], requires_grad=True)
    made = hooked(t, see, lambda x: (x * w).pow(2))
    y = made(x)
    (grad,) = t.autograd.grad(y.sum(), x, create_graph=True)
    (y.sum() + grad.pow(2).sum()).backward()
    return x.grad, w.grad


def a_penalty_within_the_module(t, see):
    x = leaf(t)

    def forward(x):
        y = x.pow(3).sum()
        (grad,) = t.autograd.grad(y, x, create_graph=True)
        return y, grad.pow(2).sum()

    y, penalty = hooked(t, see, forward)(x)
    (y + penalty).backward()
    return x.grad


def backward_twice(t, see):
    x = leaf(t)
    y = hooked(t, see, lambda x: x.exp())(x).sum()
    y.backward(retain_graph=True)
    y.backward()
    return x.grad


def one_call_after_another(t, see):
    x = leaf(t)
    made = hooked(t, see, lambda x: x * 2)
    first, second = made(x), made(x * 3)
    second.sum().backward()
    first.sum().backward()
    return x.grad


def one_call_in_another(t, see):
    x = leaf(t)
    depth = []

    def forward(x):
        if depth:
            return x * 5
        depth.append(1)
        return made(x * 2) + x

    made = hooked(t, see, forward)
    made(x).sum().backward()
    return x.grad


def gradients_that_are_asked_for(t, see):
    x, y = leaf(t), leaf(t)
    out = hooked(t, see, lambda x, y: x * y)(x, y)
    found = t.autograd.grad(out.sum(), x, retain_graph=True)
    out.sum().backward(inputs=[y])
    return found, x.grad, y.grad


def without_recording(t, see):
    x = leaf(t)
    made = hooked(t, see, lambda x: x * 2)
    with t.no_grad():
        first = made(x)
    with t.inference_mode():
        second = made(x)
    return first.requires_grad, second.requires_grad, first.is_inference(), second.is_inference()


def recording_within_only(t, see):
    x = leaf(t)

    def forward(x):
        with t.enable_grad():
            return x * 2

    with t.no_grad():
        y = hooked(t, see, forward)(x)
    y.sum().backward()
    return x.grad


def not_recording_within(t, see):
    x = leaf(t)

    def forward(x):
        with t.no_grad():
            return x * 2

    return hooked(t, see, forward)(x).requires_grad


def a_checkpoint_within(t, see):
    from importlib import import_module

    checkpoint = import_module(f"{t.__name__}.utils.checkpoint").checkpoint
    found = []
    for reentrant in (False, True):
        x = leaf(t)
        inner = hooked(t, see, lambda x: x.exp())

        def forward(x, inner=inner, again=reentrant):
            return checkpoint(inner, x, use_reentrant=again)

        hooked(t, see, forward)(x).sum().backward()
        found.append(x.grad)
    return found


def in_another_thread(t, see):
    import threading

    x = leaf(t)
    y = hooked(t, see, lambda x: x.exp())(x).sum()
    thread = threading.Thread(target=y.backward)
    thread.start()
    thread.join()
    return x.grad


def under_saved_tensor_hooks(t, see):
    x = leaf(t)
    packed = []

    def pack(tensor):
        packed.append([f"{number:.5g}" for number in tensor.tolist()])
        return tensor

    with t.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        y = hooked(t, see, lambda x: x.exp())(x)
    y.sum().backward()
    return x.grad, packed


def hooks_of_tensors_and_modules(t, see):
    x = leaf(t)
    y = x * 1
    y.register_hook(see("input"))
    out = hooked(t, see, lambda x: x.exp())(y)
    out.register_hook(see("output"))
    out.retain_grad()
    out.sum().backward()
    return x.grad, out.grad


def edges_and_names(t, see):
    x = leaf(t)
    inside = []

    def forward(x, y):
        inside.append((x.grad_fn.name(), x.output_nr, x._is_view(), y.requires_grad, y._is_view()))
        return x * y, x

    out = hooked(t, see, forward)(x, t.ones(3))
    names = [(part.grad_fn.name(), part.output_nr, part._is_view()) for part in out]
    before = [node.name() for node, _ in out[0].grad_fn.next_functions]
    return inside, names, before, type(out[0].grad_fn).__name__


def versions_are_shared(t, see):
    x = t.ones(3)
    w = leaf(t)
    seen = []

    def forward(x, w):
        x.add_(1)
        seen.append(x._version)
        return x * w

    hooked(t, see, forward)(x, w)
    return x, x._version, seen
