"""`gradcheck`: what it finds, and in which words.

Each function is a scenario; `t` is the library.
"""

from __future__ import annotations

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
