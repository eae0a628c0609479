"""LBFGS, which calls backward many times a step, and Newton's method by hand."""

import torch

torch.manual_seed(0)
x = torch.tensor([-1.2, 1.0], requires_grad=True)
optimizer = torch.optim.LBFGS([x], line_search_fn="strong_wolfe")


def closure():
    optimizer.zero_grad()
    loss = (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
    loss.backward()
    return loss


for _ in range(5):
    optimizer.step(closure)
assert torch.allclose(x.detach(), torch.ones(2), atol=1e-2)

root = torch.tensor(1.0, requires_grad=True)
for _ in range(6):
    value = root**3 - 2
    [slope] = torch.autograd.grad(value, root)
    root = (root - value / slope).detach().requires_grad_()
assert abs(root.item() ** 3 - 2) < 1e-5
