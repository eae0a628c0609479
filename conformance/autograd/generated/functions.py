"""Functions with formulas of a user's, of all the kinds that PyTorch documents."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

Note = Callable[..., None]
_listening: dict[Any, Note] = {}
"""Who is told, by library."""


def functions(torch: Any, note: Note) -> dict[str, Any]:
    """The functions of a library by name: each takes tensors, and is called as `Name.apply`. What
    they have to tell goes to the `note` that was given last."""
    _listening[torch] = note
    return dict(_made(torch))


@cache
def _made(torch: Any) -> dict[str, Any]:
    def note(*values: Any) -> None:
        _listening[torch](*values)

    found: dict[str, Any] = {}
    for family in (_plain, _odd, _several, _writing, _of_views):
        found |= family(torch, note)
    return found


def _plain(torch: Any, note: Note) -> dict[str, Any]:
    Function = torch.autograd.Function

    class Cube(Function):
        """Saves its input; may be differentiated again."""

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 3 * x * x * grad

    class Exp(Function):
        """Saves its result."""

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            result = x.tanh().exp()
            ctx.save_for_backward(x, result)
            return result

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            x, result = ctx.saved_tensors
            return grad * result * (1 - x.tanh() ** 2)

    class Later(Function):
        """Forward without a context."""

        @staticmethod
        def forward(x: Any, factor: Any) -> Any:
            return x * factor

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            x, factor = inputs
            ctx.factor = factor
            ctx.save_for_backward(x)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            note("Later", ctx.needs_input_grad, ctx.saved_tensors[0])
            return grad * ctx.factor, None

    return {c.__name__: c for c in (Cube, Exp, Later)}


def _odd(torch: Any, note: Note) -> dict[str, Any]:
    Function = torch.autograd.Function

    class Once(Function):
        """Its gradients may not be differentiated."""

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * ctx.saved_tensors[0].cos()

    class Silent(Function):
        """Gives no gradient."""

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x + 1

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            note("Silent", grad)

    class Wrong(Function):
        """Gives a gradient too many."""

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad, grad

    class Wide(Function):
        """Its gradient has a shape that is summed to that of the input."""

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return torch.stack([grad, grad])

    return {c.__name__: c for c in (Once, Silent, Wrong, Wide)}


def _several(torch: Any, note: Note) -> dict[str, Any]:
    Function = torch.autograd.Function

    class Product(Function):
        """Two inputs, a gradient for those that need one."""

        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            ctx.save_for_backward(x, y)
            return x * y.sum()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            x, y = ctx.saved_tensors
            note("Product", ctx.needs_input_grad)
            first = grad * y.sum() if ctx.needs_input_grad[0] else None
            second = (grad * x).sum().expand_as(y) if ctx.needs_input_grad[1] else None
            return first, second

    class Pair(Function):
        """Two results."""

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * 2, x.sin()

        @staticmethod
        def backward(ctx: Any, one: Any, two: Any) -> Any:
            note("Pair", one, two)
            return 2 * one + two * ctx.saved_tensors[0].cos()

    class Sparing(Function):
        """Two results, whose missing gradients are None."""

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx: Any, one: Any, two: Any) -> Any:
            note("Sparing", one is None, two is None)
            if one is None:
                return None if two is None else two * 3
            return one * 2 if two is None else one * 2 + two * 3

    class Sorted(Function):
        """A result without gradients beside one with."""

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            mask = x > 0
            rest = x * 5
            ctx.mark_non_differentiable(mask, rest)
            ctx.save_for_backward(mask)
            return x * mask, mask, rest

        @staticmethod
        def backward(ctx: Any, grad: Any, *others: Any) -> Any:
            note("Sorted", len(others))
            return grad * ctx.saved_tensors[0]

    return {c.__name__: c for c in (Product, Pair, Sparing, Sorted)}


def _writing(torch: Any, note: Note) -> dict[str, Any]:
    Function = torch.autograd.Function

    class Doubled(Function):
        """Writes to its input, and says so."""

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 2

    class Squared(Function):
        """Writes to its input, and saves the result."""

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            before = x.clone()
            x.mul_(x)
            ctx.mark_dirty(x)
            ctx.save_for_backward(before)
            return x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 2 * ctx.saved_tensors[0]

    return {c.__name__: c for c in (Doubled, Squared)}


def _of_views(torch: Any, note: Note) -> dict[str, Any]:
    Function = torch.autograd.Function

    class Same(Function):
        """Gives its input as it is."""

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 3

    class Flat(Function):
        """Gives a view of its input."""

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.shape = x.shape
            return x.view(-1)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad.reshape(ctx.shape) * 1

    class Halves(Function):
        """Gives two views of its input."""

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.view_as(x), x[:1]

        @staticmethod
        def backward(ctx: Any, one: Any, two: Any) -> Any:
            rest = two.sum() if two.numel() else 0
            return one + rest

    return {c.__name__: c for c in (Same, Flat, Halves)}
