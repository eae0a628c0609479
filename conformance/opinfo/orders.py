"""Gradients of gradients: orders 1 to 3 beside torch's, and `gradgradcheck` by finite differences."""

import compare
import torch

HIGHEST = 3
CATEGORIES = ("gradgrad", "inplace grad", "gradgradcheck", "inplace gradgradcheck")
CHECK_SAMPLES = 3  # per operator and dtype, of those with so many differentiable elements at most
CHECK_ELEMENTS = 30


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


def processed(bridge, call, sample, own):
    """The output without its freedoms, such as the phase of a singular vector, as the side itself computes it."""
    if own:
        return bridge.transplant(own)(call.args, call.kwargs, call.out)
    return bridge.send_callable(sample.output_process_fn_grad)(call.out)


# ---- vector-Jacobian products of orders 1 to 3


class Side:
    """One library on its way up: what it differentiates now, with respect to what."""

    def __init__(self, bridge, outputs, inputs):
        self.bridge, self.outputs, self.inputs = bridge, outputs, inputs
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
        self.outputs = differentiable([g for g in self.grads if g is not None])


def check_orders(judge, want, got, with_values):
    """Climb with both sides, as far as torch goes, and compare at every order."""
    source = torch.Generator().manual_seed(0)
    for order in range(1, HIGHEST + 1):
        compare.check_structure(judge.impl, want.outputs, got.outputs)
        if not want.outputs or not want.inputs:
            return
        cotangents = [
            torch.randn(x.shape, dtype=x.dtype, generator=source).requires_grad_()
            for x in want.outputs
        ]
        want.climb(cotangents)
        got.climb(cotangents)
        if want.error:
            check_refused(order, want.error, got.error)
            return
        if got.error:
            raise AssertionError(f"order {order}: {got.error!r}") from got.error
        for i, pair in enumerate(zip(want.grads, got.grads, strict=True)):
            check_gradient(judge, *pair, with_values, f"order {order}, gradient {i}")


def check_refused(order, expected, error):
    refused = isinstance(error, (RuntimeError, NotImplementedError))
    compare.expect(refused, f"order {order}: {error!r}, but torch raises: {expected!r}")


def check_gradient(judge, want, got, with_values, where):
    if want is None or got is None:
        compare.expect(want is got, f"{where}: {kind(got)} instead of {kind(want)}")
        return
    facts = "shape", "dtype", "requires_grad"
    fetched = judge.impl.fetch(got).requires_grad_(bool(got.requires_grad))
    for fact in facts:
        have, need = getattr(fetched, fact), getattr(want, fact)
        compare.expect(have == need, f"{where}: {fact} {have} instead of {need}")
    if with_values:
        compare.check_close(want, fetched, *tolerance(judge, want), where)


def kind(gradient):
    return "None" if gradient is None else "a tensor"


def tolerance(judge, want):
    """Relative, and absolute by the largest of the tensor: what cancels leaves roundings of what was summed."""
    finite = want.detach().abs()
    finite = finite[finite.isfinite()]
    largest = finite.max().item() if finite.numel() else 0
    return judge.grad_tolerance, judge.grad_tolerance * max(1, largest)


# ---- finite differences


def substitute(tree, twins):
    """The tree of arguments with other tensors in their places."""
    if isinstance(tree, dict):
        return {k: substitute(v, twins) for k, v in tree.items()}
    if isinstance(tree, (list, tuple)):
        items = [substitute(v, twins) for v in tree]
        return type(tree)(*items) if hasattr(tree, "_fields") else type(tree)(items)
    return twins.get(id(tree), tree)


def second_order_holds(bridge, function, call, sample, own):
    """`gradgradcheck` of one side's own; None or what it raises."""
    inputs = call.differentiable()

    def run(*given):
        twins = {id(x): y for x, y in zip(inputs, given)}
        bridge.seed(0)
        call.out = function(*substitute(call.args, twins), **substitute(call.kwargs, twins))
        return tuple(differentiable(processed(bridge, call, sample, own)))

    try:
        bridge.get("autograd.gradgradcheck")(run, tuple(inputs))
    except Exception as error:
        return error
    return None


def check_second_order(sides, sample, own):
    """Ours must hold wherever torch's does."""
    for bridge, function, call in sides:
        error = second_order_holds(bridge, function, call, sample, own)
        if error and bridge.impl is torch:
            raise compare.Void("torch's own gradgradcheck does not hold here")
        if error:
            raise error
