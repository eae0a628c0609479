"""Learning rates over time, averaged weights, early stopping, pruning, LBFGS."""

import torch
from torch import nn, optim
from torch.nn.utils import prune
from torch.optim import lr_scheduler as schedules
from torch.optim.swa_utils import SWALR, AveragedModel, get_ema_multi_avg_fn, update_bn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


def show(make, steps=12):
    model = nn.Linear(2, 1)
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = make(optimizer)
    rates = []
    for _ in range(steps):
        optimizer.step()
        rates.append(optimizer.param_groups[0]["lr"])
        scheduler.step()
    print(type(scheduler).__name__, " ".join(f"{rate:.6g}" for rate in rates))


show(lambda o: schedules.SequentialLR(
    o, [schedules.LinearLR(o, 0.1, total_iters=4), schedules.CosineAnnealingLR(o, 8)], [4]
))  # fmt: skip
show(lambda o: schedules.ChainedScheduler([
    schedules.ConstantLR(o, 0.5, 3), schedules.ExponentialLR(o, 0.9)
]))  # fmt: skip
show(lambda o: schedules.OneCycleLR(o, max_lr=1.0, total_steps=12, pct_start=0.3))
show(lambda o: schedules.CyclicLR(o, 0.01, 0.1, step_size_up=3, mode="triangular2"))
show(lambda o: schedules.CosineAnnealingWarmRestarts(o, 4, 2))
show(lambda o: schedules.LambdaLR(o, lambda epoch: min((epoch + 1) / 5, 1.0)))
show(lambda o: schedules.MultiStepLR(o, [3, 8]))
show(lambda o: schedules.PolynomialLR(o, 10, 2.0))

x, y = torch.randn(64, 4), torch.randn(64, 1)
loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
model = nn.Sequential(nn.Linear(4, 8, bias=False), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))
optimizer = optim.SGD(model.parameters(), lr=0.1)
swa, swa_rates = AveragedModel(model), SWALR(optimizer, swa_lr=0.05, anneal_epochs=2)
ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
plateau = schedules.ReduceLROnPlateau(optimizer, patience=0, factor=0.5, min_lr=1e-3)
best, waited = float("inf"), 0
for epoch in range(8):
    total = 0.0
    for inputs, wanted in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), wanted)
        loss.backward()
        optimizer.step()
        ema.update_parameters(model)
        total += loss.item() * len(inputs)
    if epoch >= 5:
        swa.update_parameters(model)
        swa_rates.step()
    else:
        plateau.step(total)
    best, waited = (total, 0) if total < best else (best, waited + 1)
    print(f"{epoch} {total / 64:.6f} {optimizer.param_groups[0]['lr']:.6g} {waited}")
update_bn(loader, swa)
print(swa(x[:2]), ema(x[:2]), swa.n_averaged, list(swa.state_dict())[:3])

prune.l1_unstructured(model[0], "weight", amount=0.3)
prune.ln_structured(model[0], "weight", amount=0.25, n=2, dim=0)
print(model[0].weight, [name for name, _ in model[0].named_parameters()])
prune.remove(model[0], "weight")
sparsity = 100.0 * float((model[0].weight == 0).sum()) / model[0].weight.nelement()
print(f"{sparsity:.2f}%", list(model[0].state_dict()))

t = torch.linspace(0, 1, 30).unsqueeze(1)
curve = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
lbfgs = optim.LBFGS(curve.parameters(), max_iter=3, line_search_fn="strong_wolfe")


def closure():
    lbfgs.zero_grad()
    error = (curve(t) - torch.sin(6 * t)).pow(2).mean()
    error.backward()
    return error


print([f"{lbfgs.step(closure).item():.4f}" for _ in range(3)])
for wrong in (
    lambda: schedules.OneCycleLR(optimizer, 0.1),
    lambda: schedules.ReduceLROnPlateau(optimizer, factor=1.2),
    lambda: optim.SGD(model.parameters(), lr=-1),
    lambda: optim.Adam([]),
    lambda: optim.SGD(model[0].weight * 2, 0.1),
    lambda: prune.l1_unstructured(model[0], "weight", amount=1.5),
):
    try:
        wrong()
    except (ValueError, TypeError) as error:
        print(type(error).__name__, error)
print(optimizer, swa_rates.state_dict()["_last_lr"])
