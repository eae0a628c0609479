"""zennit: relevances, by rules per layer, of drawn networks."""

import torch
from zennit.attribution import Gradient, IntegratedGradients, Occlusion, SmoothGrad
from zennit.canonizers import SequentialMergeBatchNorm
from zennit.composites import (
    EpsilonAlpha2Beta1,
    EpsilonGammaBox,
    EpsilonPlus,
    EpsilonPlusFlat,
    ExcitationBackprop,
    GuidedBackprop,
)
from zennit.image import imgify
from zennit.rules import Epsilon, Gamma, ZPlus

torch.manual_seed(0)
net = torch.nn.Sequential(
    torch.nn.Conv2d(3, 6, 3, padding=1),
    torch.nn.BatchNorm2d(6),
    torch.nn.ReLU(),
    torch.nn.MaxPool2d(2),
    torch.nn.Conv2d(6, 8, 3, padding=1),
    torch.nn.ReLU(),
    torch.nn.AvgPool2d(2),
    torch.nn.Flatten(),
    torch.nn.Linear(32, 4),
).eval()
for moment in (net[1].running_mean, net[1].running_var):
    moment.copy_(torch.rand(6) + 0.5)
images = torch.randn(2, 3, 8, 8)
chosen = torch.eye(4)[[1, 3]]
composites = {
    "plus": EpsilonPlus(canonizers=[SequentialMergeBatchNorm()]),
    "flat": EpsilonPlusFlat(),
    "alpha-beta": EpsilonAlpha2Beta1(canonizers=[SequentialMergeBatchNorm()]),
    "box": EpsilonGammaBox(low=-3.0, high=3.0),
    "guided": GuidedBackprop(),
    "excitation": ExcitationBackprop(),
}
for name, composite in composites.items():
    with Gradient(model=net, composite=composite) as attributor:
        output, relevance = attributor(images, chosen)
    print(name, output[0].tolist(), relevance.sum((1, 2, 3)).tolist(), relevance[0, 0, 0].tolist())
torch.manual_seed(1)
for kind in (
    SmoothGrad(net, noise_level=0.1, n_iter=4),
    IntegratedGradients(net, n_iter=4),
    Occlusion(net, window=4, stride=4),
):
    with kind as attributor:
        _, relevance = attributor(images, chosen)
    print(type(kind).__name__, relevance.abs().sum().item(), relevance[0, 0, 0].tolist())
for rule in (Epsilon(1e-3), Gamma(0.25), ZPlus()):
    handles = rule.register(net[8])
    x = torch.ones(1, 32, requires_grad=True)
    (slope,) = torch.autograd.grad(net[8](x)[0, 0], x)
    handles.remove()
    print(type(rule).__name__, slope.sum().item())
print(imgify(relevance[0].sum(0), cmap="coldnhot", symmetric=True).size)
