"""Calls of modules with hooks: which are called, in what order, and what they replace."""

from __future__ import annotations

from .hooks_modules import module


def added_and_removed_while_running(t, see):
    found = []
    for kind in ("forward", "forward_pre", "full_backward", "full_backward_pre"):
        made = module(t, lambda x: x * 2)
        register = getattr(made, f"register_{kind}_hook")
        handles = []

        def change(*args, register=register, handles=handles, kind=kind):
            handles[0].remove()
            register(see(f"{kind} added"))

        handles.append(register(see(f"{kind} first", change)))
        register(see(f"{kind} second"))
        for _ in range(2):
            x = t.ones(2, requires_grad=True)
            made(x).sum().backward()
            found.append(x.grad)
    return found


def backward_hooks_added_before_the_forward(t, see):
    made = module(t, lambda x: x * 2)
    made.register_forward_pre_hook(
        lambda m, args: made.register_full_backward_hook(see("added")) and None
    )
    made.register_forward_hook(see("after"))
    x = t.ones(2, requires_grad=True)
    made(x).sum().backward()
    made(x).sum().backward()


def a_forward_that_is_replaced_by_a_hook(t, see):
    made = module(t, lambda x: x * 2)

    def replace(m, args):
        made.forward = lambda x: x * 10

    made.register_forward_pre_hook(replace)
    return made(t.ones(1)), made(t.ones(1))


def hooks_that_raise(t, see):
    found = []
    for kind in ("forward", "forward_pre", "full_backward", "full_backward_pre", "backward"):
        made = module(t, lambda x: x.exp())
        getattr(made, f"register_{kind}_hook")(see(kind, lambda *args: 1 // 0))
        made.register_forward_hook(see("always"), always_call=True)
        x = t.ones(2, requires_grad=True)
        for _ in range(2):
            try:
                made(x).sum().backward()
            except ZeroDivisionError as error:
                found.append(str(error))
        found.append(x.grad)
    return found


def always_called(t, see):
    found = []
    nowhere = {"with_kwargs": False}
    for options in (nowhere, {"with_kwargs": True}):
        for fails in (ValueError, KeyboardInterrupt):

            def forward(x, fails=fails, **rest):
                raise fails("forward")

            made = module(t, forward)
            made.register_forward_hook(see("first", lambda *args: 5), always_call=True, **options)
            made.register_forward_hook(see("no"))
            made.register_forward_hook(
                see("second", lambda *args: 1 // 0), always_call=True, **options
            )
            made.register_forward_hook(see("third"), always_call=True, **options)
            try:
                made(t.ones(1), k=2)
            except BaseException as error:
                found.append(type(error).__name__)
    return found


def always_called_on_every_module(t, see):
    hooks = t.nn.modules.module
    handles = [
        hooks.register_module_forward_hook(see("1"), always_call=True),
        hooks.register_module_forward_hook(see("2"), always_call=True, with_kwargs=True),
        hooks.register_module_forward_hook(see("3", lambda *args: 1 // 0), always_call=True),
        hooks.register_module_forward_hook(see("4"), with_kwargs=True),
    ]
    inner = module(t, lambda x: 1 // 0)
    outer = module(t, lambda x, **rest: inner(x))
    outer.register_forward_hook(see("own"), always_call=True)
    try:
        outer(t.ones(1), k=3)
    finally:
        for handle in handles:
            handle.remove()


def tables_of_every_module(t, see):
    hooks = t.nn.modules.module
    tables = ("forward_hooks", "forward_hooks_always_called", "forward_pre_hooks",
              "backward_hooks", "backward_pre_hooks")  # fmt: skip
    handles = [
        hooks.register_module_forward_hook(see("1"), always_call=True),
        hooks.register_module_forward_pre_hook(see("2")),
        hooks.register_module_full_backward_hook(see("3")),
        hooks.register_module_full_backward_pre_hook(see("4")),
    ]
    found = [[len(getattr(hooks, f"_global_{name}")) for name in tables]]
    for handle in handles:
        handle.remove()
    found.append([len(getattr(hooks, f"_global_{name}")) for name in tables])
    return found


def order_of_hooks(t, see):
    hooks = t.nn.modules.module
    made = module(t, lambda x: x * 2)
    handles = []
    for kind in ("full_backward", "full_backward_pre", "forward", "forward_pre"):
        register = getattr(made, f"register_{kind}_hook")
        register(see(f"{kind} 1"))
        register(see(f"{kind} 0"), prepend=True)
        handles.append(getattr(hooks, f"register_module_{kind}_hook")(see(f"every {kind}")))
    try:
        made(t.ones(2, requires_grad=True)).sum().backward()
    finally:
        for handle in handles:
            handle.remove()


def arguments_that_hooks_replace(t, see):
    found = []
    for answer in (3, (1, 2, 3), ((2,), {"k": 5}), [2], None, ((2,), None)):
        for with_kwargs in (False, True):
            made = module(t, lambda *args, **options: (args, options))
            made.register_forward_pre_hook(
                see("hook", lambda *args, a=answer: a), with_kwargs=with_kwargs
            )
            try:
                found.append(made(t.ones(1), k=1))
            except Exception as error:
                found.append(f"{type(error).__name__}: {error}")
    return found


def outputs_that_hooks_replace(t, see):
    found = []
    for answer in (
        lambda m, a, out: out * 2,
        lambda m, a, out: (out, out * 2),
        lambda m, a, out: {"x": out},
        lambda m, a, out: out.detach(),
        lambda m, a, out: 3,
        lambda m, a, out: False,
        lambda m, a, out: out.mul_(2) and None,
    ):
        made = module(t, lambda x: x.exp())
        made.register_forward_hook(see("after", answer))
        made.register_forward_hook(see("next"))
        made.register_full_backward_hook(see("full"))
        x = t.zeros(1, requires_grad=True)
        try:
            out = made(x)
            found.append(out)
            first = out[0] if isinstance(out, tuple) else out
            if hasattr(first, "sum") and first.requires_grad:
                first.sum().backward()
        except Exception as error:
            found.append(f"{type(error).__name__}: {error}")
    return found
