"""What hooks may return: numbers of gradients, types, sizes, nothing."""

from __future__ import annotations

import functools

from .hooks_modules import module, shown

ANSWERS = {
    "nothing": lambda t, g: None,
    "the same": lambda t, g: g,
    "others": lambda t, g: tuple(None if part is None else part * 3 for part in g),
    "one less": lambda t, g: g[:-1],
    "one more": lambda t, g: (*g, None),
    "none at all": lambda t, g: (),
    "no tuple": lambda t, g: next(part for part in g if part is not None),
    "a list": lambda t, g: list(g),
    "a number": lambda t, g: 3,
    "a text": lambda t, g: "abc",
    "numbers": lambda t, g: (3,) * len(g),
    "only None": lambda t, g: (None,) * len(g),
    "None first": lambda t, g: (None, *g[1:]),
    "another size": lambda t, g: tuple(t.ones(5) for _ in g),
    "a size that fits": lambda t, g: tuple(t.ones(1) for _ in g),
    "another type": lambda t, g: tuple(None if part is None else part.double() for part in g),
    "integers": lambda t, g: tuple(t.ones(3, dtype=t.int64) for _ in g),
    "complex": lambda t, g: tuple(t.ones(3, dtype=t.complex64) for _ in g),
    "bfloat16": lambda t, g: tuple(t.ones(3, dtype=t.bfloat16) for _ in g),
    "sparse": lambda t, g: tuple(t.ones(3).to_sparse() for _ in g),
    "rows": lambda t, g: t.ones(len(g), 3),
    "row by row": lambda t, g: t.ones(3),
    "written": lambda t, g: [part.mul_(2) for part in g if part is not None] and None,
    "an error": lambda t, g: 1 // 0,
}


def _attempts(run, see):
    """What comes of each answer."""
    found = {}
    for name, answer in ANSWERS.items():
        see(name)()
        try:
            found[name] = shown(run(answer))
        except Exception as error:
            found[name] = type(error).__name__, str(error).split("\n")[0]
    return found


def _module_runs(t, see, register, forward, which, constants=()):
    def run(answer):
        x, y = t.ones(3, requires_grad=True), t.ones(3, requires_grad=True)
        made = module(t, forward)
        getattr(made, register)(see("hook", lambda module, *grads: answer(t, grads[0])))
        out = made(x, y, *constants)
        kept = [out] if hasattr(out, "sum") else [out[place] for place in which]
        sum((part * 2).sum() for part in kept).backward()
        return x.grad, y.grad

    return _attempts(run, see)


def of_full_hooks(t, see):
    return _module_runs(t, see, "register_full_backward_hook", lambda x, y: x * y, (0,))


def of_full_hooks_with_constants(t, see):
    return _module_runs(
        t, see, "register_full_backward_hook", lambda x, *rest: x * 2, (0,), (3, t.ones(2))
    )


def of_pre_hooks(t, see):
    return _module_runs(t, see, "register_full_backward_pre_hook", lambda x, y: x * y, (0,))


def of_pre_hooks_with_two_outputs(t, see):
    return _module_runs(
        t, see, "register_full_backward_pre_hook", lambda x, y: (x * 2, y * x), (0, 1)
    )


def of_pre_hooks_with_one_of_two(t, see):
    return _module_runs(t, see, "register_full_backward_pre_hook", lambda x, y: (x * 2, y), (1,))


def of_older_hooks(t, see):
    return _module_runs(t, see, "register_backward_hook", lambda x, y: x * y, (0,))


def of_full_hooks_without_inputs(t, see):
    def run(answer):
        w = t.ones(3, requires_grad=True)
        made = module(t, lambda: w * 2)
        made.register_full_backward_hook(see("hook", lambda module, *grads: answer(t, grads[1])))
        made().sum().backward()
        return w.grad

    return _attempts(run, see)


def each_hook_sees_what_the_last_returned(t, see):
    x = t.ones(3, requires_grad=True)
    made = module(t, lambda x: x * 2)
    for factor in (2, 3):
        made.register_full_backward_hook(
            see(f"full {factor}", lambda m, gi, go, f=factor: (gi[0] * f,))
        )
        made.register_full_backward_pre_hook(
            see(f"pre {factor}", lambda m, go, f=factor: (go[0] * f,))
        )
    made(x).sum().backward()
    return x.grad


def _named(t, kind):
    def given(grads, outputs=None):
        return (t.ones(5),) * len(grads)

    if kind == "function":
        return given
    if kind == "partial":
        return functools.partial(given)

    class Callable:
        def __call__(self, grads, outputs=None):
            return given(grads)

    return Callable()


def _node_runs(t, see, register):
    def run(answer):
        x, y = t.ones(3, requires_grad=True), t.ones(3, requires_grad=True)
        z = x * y
        getattr(z.grad_fn, register)(see("hook", lambda *grads: answer(t, grads[0])))
        z.sum().backward()
        return x.grad, y.grad

    return _attempts(run, see)


def of_hooks_of_nodes(t, see):
    return _node_runs(t, see, "register_hook")


def of_pre_hooks_of_nodes(t, see):
    return _node_runs(t, see, "register_prehook")


def of_hooks_of_nodes_that_are_leaves(t, see):
    def run(answer):
        x = t.ones(3, requires_grad=True)
        z = x * 2
        node = z.grad_fn.next_functions[0][0]
        node.register_prehook(see("pre", lambda grads: answer(t, grads)))
        node.register_hook(see("post", lambda none, grads: answer(t, none)))
        z.sum().backward()
        return x.grad

    return _attempts(run, see)


def of_hooks_of_tensors(t, see):
    found = []
    for of_leaf in (True, False):

        def run(answer, of_leaf=of_leaf):
            x = t.ones(3, requires_grad=True)
            z = x * 2
            (x if of_leaf else z).register_hook(see("hook", lambda grad: _single(t, answer, grad)))
            z.sum().backward()
            return x.grad

        found.append(_attempts(run, see))
    return found


def _single(t, answer, grad):
    found = answer(t, (grad,))
    return found[0] if isinstance(found, tuple) and found else found


def of_hooks_after_accumulation(t, see):
    found = []
    for answer in (
        lambda p: None,
        lambda p: p,
        lambda p: p * 2,
        lambda p: p.grad,
        lambda p: t.ones(5),
        lambda p: 3,
        lambda p: (p,),
    ):
        x = t.ones(3, requires_grad=True)
        x.register_post_accumulate_grad_hook(see("first", answer))
        x.register_post_accumulate_grad_hook(see("second"))
        try:
            (x * 2).sum().backward()
            found.append(x.grad)
        except Exception as error:
            found.append((type(error).__name__, str(error)))
    return found


def names_of_hooks_in_errors(t, see):
    found = []
    for kind in ("function", "partial", "object"):
        for register in ("register_hook", "register_prehook"):
            x = t.ones(3, requires_grad=True)
            z = x * 2
            getattr(z.grad_fn, register)(_named(t, kind))
            try:
                z.sum().backward()
            except RuntimeError as error:
                found.append(str(error))
    return found


def a_node_that_is_left_without_gradients(t, see):
    x = t.ones(3, requires_grad=True)
    inner = x.exp()
    inner.grad_fn.register_hook(see("exp"))
    z = inner * 2
    z.grad_fn.register_prehook(lambda grads: (None,))
    z.grad_fn.register_hook(see("mul"))
    z.sum().backward(retain_graph=True)
    first = x.grad
    with t.no_grad():
        inner.add_(1)
    try:
        z.sum().backward()
    except RuntimeError as error:
        return first, str(error).split(":")[0]
    return first, x.grad
