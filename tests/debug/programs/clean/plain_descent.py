"""Gradient descent without an optimizer, in the two ways to clear gradients."""

import torch

torch.manual_seed(0)
x = torch.linspace(-3, 3, 200)
y = torch.sin(x)
coefficients = torch.zeros(4, requires_grad=True)
for step in range(30):
    powers = torch.stack([x**k for k in range(4)])
    loss = (coefficients @ powers - y).pow(2).mean()
    loss.backward()
    with torch.no_grad():
        coefficients -= 1e-3 * coefficients.grad
        if step % 2:
            coefficients.grad = None
        else:
            coefficients.grad.zero_()
    if step % 10 == 9:
        print(step, loss.item())

model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(6):
    torch.nn.functional.mse_loss(model(x[:, None]), y[:, None]).backward()
    optimizer.step()
    for parameter in model.parameters():
        parameter.grad.zero_()
