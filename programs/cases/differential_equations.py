"""torchdiffeq and torchsde: solutions and gradients through them."""

import torch
import torchsde
from torchdiffeq import odeint, odeint_adjoint

torch.manual_seed(0)


class Field(torch.nn.Module):
    noise_type, sde_type = "diagonal", "ito"

    def __init__(self):
        super().__init__()
        self.drift, self.spread = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)

    def forward(self, t, y):
        return torch.tanh(self.drift(y))

    f = forward

    def g(self, t, y):
        return torch.sigmoid(self.spread(y))


field, start, times = Field(), torch.randn(3, 2), torch.linspace(0, 1, 5)
for method in ("dopri5", "rk4", "euler"):
    print(method, odeint(field, start, times, method=method)[-1].tolist())
odeint_adjoint(field, start, times)[-1].square().sum().backward()
print("adjoint", field.drift.weight.grad.tolist())
motion = torchsde.BrownianInterval(t0=0.0, t1=1.0, size=(3, 2), entropy=7)
print("sde", torchsde.sdeint(field, start, times, bm=motion, dt=0.1, method="euler")[-1].tolist())
