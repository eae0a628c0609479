"""Full backward hooks in backward passes of all kinds, and in modes.

Each function is a scenario; `t` is the library, `see` makes hooks that note what they are given.
"""

from __future__ import annotations

from .hooks_modules import hooked, leaf


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
