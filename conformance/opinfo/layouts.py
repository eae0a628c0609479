"""Tensors without memory: the shape, strides and type of results on the device "meta", beside those
on the CPU.

Both run on the implementation. Where it refuses, torch is asked whether it would refuse, too.
"""

import compare
import orders

CATEGORY = "layouts"


class Function:
    """An operator on a sample, as it is or with its tensors on the device "meta"."""

    def __init__(self, bridge, function, call):
        self.bridge, self.function, self.call = bridge, function, call
        self.Tensor = bridge.get("Tensor")

    def __call__(self, device):
        moved = {id(x): x.detach().to(device) for x in self.call.tensors()}
        args, kwargs = (
            orders.substitute(tree, moved) for tree in (self.call.args, self.call.kwargs)
        )
        if kwargs.get("device") is not None or "device" in kwargs:
            kwargs = {**kwargs, "device": device}
        self.bridge.seed(0)
        return compare.flatten([self.function(*args, **kwargs)])


def check(bridges, functions, calls):
    reference, impl = (Function(b, f, c) for b, f, c in zip(bridges, functions, calls, strict=True))
    if not calls[1].tensors():
        return {"no tensors": True}
    try:
        want = impl("cpu")
    except Exception:
        return {"torch raises": True}
    try:
        got = impl("meta")
    except Exception as error:
        try:
            reference("meta")
        except Exception:
            return {"torch raises": True}
        raise AssertionError(f"on meta: {error!r}") from error
    compare.expect(len(want) == len(got), f"{len(got)} results instead of {len(want)}")
    for i, (w, g) in enumerate(zip(want, got, strict=True)):
        if not isinstance(w, impl.Tensor):
            continue
        compare.expect(isinstance(g, impl.Tensor), f"result {i} is {type(g)}")
        compare.expect(g.device.type == "meta", f"result {i} is on {g.device}")
        for name in ("shape", "dtype"):
            pair = getattr(w, name), getattr(g, name)
            compare.expect(pair[0] == pair[1], f"result {i}: {name} {pair[1]} instead of {pair[0]}")
        compare.expect(same_strides(w, g), f"result {i}: {g.stride()} instead of {w.stride()}")
    return {}


def same_strides(want, got):
    """Strides where they matter: of dims of more than one element, of tensors with elements."""
    if not want.numel():
        return True
    return all(
        n == 1 or a == b for n, a, b in zip(want.shape, want.stride(), got.stride(), strict=True)
    )
