"""neuraloperator: Fourier neural operators, plain and factorized, trained for some steps."""

import torch
from neuralop.losses import H1Loss, LpLoss
from neuralop.models import FNO, TFNO

torch.manual_seed(0)
x = torch.randn(2, 1, 16, 16)
y = torch.roll(x, 2, -1).cumsum(-1) / 4
models = {
    "fno": FNO(n_modes=(6, 6), in_channels=1, out_channels=1, hidden_channels=8, n_layers=2),
    "tfno": TFNO(n_modes=(6, 6), in_channels=1, out_channels=1, hidden_channels=8, n_layers=2,
                 factorization="tucker", rank=0.5, implementation="factorized"),
}  # fmt: skip
for name, model in models.items():
    print(name, sum(p.numel() for p in model.parameters()), model(x).sum().item())
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=1e-4)
    for _ in range(4):
        loss = LpLoss(d=2)(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(name, loss.item())
    print(name, "h1", H1Loss(d=2)(model(x), y).item())
    print(name, "finer", model(torch.nn.functional.interpolate(x, scale_factor=2)).std().item())
