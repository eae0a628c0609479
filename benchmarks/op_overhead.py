"""What a call costs where the arithmetic is negligible.

Usage: `python benchmarks/op_overhead.py [words of case names]`
"""

from __future__ import annotations

from typing import Any

from harness import Case, run


def pair(torch: Any, grad: bool = False) -> tuple[Any, Any]:
    x, y = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([0.5, 0.25, 2.0])
    return (x.requires_grad_(), y.requires_grad_()) if grad else (x, y)


def add(torch: Any) -> Any:
    x, y = pair(torch)
    return lambda: x + y


def add_function(torch: Any) -> Any:
    x, y = pair(torch)
    function = torch.add
    return lambda: function(x, y)


def add_recorded(torch: Any) -> Any:
    x, y = pair(torch, True)
    return lambda: x + y


def mul_recorded(torch: Any) -> Any:
    x, y = pair(torch, True)
    return lambda: x * y


def add_number(torch: Any) -> Any:
    x, _ = pair(torch)
    return lambda: x + 2.0


def add_inplace(torch: Any) -> Any:
    x, y = pair(torch)
    return lambda: x.add_(y, alpha=1)


def add_columns(torch: Any) -> Any:
    x = torch.ones(100, 4)
    left, right = x[:, :2], x[:, 2:]
    return lambda: left + right


def exp(torch: Any) -> Any:
    x, _ = pair(torch)
    return lambda: x.exp()


def total(torch: Any) -> Any:
    x, _ = pair(torch)
    return lambda: x.sum()


def item(torch: Any) -> Any:
    x, _ = pair(torch)
    return lambda: x[0].item()


def select(torch: Any) -> Any:
    x = torch.ones(500, 10)
    return lambda: x[3]


def slice_(torch: Any) -> Any:
    x = torch.ones(500, 10)
    return lambda: x[3:7]


def view(torch: Any) -> Any:
    x = torch.ones(2, 3, 4)
    return lambda: x.view(6, 4)


def transpose(torch: Any) -> Any:
    x = torch.ones(2, 3, 4)
    return lambda: x.transpose(0, 1)


def views(torch: Any) -> Any:
    x = torch.ones(2, 3, 4)
    return lambda: x.view(6, 4)[1:5].reshape(2, 8).transpose(0, 1)[3]


def from_list(torch: Any) -> Any:
    return lambda: torch.tensor([1.0, 2.0, 3.0])


def matmul(torch: Any) -> Any:
    x = torch.ones(4, 4)
    return lambda: x @ x


def linear(torch: Any) -> Any:
    net, x = torch.nn.Linear(4, 4), torch.ones(1, 4)
    return lambda: net(x)


def module(torch: Any) -> Any:
    net, x = torch.nn.Identity(), torch.ones(3)
    return lambda: net(x)


def module_with_forward_hook(torch: Any) -> Any:
    net, x = torch.nn.Identity(), torch.ones(3)
    net.register_forward_hook(lambda *values: None)
    return lambda: net(x)


def module_with_full_hook(torch: Any) -> Any:
    net, x = torch.nn.Linear(4, 4), torch.ones(1, 4, requires_grad=True)
    net.register_full_backward_hook(lambda *values: None)
    return lambda: net(x).sum().backward()


def chain(a: Any, b: Any) -> Any:
    for _ in range(10):
        a = (a + b) * 0.5
    return a


def chain_forward(torch: Any) -> Any:
    x, y = pair(torch)
    return lambda: chain(x, y)


def chain_backward(torch: Any) -> Any:
    x, y = pair(torch, True)
    grad = torch.ones(3)
    out = chain(x, y)
    return lambda: torch.autograd.grad(out, (x, y), grad, retain_graph=True)


def chain_both(torch: Any) -> Any:
    x, y = pair(torch, True)
    grad = torch.ones(3)
    return lambda: torch.autograd.grad(chain(x, y), (x, y), grad)


CASES = [
    Case("add, 3 elements", add, 1.6), Case("torch.add", add_function, 1.6),
    Case("add, recorded", add_recorded, 1.6), Case("mul, recorded", mul_recorded, 1.6),
    Case("add a number", add_number), Case("add_", add_inplace),
    Case("add of columns", add_columns), Case("exp", exp), Case("sum", total),
    Case("x[0].item()", item), Case("x[3]", select, 1.2),
    Case("x[3:7]", slice_, 1.2), Case("view", view, 1.2), Case("transpose", transpose, 1.2),
    Case("five views", views, 1.2), Case("tensor from a list", from_list),
    Case("4x4 matmul", matmul), Case("nn.Linear(4, 4)", linear, 1.3),
    Case("a module's call", module), Case("with a forward hook", module_with_forward_hook),
    Case("with a full backward hook, there and back", module_with_full_hook),
    Case("20 operators forward", chain_forward), Case("20 operators backward", chain_backward, 1.5),
    Case("20 operators forward and backward", chain_both),
]  # fmt: skip

if __name__ == "__main__":
    run("The cost of a call", CASES)
