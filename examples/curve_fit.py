"""Find the coefficients of a parabola from noisy samples with Adam.

Usage: `flambeau run examples/curve_fit.py`
"""

import torch


def features(x):
    """1-d samples (N,) to the columns x², x, 1: (N, 3)."""
    return torch.stack([x * x, x, torch.ones_like(x)], 1)


def main():
    torch.manual_seed(0)
    weights = torch.randn(3, 1, requires_grad=True)
    optimizer = torch.optim.Adam([weights], lr=0.1)
    for step in range(1, 1001):
        x = torch.rand(100) * 20 - 10
        y = 5 * x * x + 3
        loss = torch.nn.functional.mse_loss(torch.squeeze(features(x) @ weights, 1), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 200 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}")
    print("should be close to 5, 0, 3:", weights.detach().squeeze())


if __name__ == "__main__":
    main()
