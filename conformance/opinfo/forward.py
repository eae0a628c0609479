"""Forward mode: tangents of operators beside torch's, every differentiable input a dual tensor."""

import compare
import orders
import torch
from torch.testing._comparison import default_tolerances

CATEGORIES = ("tangents", "inplace tangents")


class Side:
    """One library: what an operator gives, and its derivative along the directions."""

    def __init__(self, program, directions):
        bridge, self.error = program.bridge, None
        self.outputs, self.tangents = (), ()
        self.fetch = bridge.fetch
        forward = bridge.get("autograd.forward_ad")
        forward.enter_dual_level()
        try:
            sent = [bridge.send(direction) for direction in directions]
            pairs = zip(program.inputs, sent, strict=True)
            self.outputs = program(*[forward.make_dual(x, t) for x, t in pairs])
            self.tangents = [forward.unpack_dual(output).tangent for output in self.outputs]
        except Exception as error:
            self.error = error
        finally:
            forward.exit_dual_level()


def check(judge, programs, with_values):
    """Compare the tangents; torch's own may be missing where it has no formula."""
    want, got = programs
    source = torch.Generator().manual_seed(0)
    directions = [torch.randn(x.shape, dtype=x.dtype, generator=source) for x in want.inputs]
    here, there = Side(got, directions), Side(want, directions)
    counters = {"values not compared": not with_values}
    if there.error:
        return counters | {"torch raises": True}
    if here.error:
        raise AssertionError(f"tangents: {here.error!r}") from here.error
    compare.check_structure(judge.impl, there.outputs, here.outputs)
    size = max([1, *map(orders.largest, there.tangents)])
    for i, (w, g) in enumerate(zip(there.tangents, here.tangents, strict=True)):
        check_one(judge, w, g, there.outputs[i], here, size if with_values else None, i)
    return counters


def check_one(judge, want, got, output, side, size, i):
    where = f"tangent {i}"
    if want is None or got is None:
        left = want if got is None else side.fetch(got)
        nothing = left is None or not left.any()
        compare.expect(nothing, f"{where}: {orders.kind(got)} instead of {orders.kind(want)}")
        return
    fetched = side.fetch(got)
    compare.expect(fetched.shape == want.shape, f"{where}: {fetched.shape} for {want.shape}")
    compare.expect(fetched.dtype == output.dtype, f"{where}: dtype {fetched.dtype}")
    if size is not None:
        tolerance = max(judge.grad_tolerance, orders.SLACK * default_tolerances(want)[0])
        known = ~want.isnan()
        want, fetched = want.detach()[known], fetched[known]
        compare.check_close(want, fetched, tolerance, tolerance * size, where)
