"""Options of checkpoints: what each of them changes, and what they refuse.

Each function is a scenario; `t` is the library.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
from typing import Any

from conformance.side_by_side import attempt


def _module(t: Any) -> Any:
    return importlib.import_module(f"{t.__name__}.utils.checkpoint")


def _leaf(t: Any) -> Any:
    return t.linspace(0.1, 1, 4).requires_grad_()


def _said(function: Any, *args: Any, **kwargs: Any) -> Any:
    """What a call returns, or its error without the tip at the end."""
    found = attempt(function, *args, **kwargs)
    return [found.kind, found.text.partition("\n.")[0].partition("\n\n")[0]] if hasattr(
        found, "kind") else found  # fmt: skip


def _runs(t: Any, first: Any, second: Any, **options: Any) -> Any:
    """The gradient of a function that runs otherwise the second time, or the error."""
    runs = []

    def function(x: Any) -> Any:
        runs.append(1)
        return (first if len(runs) == 1 else second)(x)

    def both() -> Any:
        x = _leaf(t)
        _module(t).checkpoint(function, x, use_reentrant=False, **options).sum().backward()
        return x.grad

    return _said(both)


def _without_pytest() -> None:
    """Handlers that cannot format what PyTorch logs for itself: pytest's, and older ones."""
    logger = logging.getLogger("LoggingTensor")
    logger.propagate = False
    logger.handlers.clear()


PAIRS = {
    "same": (lambda x: x.sin().exp().cos(),) * 2,
    "others of that shape": (lambda x: x.sin(), lambda x: (x * 1).cos().view(4).cos()),
    "another shape": (lambda x: x.exp(), lambda x: x[:2].exp()),
    "two other shapes": (lambda x: x.sin().exp() * x, lambda x: x[:2].sin().exp() * x[:2]),
    "another type": (lambda x: x.exp(), lambda x: x.double().exp()),
    "more": (lambda x: x.sin(), lambda x: x.sin().exp().cos()),
    "fewer": (lambda x: x.sin().exp().cos(), lambda x: x.sin()),
}


def what_determinism_check_compares(t):
    return {
        (name, check, stop): _runs(t, *pair, determinism_check=check, early_stop=stop)
        for name, pair in PAIRS.items()
        for check in ("default", "none")
        for stop in (True, False)
        # with another shape and no check, PyTorch and flambeau fail or broadcast by formula
        if check == "default" or name in ("same", "others of that shape", "fewer")
    }


def an_unknown_determinism_check(t):
    return [
        _said(_module(t).checkpoint, t.exp, _leaf(t), use_reentrant=kind, determinism_check="foo")
        for kind in (False, True)
    ]


def debug_says_more(t):
    """The words of an error with each setting; of logs, their first lines."""
    _without_pytest()
    found, module = {}, _module(t)
    for name, pair in PAIRS.items():
        for setting in (True, False, None):
            for debug in (True, False):
                with module.set_checkpoint_debug_enabled(setting):
                    said = _runs(t, *pair, debug=debug)
                found[name, setting, debug] = said
                if isinstance(said, list) and said[1].startswith(" An error"):
                    found[name, setting, debug] = said[1].split("\n")[:2]
    return found


def the_log_names_the_operators_and_the_program(t):
    _without_pytest()
    text = ""
    try:
        _module(t).checkpoint(
            lambda x, n=[]: x.sin().exp() if not n and not n.append(1) else x.cos(),  # noqa: B006
            _leaf(t), use_reentrant=False, debug=True,
        ).sum().backward()  # fmt: skip
    except RuntimeError as error:
        text = str(error)
    return [part in text for part in ("sin", "exp", "cos", "tan", "checkpoint_options.py")]


def contexts_around_both_runs(t):
    log = []

    class Around:
        def __init__(self, name):
            self.name = name

        def __enter__(self):
            log.append(("in", self.name))

        def __exit__(self, kind, *rest):
            log.append(("out", self.name, kind and kind.__name__))

    def contexts():
        log.append("made")
        return Around(1), Around(2)

    for stop in (True, False):
        x = _leaf(t)
        y = _module(t).checkpoint(
            lambda x: (log.append("run"), x.exp().sin() + 1)[1], x,
            use_reentrant=False, context_fn=contexts, early_stop=stop,
        ).sum()  # fmt: skip
        y.backward(retain_graph=True)
        y.backward()
        log.append(x.grad)
    return log


def what_is_refused(t):
    module, x = _module(t), _leaf(t)

    def nothing():
        return contextlib.nullcontext(), contextlib.nullcontext()

    def refused(**options):
        return _said(module.checkpoint, lambda x: x.exp(), x, **options)

    return [
        refused(use_reentrant=True, context_fn=nothing),
        refused(use_reentrant=True, debug=True),
        refused(use_reentrant=True, k=1, z=2),
        refused(use_reentrant=False, context_fn=nothing, debug=True),
        refused(use_reentrant=False, context_fn=lambda: 1),
        refused(use_reentrant=False, k=1)[0],
        refused(),
        _said(module.checkpoint_sequential, [t.exp], 1, x, use_reentrant=False, foo=2),
        _said(module.checkpoint_sequential, [t.exp], 1, x, use_reentrant=True, early_stop=False),
        _said(module.checkpoint_sequential, [t.exp, t.sin], 0, x, use_reentrant=False),
        _said(module.checkpoint_sequential, [t.exp, t.sin], 3, x, use_reentrant=False),
    ]


def random_numbers_with_and_without_preserving(t):
    found = []
    for keeps in (True, False):
        for kind in (True, False):
            t.manual_seed(0)
            x = _leaf(t)
            y = _module(t).checkpoint(lambda x: x * t.rand(4), x, use_reentrant=kind,
                                      preserve_rng_state=keeps)  # fmt: skip
            y.sum().backward()
            found.append((x.grad, t.rand(1)))
    return found


def random_numbers_of_sequences(t):
    nn, found = t.nn, []
    for keeps in (True, False):
        for segments in (1, 2, 3):
            t.manual_seed(0)
            parts, x = [nn.Dropout(0.5) for _ in range(4)], _leaf(t)
            made = _module(t).checkpoint_sequential(
                nn.Sequential(*parts), segments, x, use_reentrant=False, preserve_rng_state=keeps
            )
            made.sum().backward()
            found.append((x.grad, t.rand(1)))
    return found


def autocast_as_in_the_first_run(t):
    seen = []

    def function(x):
        seen.append([t.is_autocast_enabled("cpu"), str(t.get_autocast_dtype("cpu")),
                     t.is_autocast_cache_enabled()])  # fmt: skip
        return x @ x

    for kind in (True, False):
        for caches in (True, False):
            x = t.ones(3, 3, requires_grad=True)
            with t.autocast("cpu", dtype=t.bfloat16, cache_enabled=caches):
                y = _module(t).checkpoint(function, x, use_reentrant=kind)
            y.float().sum().backward()
            seen.append(x.grad)
    return seen


def hooks_on_saved_tensors_inside_and_outside(t):
    found = []
    for outside in (True, False):
        log = []

        def hooks(log=log):
            def pack(x):
                log.append("pack")
                return x * 1

            def unpack(x):
                log.append("unpack")
                return x

            return t.autograd.graph.saved_tensors_hooks(pack, unpack)

        def function(x, hooks=hooks if not outside else contextlib.nullcontext):
            with hooks():
                y = x.sin()
            return y.exp()

        start = _leaf(t)
        with hooks() if outside else contextlib.nullcontext():
            y = _module(t).checkpoint(function, start, use_reentrant=False).sum()
        y.backward()
        found += [log, start.grad]
    return found


def groups_of_backward_passes_compute_once(t):
    module, found = _module(t), []
    for group in (module.GraphExecGroup, contextlib.nullcontext):
        runs, x = [], _leaf(t)
        a, b = module.checkpoint(
            lambda x, runs=runs: (runs.append(1), x.exp(), x.sin())[1:], x, use_reentrant=False
        )
        with group():
            a.sum().backward()
            b.sum().backward()
        found += [runs, x.grad]
    return found


def groups_take_each_tensor_once_and_do_not_nest(t):
    module, x = _module(t), _leaf(t)
    y = module.checkpoint(lambda x: x.exp(), x, use_reentrant=False).sum()

    def twice():
        with module.GraphExecGroup():
            y.backward(retain_graph=True)
            y.backward(retain_graph=True)

    def nested():
        with module.GraphExecGroup(), module.GraphExecGroup():
            pass

    first, second = _said(twice), _said(nested)
    y.backward()
    return first, second[0], second[1].partition(" <")[0], x.grad


def random_states_of_devices(t):
    module = _module(t)
    kinds = module.DefaultDeviceType
    before = kinds.get_device_type()
    found = [before, module.get_device_states(t.ones(2), 3, [t.ones(2)])]
    found.append(module.set_device_states([], []))
    try:
        kinds.set_device_type("cuda")
        found.append(kinds.get_device_type())
        kinds.set_device_type("elsewhere")
        found.append(_said(module.checkpoint, t.exp, _leaf(t), use_reentrant=False))
    finally:
        kinds.set_device_type(before)
    return found


def helpers(t):
    module, x = _module(t), _leaf(t)
    leaf, number, constant = module.detach_variable((x * 2, 3, t.ones(2)))
    module.check_backward_validity([x])
    module.check_backward_validity([t.ones(1), 3])
    return [
        leaf, leaf.requires_grad, leaf.is_leaf, number, constant.requires_grad,
        _said(module.detach_variable, [x]),
        _said(module.detach_variable, x),
    ]  # fmt: skip
