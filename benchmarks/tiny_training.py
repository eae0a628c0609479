"""Training steps of models so small that the arithmetic is free.

Usage: `python benchmarks/tiny_training.py [words of case names]`
"""

from __future__ import annotations

from typing import Any

from harness import Case, run


def curve_fit(torch: Any) -> Any:
    """Adam on the three coefficients of a parabola."""
    torch.manual_seed(0)
    w = torch.randn(3, 1, requires_grad=True)
    optimizer = torch.optim.Adam([w], 0.1)

    def step() -> None:
        x = torch.rand(100) * 20 - 10
        y = 5 * x * x + 3
        prediction = torch.squeeze(torch.stack([x * x, x, torch.ones_like(x)], 1) @ w, 1)
        loss = torch.nn.functional.mse_loss(prediction, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def linear_sgd(torch: Any) -> Any:
    """SGD on a·x + b, a and b of one element."""
    torch.manual_seed(0)

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = torch.nn.Parameter(torch.rand(1))
            self.b = torch.nn.Parameter(torch.rand(1))

        def forward(self, x: Any) -> Any:
            return self.a * x + self.b

    net = Net()
    x = torch.arange(100, dtype=torch.float32) / 100
    y = 5 * x + 3 + torch.rand(100) * 0.3
    criterion = torch.nn.MSELoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)

    def step() -> None:
        net.zero_grad()
        loss = criterion(net(x), y)
        loss.backward()
        optimizer.step()

    return step


def small_mlp(torch: Any) -> Any:
    """Two layers, batch 8, cross-entropy, SGD with momentum."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    x, y = torch.rand(8, 16), torch.randint(0, 4, (8,))

    def step() -> None:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()

    return step


CASES = [Case("curve fit, Adam", curve_fit, 0.6), Case("linear, SGD", linear_sgd, 0.6),
         Case("small MLP, SGD", small_mlp)]  # fmt: skip

if __name__ == "__main__":
    run("Training steps of tiny models", CASES)
