"""`vmap` over each tensor of a sample, and over all of them, beside a loop over the examples.

Both run on the implementation. Where it refuses, torch is asked whether it would refuse, too.
"""

import compare
import orders
import torch

CATEGORY = "batches"
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


class Function:
    """An operator as a function of a sample's tensors."""

    def __init__(self, bridge, function, call):
        self.bridge, self.function, self.call = bridge, function, call
        self.tensors = [x for x in call.tensors() if isinstance(x, bridge.get("Tensor"))]
        self.torch = bridge.get("stack"), bridge.get("vmap")

    def __call__(self, *given):
        twins = {id(x): y for x, y in zip(self.tensors, given)}
        args, kwargs = (
            orders.substitute(tree, twins) for tree in (self.call.args, self.call.kwargs)
        )
        self.bridge.seed(0)
        out = self.function(*args, **kwargs)
        return tuple(x for x in compare.flatten([out]) if isinstance(x, self.bridge.get("Tensor")))

    def batches(self, which):
        """The tensors, those at some places as batches of two examples."""
        stack, _ = self.torch
        return [
            stack([x.detach(), another(x.detach())]) if i in which else x
            for i, x in enumerate(self.tensors)
        ]

    def looped(self, which):
        stack, _ = self.torch
        batches = self.batches(which)
        rows = [
            self(*[x[number].clone() if i in which else x for i, x in enumerate(batches)])
            for number in range(2)
        ]
        return [stack(list(parts)) for parts in zip(*rows, strict=True)]

    def mapped(self, which):
        _, vmap = self.torch
        dims = tuple(0 if i in which else None for i in range(len(self.tensors)))
        return vmap(self, dims, randomness="same")(*self.batches(which))


def another(x):
    """A second example: numbers a little smaller, whatever else once more."""
    return x * 0.875 if x.is_floating_point() or x.is_complex() else x.clone()


def check(judge, bridges, functions, calls, with_values):
    """Each tensor alone as a batch, then all of them."""
    reference, impl = (Function(b, f, c) for b, f, c in zip(bridges, functions, calls, strict=True))
    count = len(impl.tensors)
    for which in [{i} for i in range(count)] + ([set(range(count))] if count > 1 else []):
        try:
            want = impl.looped(which)
        except Exception:  # of the second example, or of examples with results of other shapes
            continue
        try:
            got = impl.mapped(which)
        except Exception as error:
            if refuses(reference, which):
                continue
            raise AssertionError(f"vmap over {sorted(which)}: {error!r}") from error
        pair = [[impl.bridge.fetch(x) for x in side] for side in (want, got)]
        for i, (w, g) in enumerate(zip(*pair, strict=True)):
            where = f"vmap over {sorted(which)}, result {i}"
            compare.expect(w.shape == g.shape, f"{where}: {g.shape} instead of {w.shape}")
            compare.expect(w.dtype == g.dtype, f"{where}: {g.dtype} instead of {w.dtype}")
        if with_values:
            compare.check_values(*pair, judge.tolerance, f"vmap over {sorted(which)}")
    return {"values not compared": not with_values}


def refuses(reference, which):
    try:
        reference.mapped(which)
    except Exception:
        return True
    return False
