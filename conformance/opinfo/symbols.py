"""Sizes that are symbols: results of an operator on fake tensors whose sizes are symbols, beside
those on fake tensors whose sizes are numbers, for the numbers of the sample and for others.

Both run on the implementation. Where guards say that other numbers would lead elsewhere, or where
the operator does not take them, nothing is compared for these. Counted are `varies`: samples of
which at least one result was compared for other numbers.
"""

import importlib

import compare
import orders

CATEGORY = "symbols"
FACTORS = (2, 3)


class Function:
    """An operator on a sample whose tensors are fake."""

    def __init__(self, bridge, function, call):
        self.bridge, self.function, self.call = bridge, function, call
        self.Tensor = bridge.get("Tensor")
        self.Mode = bridge.get("_subclasses.FakeTensorMode")
        home = f"{bridge.impl.__name__}.fx.experimental.symbolic_shapes"
        self.Env = importlib.import_module(home).ShapeEnv

    def run(self, mode, fakes):
        args, kwargs = (orders.substitute(t, fakes) for t in (self.call.args, self.call.kwargs))
        with mode:
            return compare.flatten([self.function(*args, **kwargs)])

    def symbolic(self):
        mode = self.Mode(shape_env=self.Env())
        tensors = self.call.tensors()
        fakes = {id(x): mode.from_tensor(x.detach()) for x in tensors}
        return mode.shape_env, [fakes[id(x)] for x in tensors], self.run(mode, fakes)

    def sized(self, layouts):
        """The results for tensors of the sample's types that are laid out in another way."""
        mode = self.Mode()
        torch = self.bridge
        fakes = {}
        for x, (sizes, steps, offset) in zip(self.call.tensors(), layouts, strict=True):
            count = offset + 1 + sum((n - 1) * step for n, step in zip(sizes, steps, strict=True))
            whole = torch.get("empty")(max(count, 0), dtype=x.dtype, device="meta")
            fake = mode.from_tensor(whole.as_strided(sizes, steps, offset))
            fakes[id(x)] = fake
        return self.run(mode, fakes)


def numbers(env, tensor, values):
    def number(size):
        node = getattr(size, "node", None)
        return size if node is None else evaluate(env, node._expr, values)

    return ([number(n) for n in tensor.shape], [number(n) for n in tensor.stride()],
            number(tensor.storage_offset()))  # fmt: skip


def evaluate(env, expr, values):
    from flambeau._tensor.symbolic_functions import evaluate as value

    return value(env.replace(expr), values)


def same(want, got, where):
    compare.expect(len(want) == len(got), f"{where}: {len(got)} results instead of {len(want)}")
    for i, (w, g) in enumerate(zip(want, got, strict=True)):
        compare.expect(w == g, f"{where}: result {i} {g} instead of {w}")


def plain(env, parts, values, Tensor):
    return [numbers(env, part, values) for part in parts if isinstance(part, Tensor)]


def check(bridges, functions, calls):
    impl = Function(bridges[1], functions[1], calls[1])
    tensors = calls[1].tensors()
    if not tensors:
        return {"no tensors": True}
    layouts = [(list(x.shape), list(x.stride()), x.storage_offset()) for x in tensors]
    try:
        want = impl.sized(layouts)
    except Exception:
        return {"torch raises": True}
    env, fakes, got = impl.symbolic()
    hints = dict(env.backed_var_to_val)
    if any(map(env.is_unbacked_symint, env.var_to_range)):
        return {"no tensors": True}
    where = "the sample's sizes"
    same(plain(env, want, {}, impl.Tensor), plain(env, got, hints, impl.Tensor), where)
    varied = 0
    for factor in FACTORS:
        values = {symbol: n * factor for symbol, n in hints.items()}
        others = [numbers(env, fake, values) for fake in fakes]
        known = all(evaluate(env, guard.expr, values) for guard in env.guards)
        if not known or others == layouts:
            continue
        try:
            want = impl.sized(others)
        except Exception:
            continue
        where = f"sizes {others} with {list(env.guards)}"
        same(plain(env, want, {}, impl.Tensor), plain(env, got, values, impl.Tensor), where)
        varied += 1
    return {"varies": varied > 0}
