"""Gradients of gradients: orders 1 to 3 beside torch's, and `gradgradcheck` by finite differences."""

import math

import compare
import torch
from torch.testing._comparison import default_tolerances

HIGHEST = 3
CATEGORIES = ("gradgrad", "inplace grad", "gradgradcheck", "inplace gradgradcheck")
CHECK_SAMPLES = 3  # per operator and dtype, of those with so many differentiable elements at most
CHECK_ELEMENTS = 30
MOST_ELEMENTS = 500  # or else one sample with so many, for finite differences of everything
DOUBLE = torch.float64, torch.complex128
SLACK = 100  # times the tolerance of a type, where an input has a narrower one than the sample
STEP = 1e-5
STEP_TOLERANCE = 1e-4  # of a central difference with that step


def elements(sample):
    """How many differentiable elements a sample has."""
    leaves = compare.flatten([sample.input, sample.args, sample.kwargs])
    return sum(x.numel() for x in leaves if isinstance(x, torch.Tensor) and x.requires_grad)


def small(samples):
    """Those that finite differences can afford: the small ones, or else the smallest."""
    samples = sorted(samples, key=elements)
    fitting = [s for s in samples if 0 < elements(s) <= CHECK_ELEMENTS]
    return fitting or [s for s in samples[:1] if elements(s) <= MOST_ELEMENTS]


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

    def __init__(self, bridge, function, call, sample, own, seed=0):
        self.bridge, self.function, self.call, self.seed = bridge, function, call, seed
        self.own, self.process = own, sample.output_process_fn_grad
        self.inputs = call.differentiable()

    def __call__(self, *given):
        """Differentiable outputs without their freedoms, such as the phase of a singular vector."""
        twins = {id(x): y for x, y in zip(self.inputs, given)}
        args, kwargs = substitute(self.call.args, twins), substitute(self.call.kwargs, twins)
        self.bridge.seed(self.seed)
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
            self.grads = grad(self.outputs, self.inputs, sent, create_graph=True, allow_unused=True)
        except Exception as error:
            self.error = error
            return
        self.inputs = self.inputs + sent
        self.outputs = differentiable([g for g in self.grads if holds_numbers(g)])


class Climb:
    """Both sides on their way up, order by order, as far as torch goes."""

    def __init__(self, judge, want, got, witness=None):
        self.judge, self.want, self.got = judge, want, got
        self.witness = witness  # torch under another seed: where it differs, so may we
        self.counters = {"values not compared": False}
        self.source = torch.Generator().manual_seed(0)
        self.path = []  # the cotangents of each order

    def run(self, with_values):
        for order in range(1, HIGHEST + 1):
            if len(self.want.outputs) != len(self.got.outputs) and not full(self.want):
                break
            compare.check_structure(self.judge.impl, self.want.outputs, self.got.outputs)
            if not self.want.outputs or not self.want.inputs:
                break
            self.step()
            with_values = with_values and self.reproducible()
            if self.want.error and self.got.error:
                self.counters["torch raises"] = True
                break
            if self.got.error:
                raise AssertionError(f"order {order}: {self.got.error!r}") from self.got.error
            if not self.agrees(f"order {order}", with_values):
                break
        self.counters["values not compared"] = not with_values
        return self.counters

    def step(self):
        cotangents = [
            torch.randn(x.shape, dtype=x.dtype, generator=self.source).requires_grad_()
            for x in self.want.outputs
        ]
        self.path.append(cotangents)
        for side in (self.want, self.got, self.witness):
            if side:
                side.climb(cotangents)

    def reproducible(self):
        """Whether torch gives the same under another seed."""
        if not self.witness or self.want.error:
            return True
        try:
            check_gradients(self.judge, self.want, self.witness, True, "torch")
        except AssertionError:
            return False
        return True

    def agrees(self, where, with_values):
        """Compare; False where there is no going on."""
        try:
            check_gradients(self.judge, self.want, self.got, with_values, where)
        except AssertionError:
            if not (with_values and finite_differences_confirm(self)):
                raise
            self.counters["beyond torch" if self.want.error else "torch is wrong"] = True
            return False
        if all(g is None or g.isfinite().all() for g in self.want.grads):
            return True
        self.counters["not finite"] = True
        return False


def check_gradients(judge, want, got, with_values, where):
    compare.expect(not want.error, f"{where}: no exception, but torch raises: {want.error!r}")
    size = max([1, *map(largest, want.grads)])
    strict = full(want)
    for i, (w, g) in enumerate(zip(want.grads, got.grads, strict=True)):
        here = f"{where}, gradient {i}"
        if not (holds_numbers(w) or holds_numbers(g)):
            continue
        if w is None or g is None:
            same = w is g or not (strict or (w if g is None else got.bridge.fetch(g)).any())
            compare.expect(same, f"{here}: {kind(g)} instead of {kind(w)}")
            continue
        fetched = got.bridge.fetch(g).requires_grad_(bool(g.requires_grad))
        for fact in ("shape", "dtype", "requires_grad"):
            have, need = getattr(fetched, fact), getattr(w, fact)
            expected = have == need or (fact == "requires_grad" and not strict)
            compare.expect(expected, f"{here}: {fact} {have} instead of {need}")
        if with_values:
            tolerance = max(judge.grad_tolerance, SLACK * default_tolerances(w)[0])
            known = ~w.isnan()
            compare.check_close(w[known], fetched[known], tolerance, tolerance * size, here)


def full(side):
    """Whether no input is empty. Beside empty ones None is as good as zeros."""
    return all(x.numel() for x in side.inputs)


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


def finite_differences_confirm(climb):
    """Whether torch's order below, which agreed, changes as our gradients say and not as torch's do.

    Along one random direction for each input.
    """
    want, got, (*lower, cotangents) = climb.want, climb.got, climb.path
    starts = [x.detach() for x in [*want.program.inputs, *(x for level in lower for x in level)]]
    theirs = [None] * len(starts) if want.error else want.grads
    found = False
    for i, (w, g) in enumerate(zip(theirs, got.grads, strict=True)):
        direction = torch.randn(starts[i].shape, dtype=starts[i].dtype)
        true = slope(want.program, starts, i, direction, lower, cotangents)
        w = math.inf if want.error else along(w, direction)
        g = along(None if g is None else got.bridge.fetch(g), direction)
        size = max(1, abs(true), *(abs(x) for x in (w, g) if math.isfinite(x)))
        if not abs(g - true) <= STEP_TOLERANCE * size:
            return False
        found = found or not abs(w - true) <= 100 * max(abs(g - true), STEP_TOLERANCE**2 * size)
    return found


def along(gradient, direction):
    if gradient is None:
        return 0.0
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


def second_order_holds(program):
    """`gradgradcheck` of one side's own; None or what it raises."""

    def function(*given):
        return program(*given)

    try:
        program.bridge.get("autograd.gradgradcheck")(function, tuple(program.inputs))
    except Exception as error:
        return error
    return None


def check_second_order(theirs, ours):
    """Ours must hold wherever torch's does."""
    if any(x.dtype not in DOUBLE for x in [*theirs.inputs, *theirs(*theirs.inputs)]):
        raise compare.Void("finite differences need double precision")
    if second_order_holds(theirs):
        raise compare.Void("torch's own gradgradcheck does not hold here")
    error = second_order_holds(ours)
    if error:
        raise error
