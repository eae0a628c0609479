"""What stands for leaves in the graph: AccumulateGrad nodes, the order of their hooks, types."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau as torch
from flambeau.autograd.graph import get_gradient_edge


def listed(*tensors: Any) -> list[Any]:
    return [tensor.tolist() for tensor in tensors]


def test_an_edge_from_before_other_memory_leads_to_what_was_computed_before():
    x = torch.rand(2, requires_grad=True)
    first = get_gradient_edge(x)
    y = x * 3 + x.exp() * 0
    with torch.no_grad():
        x.set_(torch.rand_like(x))
    second = get_gradient_edge(x)
    y = y + x * 5
    grads = torch.autograd.grad(y.sum(), [first, x, second], retain_graph=True)
    assert listed(*grads) == [[3, 3], [5, 5], [5, 5]]
    with torch.no_grad():
        x.set_(torch.rand(3))
    third = get_gradient_edge(x)
    z = (x * 7)[:2] + y
    grads = torch.autograd.grad(z.sum(), [second, third, first], retain_graph=True)
    assert listed(*grads) == [[5, 5], [7, 7, 0], [3, 3]]
    assert first.node is not second.node and third.node is get_gradient_edge(x).node


def test_backward_fills_the_leaf_through_an_edge_from_before():
    x = torch.rand(2, requires_grad=True)
    before = get_gradient_edge(x)
    y = x * 3
    with torch.no_grad():
        x.set_(torch.rand_like(x))
    y = y + x * 5
    y.sum().backward(inputs=[before], retain_graph=True)
    assert x.grad.tolist() == [3, 3]
    y.sum().backward(inputs=[before, get_gradient_edge(x)])
    assert x.grad.tolist() == [11, 11]


def test_a_call_of_an_accumulator_adds_to_the_gradient_without_hooks_of_the_node():
    x = torch.rand(2, requires_grad=True)
    node = get_gradient_edge(x).node
    seen: list[str] = []
    x.register_hook(lambda grad: seen.append("tensor"))
    x.register_post_accumulate_grad_hook(lambda leaf: seen.append("filled"))
    node.register_hook(lambda inputs, outputs: seen.append("node"))
    node.register_prehook(lambda outputs: seen.append("before"))
    assert node(torch.ones(2)) == ()
    assert node(torch.ones(2)) == ()
    assert node(None) == ()
    assert x.grad.tolist() == [2, 2]
    assert seen == ["filled", "filled"]


@pytest.mark.parametrize("asked", ["all", "inputs", "grad"])
def test_hooks_of_leaves_run_before_what_does_not_wait_for_them(asked: str):
    seen: list[str] = []
    x, w = torch.rand(2, requires_grad=True), torch.rand(2, requires_grad=True)
    h = x * 2
    z = h.exp() * w
    q = x.sin()
    for name, tensor in {"x": x, "w": w, "h": h, "z": z, "q": q}.items():
        tensor.register_hook(lambda grad, name=name: seen.append(name))
    total = (z + q).sum()
    if asked == "all":
        total.backward()
    elif asked == "inputs":
        total.backward(inputs=[x, w])
    else:
        torch.autograd.grad(total, [x, w])
    assert seen == ["q", "z", "w", "h", "x"]


def test_a_leaf_is_filled_though_a_function_after_it_fails():
    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            raise RuntimeError("no gradient")

    x, w = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    seen: list[Any] = []
    torch.autograd.graph.register_multi_grad_hook((x, w), seen.append, mode="any")
    with pytest.raises(RuntimeError, match="no gradient"):
        (Fails.apply(x) * w).sum().backward(inputs=(x, w))
    assert listed(*seen) == [[1, 1]]


def test_gradients_have_the_type_that_a_leaf_was_told_to_keep():
    x = torch.ones(2, requires_grad=True)
    assert x.grad_dtype is torch.float32
    x.grad_dtype = torch.float64
    seen: list[Any] = []
    x.register_hook(lambda grad: seen.append(grad.dtype))
    for _ in range(2):
        (x * 2).sum().backward()
    assert x.grad.tolist() == [4, 4]
    assert [x.grad.dtype, *seen] == [torch.float64] * 3
    assert torch.autograd.grad((x * 2).sum(), x)[0].dtype is torch.float64
    with pytest.raises(RuntimeError, match="there is already a gradient with dtype 'double'"):
        x.grad_dtype = torch.float16
    x.grad = None
    with pytest.raises(RuntimeError, match="to a tensor with grad_dtype 'Double'"):
        x.grad = torch.ones(2)
    x.grad_dtype = None
    x.grad = torch.ones(2, dtype=torch.float16)
    assert x.grad.dtype is torch.float16


def test_what_grad_dtype_refuses():
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    with pytest.raises(RuntimeError, match="can only be accessed on leaf tensors"):
        _ = y.grad_dtype
    with pytest.raises(RuntimeError, match="can only be set on leaf tensors"):
        y.grad_dtype = torch.float64
    with pytest.raises(RuntimeError, match=r"must be a torch\.dtype or None, but got str"):
        x.grad_dtype = "float64"
    x.grad_dtype = torch.int32
    with pytest.raises(RuntimeError, match="has to be a floating or complex type"):
        y.sum().backward()


def test_every_name_of_a_tensor_can_be_read():
    x, y = torch.ones(2, 2), torch.ones(2, dtype=torch.complex64)
    names = dir(x)
    with pytest.raises(RuntimeError, match="imag is not implemented for tensors with non-complex"):
        hasattr(x, "imag")
    assert hasattr(y, "imag")
    names.remove("imag")
    assert [name for name in names if not hasattr(x, name)] == []
    x.note = 1
    assert "note" in dir(x) and "shape" in dir(x)


def test_hooks_as_tables():
    x = torch.ones(2, requires_grad=True)
    a, b = (x * 2).split(1)
    assert x._backward_hooks is None and a._backward_hooks is None
    handles = [tensor.register_hook(print) for tensor in (x, a)]
    assert list(x._backward_hooks.values()) == list(a._backward_hooks.values()) == [print]
    assert b._backward_hooks is None and a._grad_fn is a.grad_fn
    handles[0].remove()
    assert len(x._backward_hooks) == 0
    for name in ("_grad_fn", "_backward_hooks"):
        with pytest.raises(RuntimeError, match="not allowed"):
            delattr(x, name)


def test_the_class_of_a_functions_nodes():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 2

    node = Double.apply(torch.ones(1, requires_grad=True)).grad_fn
    assert type(node) is Double._backward_cls
    assert isinstance(node, torch.autograd.function.BackwardCFunction)


def test_tables_of_hooks_can_be_set():
    x = torch.ones(2, requires_grad=True)
    x.register_hook(lambda grad: grad * 10)
    x._backward_hooks = {0: lambda grad: grad * 3}
    (x * 2).sum().backward()
    assert x.grad.tolist() == [6, 6]
    x._backward_hooks = None
    (x * 2).sum().backward()
    assert x.grad.tolist() == [8, 8]
    first, second = (x * 2).split(1)
    for part in (first, second):
        part.register_hook(lambda grad: grad * 5)
    first._backward_hooks = {}
    (first + second).sum().backward()
    assert x.grad.tolist() == [10, 18]
