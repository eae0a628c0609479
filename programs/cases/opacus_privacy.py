"""opacus: a private training epoch, and what it cost."""

import torch
from opacus import PrivacyEngine
from opacus.validators import ModuleValidator

torch.manual_seed(0)
m = torch.nn.Sequential(
    torch.nn.Conv2d(1, 4, 3),
    torch.nn.GroupNorm(2, 4),
    torch.nn.ReLU(),
    torch.nn.Flatten(),
    torch.nn.Linear(4 * 36, 5),
)
print("valid", ModuleValidator.validate(m))
opt = torch.optim.SGD(m.parameters(), lr=0.1)
ds = torch.utils.data.TensorDataset(torch.randn(16, 1, 8, 8), torch.randint(0, 5, (16,)))
pe = PrivacyEngine()
m, opt, dl = pe.make_private(
    module=m,
    optimizer=opt,
    data_loader=torch.utils.data.DataLoader(ds, batch_size=4),
    noise_multiplier=1.0,
    max_grad_norm=1.0,
)
torch.manual_seed(1)
for x, y in dl:
    opt.zero_grad()
    total = torch.nn.functional.cross_entropy(m(x), y)
    total.backward()
    opt.step()
    print(len(x), total.item())
print("w", sum(p.abs().sum().item() for p in m.parameters()))
print("eps", pe.get_epsilon(1e-05))
