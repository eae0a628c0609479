"""torchjd: descent along several losses at once."""

import torch
from torchjd import aggregation

torch.manual_seed(0)
matrix = torch.randn(3, 8)
for name in (
    "MGDA",
    "PCGrad",
    "AlignedMTL",
    "IMTLG",
    "GradDrop",
    "Random",
    "Mean",
    "Sum",
    "ConFIG",
):
    torch.manual_seed(1)
    rule = getattr(aggregation, name)()
    print(name, rule(matrix).tolist())
print("krum", aggregation.Krum(n_byzantine=0, n_selected=2)(matrix).tolist())
print("trimmed", aggregation.TrimmedMean(trim_number=1)(matrix).tolist())

from torchjd.autojac import backward, jac_to_grad, mtl_backward  # noqa: E402

torch.manual_seed(2)
shared = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Tanh())
heads = [torch.nn.Linear(5, 1), torch.nn.Linear(5, 1)]
x, targets = torch.randn(8, 6), torch.randn(2, 8, 1)
everything = [*shared.parameters(), *heads[0].parameters(), *heads[1].parameters()]
descent = torch.optim.SGD(everything, 0.1)
for _ in range(4):
    features = shared(x)
    losses = [(head(features) - y).square().mean() for head, y in zip(heads, targets, strict=True)]
    descent.zero_grad()
    mtl_backward(losses, features=features)
    jac_to_grad(shared.parameters(), aggregation.AlignedMTL())
    descent.step()
    print([loss.item() for loss in losses])
w = torch.tensor([1.0, -2.0], requires_grad=True)
backward([w.square().sum(), (w * torch.tensor([1.0, 3.0])).sum()])
print([name for name in ("grad", "jac") if getattr(w, name, None) is not None], w.jac.tolist())
