"""torchcde: neural controlled differential equations."""

import torch
import torchcde

torch.set_default_dtype(torch.float64)  # steps and signs of tiny gradients hang on rounding
torch.manual_seed(0)
t = torch.linspace(0, 1, 8)
x = torch.cat([t[None, :, None].expand(4, 8, 1), torch.randn(4, 8, 2)], -1)
x[1, 3, 1] = float("nan")
coeffs = torchcde.hermite_cubic_coefficients_with_backward_differences(x)
path = torchcde.CubicSpline(coeffs)


class Field(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(5, 15)

    def forward(self, t, z):
        return self.linear(z).tanh().view(4, 5, 3)


f = Field()
z = torchcde.cdeint(
    path,
    f,
    torch.randn(4, 5),
    path.interval,
    method="rk4",
    options={"step_size": 0.1},
    adjoint=False,
)
z.square().mean().backward()
print(z[:, -1].sum(1).tolist(), f.linear.weight.grad.norm().item())
z = torchcde.cdeint(path, f, torch.ones(4, 5), path.interval, adjoint=True, rtol=1e-4, atol=1e-6)
z.sum().backward()
print(z[:, -1].sum().item(), f.linear.weight.grad.norm().item())
print(
    torchcde.natural_cubic_coeffs(x).sum().item(),
    torchcde.linear_interpolation_coeffs(x).sum().item(),
)
