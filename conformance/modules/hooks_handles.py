"""Handles of hooks, and what copies and files keep of them."""

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
