"""Gradients of gradients: orders 1 to 3 beside torch's, and `gradgradcheck` by finite differences."""

import math

import compare
import torch
from torch.testing._comparison import default_tolerances

HIGHEST = 3
CATEGORIES = ("gradgrad", "inplace grad", "gradgradcheck", "inplace gradgradcheck")
CHECK_SAMPLES = 3  # per operator and dtype, of those with so many differentiable elements at most
CHECK_ELEMENTS = 30
SLACK = 10  # times the tolerance of a type, where an input has a narrower one than the sample
STEP = 1e-5
STEP_TOLERANCE = 1e-4  # of a central difference with that step


def elements(sample):
    """How many differentiable elements a sample has."""
    leaves = compare.flatten([sample.input, sample.args, sample.kwargs])
    return sum(x.numel() for x in leaves if isinstance(x, torch.Tensor) and x.requires_grad)


def small(samples):
    """Those that finite differences can afford: the small ones, or else the smallest."""
    samples = sorted(samples, key=elements)
    return [s for s in samples if 0 < elements(s) <= CHECK_ELEMENTS] or samples[:1]


def differentiable(tree):
    return [x for x in compare.flatten(tree) if getattr(x, "requires_grad", False)]


def substitute(tree, twins):
    """The tree of arguments with other tensors in their places."""
    if isinstance(tree, dict):
        return {k: substitute(v, twins) for k, v in tree.items()}
    if isinstance(tree, (list, tuple)):
        items = [substitute(v, twins) for v in tree]
        return type(tree)(*items) if hasattr(tree, "_fields") else type(tree)(items)
    return twins.get(id(tree), tree)


class Program:
    """An operator on one side, as a function of a sample's differentiable inputs."""

    def __init__(self, bridge, function, call, sample, own):
        self.bridge, self.function, self.call = bridge, function, call
        self.own, self.process = own, sample.output_process_fn_grad
        self.inputs = call.differentiable()

    def __call__(self, *given):
        """Differentiable outputs without their freedoms, such as the phase of a singular vector."""
        twins = {id(x): y for x, y in zip(self.inputs, given)}
        args, kwargs = substitute(self.call.args, twins), substitute(self.call.kwargs, twins)
        self.bridge.seed(0)
        return tuple(differentiable(self.processed(args, kwargs, self.function(*args, **kwargs))))

    def processed(self, args, kwargs, out):
        """The side itself computes this too."""
        if self.own:
            return self.bridge.transplant(self.own)(args, kwargs, out)
        return self.bridge.send_callable(self.process)(out)


# ---- vector-Jacobian products of orders 1 to 3


class Side:
    """One library on its way up: what it differentiates now, with respect to what."""

    def __init__(self, program, inputs=None):
        self.program, self.bridge = program, program.bridge
        self.inputs = list(program.inputs if inputs is None else inputs)
        self.outputs = program(*self.inputs)
        self.grads = self.error = None

    def climb(self, cotangents):
        """One order more. The cotangents become inputs of the next."""
        sent = [self.bridge.send(c) for c in cotangents]
        grad = self.bridge.get("autograd.grad")
        try:
            self.grads = grad(
                self.outputs, self.inputs, sent, create_graph=True, allow_unused=True
            )
        except Exception as error:
            self.error = error
            return
        self.inputs = self.inputs + sent
        self.outputs = differentiable([g for g in self.grads if holds_numbers(g)])


def check_orders(judge, want, got, with_values):
    """Climb with both sides, as far as torch goes, and compare at every order."""
    source = torch.Generator().manual_seed(0)
    path = []
    for order in range(1, HIGHEST + 1):
        compare.check_structure(judge.impl, want.outputs, got.outputs)
        if not want.outputs or not want.inputs:
            return {}
        path.append([
            torch.randn(x.shape, dtype=x.dtype, generator=source).requires_grad_()
            for x in want.outputs
        ])
        want.climb(path[-1])
        got.climb(path[-1])
        if want.error and got.error:
            return {"torch raises": True}
        if got.error:
            raise AssertionError(f"order {order}: {got.error!r}") from got.error
        try:
            check_gradients(judge, want, got, with_values, f"order {order}")
        except AssertionError:
            if not (with_values and finite_differences_confirm(judge, want, got, path)):
                raise
            return {"beyond torch" if want.error else "torch is wrong": True}
    return {}


def check_gradients(judge, want, got, with_values, where):
    compare.expect(not want.error, f"{where}: no exception, but torch raises: {want.error!r}")
    size = max([1, *map(largest, want.grads)])
    for i, (w, g) in enumerate(zip(want.grads, got.grads, strict=True)):
        here = f"{where}, gradient {i}"
        if not (holds_numbers(w) or holds_numbers(g)):
            continue
        if w is None or g is None:
            compare.expect(w is g, f"{here}: {kind(g)} instead of {kind(w)}")
            continue
        fetched = judge.impl.fetch(g).requires_grad_(bool(g.requires_grad))
        for fact in ("shape", "dtype", "requires_grad"):
            have, need = getattr(fetched, fact), getattr(w, fact)
            compare.expect(have == need, f"{here}: {fact} {have} instead of {need}")
        if with_values:
            tolerance = max(judge.grad_tolerance, SLACK * default_tolerances(w)[0])
            compare.check_close(w, fetched, tolerance, tolerance * size, here)


def holds_numbers(gradient):
    """What has no elements is neither compared nor differentiated further."""
    return gradient is not None and gradient.numel() > 0


def kind(gradient):
    return "None" if gradient is None else "a tensor"


def largest(gradient):
    """The largest finite number: where terms cancel, what is left are roundings of such."""
    if not holds_numbers(gradient):
        return 0
    sizes = gradient.detach().abs()
    return sizes.where(sizes.isfinite(), 0).max().item()


# ---- finite differences


def finite_differences_confirm(judge, want, got, path):
    """Whether torch's next lower order, which agreed, changes as our gradients say and not as torch's do.

    For each input in which they differ, along one random direction.
    """
    *lower, cotangents = path
    starts = [x.detach() for x in [*want.program.inputs, *flatten_path(lower)]]
    theirs = want.grads if not want.error else [None] * len(starts)
    ours = [None if g is None else judge.impl.fetch(g) for g in got.grads]
    found = False
    for i, pair in enumerate(zip(theirs, ours, strict=True)):
        direction = torch.randn(starts[i].shape, dtype=starts[i].dtype)
        w, g = (0.0 if x is None else along(x, direction) for x in pair)
        true = slope(want.program, starts, i, direction, lower, cotangents)
        if want.error:
            w = math.inf
        size = max(1, abs(true), *(abs(x) for x in (w, g) if math.isfinite(x)))
        if not abs(g - true) <= STEP_TOLERANCE * size:
            return False
        found = found or not abs(w - true) <= 100 * max(abs(g - true), judge.grad_tolerance * size)
    return found


def along(gradient, direction):
    return (gradient.detach() * direction.conj()).sum().real.item()


def slope(program, starts, position, direction, lower, cotangents):
    """The central difference of the order below, contracted, along a direction of one input."""
    ends = []
    for step in (STEP, -STEP):
        moved = list(starts)
        moved[position] = starts[position] + step * direction
        moved = [x.clone().requires_grad_() for x in moved]
        count = len(program.inputs)
        side, rest = Side(program, moved[:count]), moved[count:]
        for level in lower:
            given, rest = rest[: len(level)], rest[len(level) :]
            side.climb(given)
        ends.append(sum(along(o, c.detach()) for o, c in zip(side.outputs, cotangents)))
    return (ends[0] - ends[1]) / (2 * STEP)


def flatten_path(path):
    return [x for level in path for x in level]


def second_order_holds(program):
    """`gradgradcheck` of one side's own; None or what it raises."""
    try:
        program.bridge.get("autograd.gradgradcheck")(program, tuple(program.inputs))
    except Exception as error:
        return error
    return None


def check_second_order(theirs, ours):
    """Ours must hold wherever torch's does."""
    if second_order_holds(theirs):
        raise compare.Void("torch's own gradgradcheck does not hold here")
    error = second_order_holds(ours)
    if error:
        raise error
