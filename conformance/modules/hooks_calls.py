"""Calls of modules with hooks: which are called, in what order; handles, copies, files."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref

from .hooks_modules import module

TABLES = (
    "_forward_hooks", "_forward_hooks_with_kwargs", "_forward_hooks_always_called",
    "_forward_pre_hooks", "_forward_pre_hooks_with_kwargs", "_backward_hooks",
    "_backward_pre_hooks",
)  # fmt: skip


def _sizes(made):
    return [len(getattr(made, name)) for name in TABLES]


def removed_without_a_trace(t, see):
    made = module(t, lambda x, **rest: x)
    handles = [
        made.register_forward_hook(see("1"), with_kwargs=True, always_call=True),
        made.register_forward_hook(see("2"), always_call=True),
        made.register_forward_pre_hook(see("3"), with_kwargs=True),
        made.register_full_backward_hook(see("4")),
        made.register_full_backward_pre_hook(see("5")),
    ]
    found = [_sizes(made)]
    for handle in handles:
        handle.remove()
        handle.remove()
        found.append(_sizes(made))
    made(t.ones(1), k=1)
    return found


def removed_by_a_with_block(t, see):
    made = module(t, lambda x: x)
    with made.register_forward_hook(see("hook"), always_call=True):
        made(t.ones(1))
    made(t.ones(1))
    return _sizes(made)


def handles_hold_nothing(t, see):
    made = module(t, lambda x: x)
    handle = made.register_forward_hook(see("hook"), with_kwargs=True)
    table = handle.hooks_dict_ref()
    same = table is made._forward_hooks
    del table
    alive = weakref.ref(made)
    del made
    gc.collect()
    handle.remove()
    return same, alive() is None, handle.hooks_dict_ref() is None


def modules_are_not_kept_by_their_hooks(t, see):
    found = []
    gc.collect()
    gc.disable()
    try:
        for register in ("register_load_state_dict_pre_hook", "register_forward_hook"):
            made = t.nn.Linear(1, 1)
            getattr(made, register)(see("hook"))
            alive = weakref.ref(made)
            del made
            found.append(alive() is None)
    finally:
        gc.enable()
    return found


def copies_of_modules_and_handles(t, see):
    made = module(t, lambda x, **rest: x * 2)
    handle = made.register_forward_hook(_double, with_kwargs=True)
    made.register_full_backward_hook(_triple)
    other, copied = copy.deepcopy((made, handle))
    x = t.ones(2, requires_grad=True)
    other(x).sum().backward()
    copied.remove()
    return x.grad, other(x), made(x), _sizes(other), _sizes(made), copied.id == handle.id


def files_of_modules_and_handles(t, see):
    made = t.nn.Linear(1, 1)
    made.weight.data.fill_(2.0)
    made.bias.data.zero_()
    handle = made.register_forward_hook(_double, with_kwargs=True)
    made.register_full_backward_hook(_triple)
    made.register_load_state_dict_pre_hook(_told)
    other, copied = pickle.loads(pickle.dumps((made, handle)))
    del made
    x = t.ones(1, requires_grad=True)
    out = other(x)
    out.sum().backward()
    copied.remove()
    hook = next(iter(other._load_state_dict_pre_hooks.values()))
    return out, x.grad, other(x), _sizes(other), hook.module() is other, hook.__getstate__().keys()


def _double(made, args, options, out):
    return out * 2


def _triple(made, grad_input, grad_output):
    return (grad_input[0] * 3,)


def _told(made, *rest):
    rest[0]["bias"] = rest[0]["weight"][0]


def wrapped_hooks(t, see):
    kind = t.nn.modules.module._WrappedHook
    made = t.nn.ReLU()
    plain, bound = kind(_double), kind(see("hook"), made)
    found = [plain(1, 2, 3, 4), plain.__name__, bound(1), plain.with_module, bound.with_module]
    del made
    gc.collect()
    again = pickle.loads(pickle.dumps(kind(_double)))
    for attempt in (lambda: bound(1), lambda: again(1, 2, 3, 4)):
        try:
            found.append(attempt())
        except RuntimeError as error:
            found.append(str(error))
    return found


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
