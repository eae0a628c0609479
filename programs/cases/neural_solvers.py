"""neurodiffeq: differential equations solved by networks."""

import torch
from neurodiffeq import diff
from neurodiffeq.conditions import IVP, DirichletBVP2D
from neurodiffeq.generators import Generator1D, Generator2D
from neurodiffeq.networks import FCNN, Resnet, SinActv
from neurodiffeq.solvers import Solver1D, Solver2D

torch.set_default_dtype(torch.float64)
torch.manual_seed(0)
falling = Solver1D(
    lambda u, t: [diff(u, t) + u],
    conditions=[IVP(t_0=0.0, u_0=1.0)],
    t_min=0.0, t_max=2.0,
    nets=[FCNN(1, 1, hidden_units=(12, 12), actv=SinActv)],
    train_generator=Generator1D(16, 0.0, 2.0, method="equally-spaced-noisy"),
    valid_generator=Generator1D(8, 0.0, 2.0, method="equally-spaced"),
)  # fmt: skip
falling.fit(max_epochs=12, tqdm_file=None)
print(
    "falling", falling.metrics_history["train_loss"][-3:], falling.metrics_history["valid_loss"][-1]
)
print(falling.get_solution()(torch.linspace(0, 2, 5)).tolist())
torch.manual_seed(1)
swinging = Solver1D(
    lambda u, v, t: [diff(u, t) - v, diff(u, t, order=2) + u],
    conditions=[IVP(0.0, 0.0, 1.0), IVP(0.0, 1.0)],
    t_min=0.0, t_max=1.0,
    nets=[Resnet(1, 1, hidden_units=(8,)), FCNN(1, 1, hidden_units=(8,))],
    train_generator=Generator1D(12, 0.0, 1.0, method="chebyshev"),
    valid_generator=Generator1D(6, 0.0, 1.0, method="chebyshev"),
)  # fmt: skip
swinging.fit(max_epochs=6, tqdm_file=None)
u, v = swinging.get_solution(best=False)(torch.linspace(0, 1, 4))
print("swinging", swinging.metrics_history["train_loss"], u.tolist(), v.tolist())
torch.manual_seed(2)
zero = torch.zeros_like
plate = Solver2D(
    lambda u, x, y: [diff(u, x, order=2) + diff(u, y, order=2)],
    conditions=[
        DirichletBVP2D(0.0, lambda y: torch.sin(torch.pi * y), 1.0, zero, 0.0, zero, 1.0, zero)
    ],
    xy_min=(0, 0), xy_max=(1, 1),
    nets=[FCNN(2, 1, hidden_units=(10,))],
    train_generator=Generator2D((4, 4), (0, 0), (1, 1), method="equally-spaced-noisy"),
    valid_generator=Generator2D((4, 4), (0, 0), (1, 1), method="equally-spaced"),
    optimizer=None,
)  # fmt: skip
plate.fit(max_epochs=4, tqdm_file=None)
print("plate", plate.metrics_history["train_loss"])
print(plate.get_solution()(torch.tensor([0.2, 0.5]), torch.tensor([0.4, 0.9])).tolist())
