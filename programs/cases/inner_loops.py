"""higher and torch-optimizer: gradients through optimizer steps, and optimizers not in torch."""

import higher
import torch
import torch_optimizer

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
x, y = torch.randn(10, 3), torch.randn(10, 1)
for make in (torch.optim.SGD, torch.optim.Adam):
    inner = make(net.parameters(), lr=0.05)
    with higher.innerloop_ctx(net, inner, copy_initial_weights=False) as (fast, steps):
        for _ in range(3):
            steps.step((fast(x) - y).square().mean())
        outer = (fast(x + 1) - y).square().mean()
        grads = torch.autograd.grad(outer, net.parameters())
    print(make.__name__, float(outer), [float(g.abs().sum()) for g in grads])

NAMES = (
    "AdaBound AdaMod DiffGrad Lamb NovoGrad PID QHAdam QHM RAdam SGDP SGDW SWATS Shampoo Yogi "
    "AdaBelief AggMo AdamP MADGRAD Apollo A2GradUni A2GradExp A2GradInc AccSGD Ranger RangerQH"
).split()
for name in NAMES:
    torch.manual_seed(1)
    weight = torch.nn.Parameter(torch.randn(4, 4))
    words = {"beta": 10.0, "lips": 10.0} if name.startswith("A2Grad") else {"lr": 0.05}
    optimizer = getattr(torch_optimizer, name)([weight], **words)
    for _ in range(4):
        optimizer.zero_grad()
        (weight**4).sum().backward()
        optimizer.step()
    print(name, float(weight.abs().sum()))
