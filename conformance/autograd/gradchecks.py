"""`gradcheck`: what it finds, and in which words.

Each function is a scenario; `t` is the library.
"""

from __future__ import annotations

import warnings
from typing import Any


def _said(t: Any, function: Any, inputs: Any, **options: Any) -> Any:
    """The verdict, or the first line of the error, without the numbers of the Jacobians."""
    try:
        return t.autograd.gradcheck(function, inputs, **options)
    except (RuntimeError, AssertionError, ValueError) as error:
        return type(error).__name__, str(error).partition("\n")[0]


def _learning(t: Any, dtype: str = "float64") -> Any:
    return t.ones(2, 2, dtype=getattr(t, dtype), requires_grad=True)


def _with_hook(hook: Any) -> Any:
    def function(x: Any) -> Any:
        y = x.clone()
        y.register_hook(hook)
        return y

    return function


def is_the_function_after_its_module_is_imported(t):
    import importlib

    importlib.import_module(f"{t.__name__}.autograd.gradcheck")
    return callable(t.autograd.gradcheck), callable(t.autograd.gradgradcheck)


def wrong_gradients(t):
    wrong = _with_hook(lambda g: g * 2)
    return [
        _said(t, wrong, _learning(t, dtype), raise_exception=throws)
        for dtype in ("float64", "complex128") for throws in (True, False)
    ]  # fmt: skip


def wrong_gradients_between_real_and_complex(t):
    def to_complex(x):
        y = t.complex(x, x)
        y.register_hook(lambda g: g + 1)
        return y

    def to_real(x):
        y = t.real(x)
        y.register_hook(lambda g: g + 1)
        return y

    return _said(t, to_complex, _learning(t)), _said(t, to_real, _learning(t, "complex128"))


def not_linear_in_the_gradient(t):
    return _said(t, _with_hook(lambda g: g + 1e-2), _learning(t), atol=1e-1)


def without_gradients(t):
    def hook(grad):
        if grad is None:
            raise RuntimeError("there is none")

    function, x = _with_hook(hook), _learning(t)
    return _said(t, function, x), _said(t, function, x, check_undefined_grad=False)


def shapes_that_depend_on_values(t):
    return _said(t, lambda x: t.cat([x, x]) if bool((x >= 1).all()) else x, _learning(t))


def types_that_depend_on_values(t):
    return _said(t, lambda x: x.float() if bool((x >= 1).all()) else x, _learning(t))


def expanded_inputs(t):
    x = t.ones(1, dtype=t.float64, requires_grad=True).expand(2, 2)
    return _said(t, lambda x: x * 2, (x,), raise_exception=False)


def nothing_that_learns(t):
    return _said(t, lambda x: x * 2, (t.ones(2, dtype=t.float64),), raise_exception=False)


def other_errors_pass_through(t):
    def function(x):
        raise RuntimeError("of another kind")

    return _said(t, function, _learning(t), raise_exception=False)


def outputs_that_are_views_of_the_input(t):
    return _said(t, lambda x: (x, x.t(), x[0]), _learning(t))


def sparse_gradient_of_a_dense_input(t):
    class Sparse(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return g.to_sparse()

    return _said(t, Sparse.apply, t.ones(1, dtype=t.float64, requires_grad=True))


def the_function_runs_recorded(t):
    seen = []

    def function(x):
        seen.append(t.is_grad_enabled())
        return x * 2

    return _said(t, function, _learning(t)), all(seen)


def sparse_inputs(t):
    x = t.eye(2, dtype=t.float64)
    sparse, dense = x.to_sparse().requires_grad_(), _learning(t)
    wrong = t.eye(2, dtype=t.float64).to_sparse().requires_grad_()
    full = t.ones(2, 2, dtype=t.float64).to_sparse().requires_grad_()

    def doubled(y):
        z = y.to_dense()
        z.register_hook(lambda g: g * 2)
        return z

    return [
        _said(t, t.sum, (full,), masked=True),
        _said(t, lambda a, b: a * b.to_dense(), (dense, sparse), masked=True),
        _said(t, doubled, (wrong,), masked=True),
    ]


def inputs_that_overlap_or_are_empty(t):
    """Steps of 0 count where there is more than one element at the same place."""
    made = [t.zeros(s, dtype=t.float64) for s in ((0, 8), (2, 0, 3), (1, 4))]
    made.append(t.zeros(1, 4, dtype=t.float64).expand(2, 4))
    return [_said(t, lambda x: x * x, x.requires_grad_()) for x in made], [
        t.autograd.gradgradcheck(lambda x: x * x, (x,)) for x in made[:3]
    ]


def _of_backward(t: Any, backward: Any) -> Any:
    """x * 2, whose backward is as given."""

    class Doubled(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return None if g is None else backward(ctx, g)

    return Doubled.apply


def _zeros(t: Any) -> Any:
    return t.zeros(2, 2, dtype=t.float64)


def _written(target: Any, write: Any) -> Any:
    write(target)
    return target * 2


def batched_gradients(t):
    """What looks at the numbers of a gradient, writes it into one of its size, or draws."""
    rows = t.tensor([0, 1])
    backwards = [
        lambda c, g: g * 2,
        lambda c, g: g @ (t.eye(2, dtype=t.float64) * 2),
        lambda c, g: t.cat([g, g])[:2] * 2,
        lambda c, g: g.clone().add_(g),
        lambda c, g: g * 2 if c.saved_tensors[0].sum().item() else g,
        lambda c, g: g.clone().masked_fill_(g > 1e9, 0) * 2,
        lambda c, g: (g.sort(), g.max(), g * 2)[2],
        lambda c, g: g * 2 if g.sum().item() < 1e9 else g,
        lambda c, g: g * 2 if (g < 1e9).all() else g,
        lambda c, g: (float(g.sum()), g * 2)[1],
        lambda c, g: (int(g[0, 0]), g * 2)[1],
        lambda c, g: (g.sum().is_nonzero(), g * 2)[1],
        lambda c, g: (t.equal(g, g), g * 2)[1],
        lambda c, g: (t.allclose(g, g), g * 2)[1],
        lambda c, g: (g.data_ptr(), g * 2)[1],
        lambda c, g: t.tensor(g.tolist(), dtype=t.float64) * 2,
        lambda c, g: _written(_zeros(t), lambda r: r.add_(g)),
        lambda c, g: _written(_zeros(t) + 1, lambda r: r.mul_(g)),
        lambda c, g: _written(_zeros(t), lambda r: r.copy_(g)),
        lambda c, g: _written(_zeros(t), lambda r: r.__setitem__(slice(None), g)),
        lambda c, g: _written(_zeros(t), lambda r: r.index_add_(0, rows, g)),
        lambda c, g: _written(_zeros(t), lambda r: r.__setitem__(rows, g)),
        lambda c, g: _written(_zeros(t), lambda r: r.scatter_(0, rows[:, None].expand(2, 2), g)),
        lambda c, g: (t.rand(2), g * 2)[1],
        lambda c, g: (t.randn_like(g), g * 2)[1],
    ]
    return [
        _said(t, _of_backward(t, each), _learning(t), check_batched_grad=asked, fast_mode=fast)
        for each in backwards for asked in (True, False) for fast in (True, False)
    ]  # fmt: skip


def batched_gradients_of_hooks_and_of_operators(t):
    def looks(g):
        return g if g.max() >= -1e9 else g * 2

    def several(x):
        return x.sum(0), x.cos(), (x @ x).softmax(0), t.nn.functional.conv1d(x[None], x[:, :, None])

    return [
        _said(t, _with_hook(looks), _learning(t), check_batched_grad=True),
        _said(t, several, _learning(t), check_batched_grad=True),
        t.autograd.gradgradcheck(lambda x: x.exp() * x, _learning(t), check_batched_grad=True),
    ]


def options_that_need_others(t):
    check, again = t.autograd.gradcheck, t.autograd.gradgradcheck

    def refused(function, **options):
        try:
            return function(lambda x: x * 2, _learning(t), **options)
        except AssertionError as error:
            return str(error)

    no, yes = False, True
    return [
        refused(check, check_backward_ad=no),
        refused(check, check_backward_ad=no, check_undefined_grad=no),
        refused(check, check_forward_ad=yes, check_backward_ad=no, check_batched_grad=yes),
        refused(check, check_batched_forward_grad=yes),
        refused(again, check_rev_over_rev=no),
        refused(again, check_fwd_over_rev=yes, check_rev_over_rev=no),
        refused(again, check_fwd_over_rev=yes, check_rev_over_rev=no, check_undefined_grad=no,
                check_batched_grad=yes),
    ]  # fmt: skip


def output_gradients_with_gaps(t):
    seen = []

    def backward(ctx, g):
        seen.append(g.is_contiguous())
        return g * 2

    found = []
    for gaps in (True, False):
        seen.clear()
        checked = t.autograd.gradgradcheck(_of_backward(t, backward), _learning(t),
                                           gen_non_contig_grad_outputs=gaps)  # fmt: skip
        found.append((checked, any(seen)))
    return found


def sparse_inputs_with_and_without_mask(t):
    """Without, places that have no entry count, and the gradients of entries do not do."""
    functions = [lambda x: x.to_dense(), lambda x: t.sparse.sum(x), lambda x: (x * x).to_dense()]
    dense = _learning(t)
    found = []
    warnings.simplefilter("ignore")  # PyTorch warns that it checks no sparse tensor
    for masked in (None, True, False):
        x = t.eye(2, dtype=t.float64).to_sparse().requires_grad_()
        found += [_said(t, function, (x,), masked=masked) for function in functions[:1]]
        found += [_said(t, lambda x, y: t.sparse.mm(x, y), (x, dense), masked=masked)]
        found += [_said(t, functions[2], (x,), masked=masked, fast_mode=fast) for fast in (0, 1)]
        found.append(_said(t, functions[1], (x,), masked=masked) if masked is not True else None)
        found.append(_said(t, lambda x: x * 2, (x,), masked=masked))
    return found


def outputs_that_are_no_tensors(t):
    return [
        _said(t, lambda x, made=made: made, _learning(t)) for made in (3, {"a": 1}, None)
    ]  # fmt: skip


def which_side_is_first(t):
    """A function that changes from call to call: its Jacobian is made of one order of calls."""
    calls = []

    def function(x):
        calls.append(1)
        return x * (1 + len(calls) * 1e-3)

    try:
        t.autograd.gradcheck(function, _learning(t), atol=10)
    except RuntimeError as error:
        return str(error)


def forward_over_reverse(t):
    """Gradients of gradients, by forward mode through the first ones; inputs stay as they were."""
    x = t.tensor([0.5, 1.0, 2.0], dtype=t.float64, requires_grad=True)
    y = x.detach() + 1
    check = t.autograd.gradgradcheck
    return [
        check(lambda x: x**3, [x], check_fwd_over_rev=True),
        check(lambda x, y: x**3 * y.sin(), [x, y], check_fwd_over_rev=True),
        check(lambda x: (x**3, x.exp()), [x], check_fwd_over_rev=True, check_rev_over_rev=False,
              check_undefined_grad=False),
        x.requires_grad, y.requires_grad,
    ]  # fmt: skip


def deprecated_jacobians(t):
    import importlib
    import sys

    importlib.import_module(f"{t.__name__}.autograd.gradcheck")
    module = sys.modules[f"{t.__name__}.autograd.gradcheck"]
    x = t.tensor([1.0, 2, 3], dtype=t.float64, requires_grad=True)
    y = t.tensor([4.0, 5], dtype=t.float64, requires_grad=True)
    z = t.tensor([1 + 2j, 3], dtype=t.complex128, requires_grad=True)

    def said(name, *given, **words):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                found = getattr(module, name)(*given, **words)
            except (AssertionError, ValueError) as error:
                found = type(error).__name__, str(error)
        return found, [(w.category.__name__, str(w.message)) for w in caught]

    def product(values):
        return values[0][:2] * values[1]

    by_one = "get_numerical_jacobian_wrt_specific_input"
    return [
        *(said("get_numerical_jacobian", product, (x, y), target, 1e-6) for target in (None, y)),
        said("get_numerical_jacobian", lambda v: (v[0] * v[0].conj()).real, (z,)),
        said("get_numerical_jacobian", lambda v: v[0] * 2, (z,)),
        said("get_numerical_jacobian", product, (x, y.detach()), grad_out=2.0),
        said("get_analytical_jacobian", (x, y), product((x, y))),
        said("get_analytical_jacobian", (z, x), (z * z.conj()).real),
        said("get_analytical_jacobian", (z,), z * 2),
        said(by_one, lambda x, y: (x * 2, x.sum() * y), 0, (x, y), (x * 2, x.sum() * y), 1e-6),
        said(by_one, lambda x: x * 2, 0, (x,), (x * 2,), 1e-6, input=y),
        said(by_one, lambda z: z.abs(), 0, (z,), (z.abs(),), 1e-6, is_forward_ad=True),
        said(by_one, lambda z: z * 2, 0, (z,), (z * 2,), 1e-6),
    ]


def takes_as_many_random_numbers(t):
    """A program's numbers after a check are those that it has under the other library."""
    x = t.arange(1.0, 5.0, dtype=t.float64).requires_grad_()
    y = t.ones(4, dtype=t.float64, requires_grad=True)

    def two(x, y):
        return x * y, (y * 2).view(2, 2).sum(0)

    def after(check, **options):
        t.manual_seed(1)
        check(two, (x, y), **options)
        return t.randint(1 << 30, (1,)).item()

    once, twice = t.autograd.gradcheck, t.autograd.gradgradcheck
    return [
        after(once), after(once, fast_mode=True), after(once, check_batched_grad=True),
        after(once, check_forward_ad=True),
        after(once, check_forward_ad=True, check_batched_forward_grad=True),
        after(twice), after(twice, fast_mode=True),
        after(twice, gen_non_contig_grad_outputs=True), after(twice, check_batched_grad=True),
        after(lambda f, xs: twice(lambda x: x * (1 + 1j), xs[:1])),
    ]  # fmt: skip
