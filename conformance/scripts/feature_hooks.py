"""Hooks of every kind: features from inside a network, gradients on their way, Grad-CAM."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(1)
net = nn.Sequential(
    nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
    nn.Linear(8 * 4 * 4, 10),
)  # fmt: skip
features = {}


def save(name):
    def hook(module, args, output):
        features[name] = output.detach()

    return hook


handles = [net[i].register_forward_hook(save(f"layer{i}")) for i in (0, 2, 3)]
x = torch.randn(2, 3, 8, 8, requires_grad=True)
net(x)
for name, value in features.items():
    print(name, value.shape, f"{value.mean().item():.6f}", value.requires_grad)
for handle in handles:
    handle.remove()
features.clear()
net(x)
print(features)

seen = []
first = net[0].register_full_backward_hook(lambda module, before, after: seen.append(after[0]))
last = net[5].register_full_backward_pre_hook(lambda module, grads: (grads[0] * 2,))
net(x).sum().backward()
print([grad.shape for grad in seen], f"{x.grad.abs().sum().item():.5f}")
first.remove()
last.remove()


class Scale(nn.Module):
    def forward(self, x, factor=1.0):
        return x * factor


def larger(module, args, kwargs):
    return args, {"factor": 3.0, **kwargs}


scale = Scale()
scale.register_forward_pre_hook(larger, with_kwargs=True)
scale.register_forward_hook(lambda module, args, kwargs, out: out + len(kwargs), with_kwargs=True)
print(scale(torch.ones(2)), scale(torch.ones(2), factor=5.0))

weight = torch.arange(3.0, requires_grad=True)
handle = weight.register_hook(lambda grad: grad * 10)
weight.pow(2).sum().backward()
print(weight.grad)
handle.remove()
parameter = nn.Parameter(torch.ones(2))
parameter.register_post_accumulate_grad_hook(lambda p: print("arrived", p.grad))
(parameter * 3).sum().backward()
middle = weight * 2
middle.retain_grad()
middle.exp().sum().backward()
print(middle.grad, middle.grad_fn.name(), weight.grad)

activations, gradients = [], []
net[2].register_forward_hook(lambda module, args, out: activations.append(out))
net[2].register_full_backward_hook(lambda module, before, after: gradients.append(after[0]))
scores = net(x)
scores[:, scores[0].argmax()].sum().backward()
weights = gradients[0].mean(dim=(2, 3), keepdim=True)
cam = F.relu((weights * activations[0]).sum(1))
print(cam.shape, cam[0, 0])
