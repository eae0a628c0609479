"""autograd.Function: contexts, several outputs, flags, and what users get wrong."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau as torch
from flambeau.autograd import Function, gradcheck, gradgradcheck
from flambeau.autograd.function import once_differentiable


class Cube(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * x * x * grad


class Exp(Function):
    """Saves its output; the context comes by `setup_context`."""

    @staticmethod
    def forward(x: Any) -> Any:
        return x.exp()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * ctx.saved_tensors[0]


@pytest.mark.parametrize("function", [Cube, Exp])
def test_gradients_of_both_orders(function: type[Function]) -> None:
    x = torch.tensor([0.5, -1.5], dtype=torch.float64, requires_grad=True)
    assert gradcheck(function.apply, (x,))
    assert gradgradcheck(function.apply, (x,))
    assert type(function.apply(x).grad_fn).__name__ == f"{function.__name__}Backward"


def made(forward: Any, backward: Any) -> type[Function]:
    body = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type("Made", (Function,), body)


def test_missing_output_gradients() -> None:
    seen: list[Any] = []

    def backward(ctx: Any, *grads: Any) -> Any:
        seen.append([None if g is None else g.tolist() for g in grads])
        return grads[0]

    x = torch.ones(1, requires_grad=True)
    made(lambda ctx, x: (x * 1, x * 2), backward).apply(x)[0].backward()

    def quiet(ctx: Any, x: Any) -> Any:
        ctx.set_materialize_grads(False)
        return x * 1, x * 2

    made(quiet, backward).apply(x)[0].backward()
    assert seen == [[[1.0], [0.0]], [[1.0], None]]


def test_outputs_without_gradient() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        values, indices = x.sort()
        flags = x * 0
        ctx.mark_non_differentiable(flags)
        return values, indices, flags, "text"

    function = made(forward, lambda ctx, g, *others: g)
    values, indices, flags, text = function.apply(torch.ones(2, requires_grad=True))
    assert (values.requires_grad, indices.requires_grad, flags.requires_grad) == (
        True,
        False,
        False,
    )
    assert text == "text"


def test_inputs_written_to() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x.mul_(2)

    x = torch.ones(2, requires_grad=True)
    y = x * 1
    result = made(forward, lambda ctx, g: g * 2).apply(y)
    assert result is y
    result.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_an_input_returned_as_it_is() -> None:
    x = torch.ones(2, requires_grad=True)
    y = made(lambda ctx, x: x, lambda ctx, g: g * 5).apply(x)
    assert y is not x
    with pytest.raises(RuntimeError, match="inside a custom Function"):
        y.add_(1)
    y.sum().backward()
    assert x.grad.tolist() == [5.0, 5.0]


def test_once_differentiable() -> None:
    function = made(lambda ctx, x: x * 2, once_differentiable(lambda ctx, g: g * 2))
    x = torch.ones(2, requires_grad=True)
    (grad,) = torch.autograd.grad((function.apply(x) ** 2).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="marked with @once_differentiable"):
        grad.sum().backward()


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (lambda g: (g, g), "returned an incorrect number of gradients"),
        (lambda g: torch.ones(3), "expected shape compatible with"),
        (lambda g: 1, "expected Variable or None"),
    ],
)
def test_wrong_gradients(result: Any, text: str) -> None:
    function = made(lambda ctx, x: x * 1, lambda ctx, g: result(g))
    y = function.apply(torch.ones(2, requires_grad=True))
    with pytest.raises(RuntimeError, match=text):
        y.sum().backward()


def test_attributes_of_the_context_may_have_any_name() -> None:
    names = ("function", "saved", "edges", "hooks", "results", "positions", "title", "outputs")

    def forward(ctx: Any, x: Any) -> Any:
        for name in names:
            setattr(ctx, name, name)
        return x * 1

    def backward(ctx: Any, grad: Any) -> Any:
        assert [getattr(ctx, name) for name in names] == list(names)
        return grad

    x = torch.ones(2, requires_grad=True)
    y = made(forward, backward).apply(x)
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]
    assert y.grad_fn.needs_input_grad == (True,)


def with_jvp(forward: Any, jvp: Any) -> type[Function]:
    body = {"forward": staticmethod(forward), "jvp": staticmethod(jvp)}
    return type("Made", (Function,), body)


WRONG_TANGENTS = {
    "modifying the forward mode gradients": (
        lambda ctx, x: (ctx.mark_dirty(x), x.mul_(2))[1], lambda ctx, g: g * 2),
    "jvp is not returning a view.": (lambda ctx, x: x[:1], lambda ctx, g: g[:1].clone()),
    "not returning a view of the given": (lambda ctx, x: x[:1], lambda ctx, g: g.clone()[:1]),
    "number of forward gradients": (lambda ctx, x: x * 2, lambda ctx, g: (g, g)),
    "a different size": (lambda ctx, x: x * 2, lambda ctx, g: g[:1].clone()),
    "got int": (lambda ctx, x: x * 2, lambda ctx, g: 3),
    "You should return None": (lambda ctx, x: (x * 2, x > 0), lambda ctx, g: (g, g)),
}  # fmt: skip


@pytest.mark.parametrize("words", WRONG_TANGENTS)
def test_jvp_that_returns_no_tangent_of_the_output(words: str) -> None:
    function = with_jvp(*WRONG_TANGENTS[words])
    with torch.autograd.forward_ad.dual_level():
        x = torch.autograd.forward_ad.make_dual(torch.ones(2), torch.ones(2))
        with pytest.raises(RuntimeError, match=words):
            function.apply(x)


def test_gradcheck_without_tangents_and_with_two_at_once() -> None:
    """A `jvp` that is wrong where only one input carries a tangent is found."""

    def jvp(ctx: Any, one: Any, other: Any) -> Any:
        assert one is not None or other is not None
        if one is None:
            return other * 4
        return one * 2 if other is None else one * 2 + other * 3

    def forward(ctx: Any, x: Any, y: Any) -> Any:
        ctx.set_materialize_grads(False)
        return x * 2 + y * 3

    inputs = [torch.ones(1, dtype=torch.float64, requires_grad=True) for _ in range(2)]
    checks = {"check_forward_ad": True, "check_backward_ad": False}
    function = with_jvp(forward, jvp)
    assert gradcheck(function.apply, inputs, check_undefined_grad=False, **checks)
    with pytest.raises(RuntimeError, match="undefined tangent value"):
        gradcheck(function.apply, inputs, **checks)
    assert gradcheck(torch.mul, inputs, check_batched_forward_grad=True, **checks)
    with pytest.raises(RuntimeError, match=r"calling .item\(\)"):
        gradcheck(lambda x, y: x * y * forward_ad_item(x), inputs, check_batched_forward_grad=True,
                  **checks)  # fmt: skip


def forward_ad_item(x: Any) -> float:
    tangent = torch.autograd.forward_ad.unpack_dual(x).tangent
    return 1.0 if tangent is None or tangent.item() else 1.0
