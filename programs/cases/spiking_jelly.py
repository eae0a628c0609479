"""spikingjelly: spiking neurons of several kinds, step by step and many steps at once."""

import torch
from spikingjelly.activation_based import encoding, functional, layer, neuron, surrogate

torch.manual_seed(0)
currents = torch.rand(6, 3, 4) * 1.5
for kind in (
    neuron.IFNode,
    neuron.LIFNode,
    neuron.ParametricLIFNode,
    neuron.QIFNode,
    neuron.EIFNode,
):
    one = kind(surrogate_function=surrogate.ATan())
    single = torch.stack([one(current) for current in currents])
    many = kind(step_mode="m", surrogate_function=surrogate.Sigmoid(alpha=3.0))
    print(
        kind.__name__, single.sum().item(), many(currents).sum((1, 2)).tolist(), one.v.sum().item()
    )
net = torch.nn.Sequential(
    layer.Conv2d(1, 4, 3, padding=1, bias=False), layer.BatchNorm2d(4), neuron.IFNode(),
    layer.MaxPool2d(2), layer.Flatten(), layer.Linear(64, 8),
    neuron.LIFNode(tau=2.0, detach_reset=True),
    layer.Dropout(0.2), layer.Linear(8, 3),
)  # fmt: skip
functional.set_step_mode(net, "m")
images, kinds = torch.rand(5, 1, 8, 8), torch.tensor([0, 1, 2, 0, 1])
encode = encoding.PoissonEncoder()
descent = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(3):
    spikes = torch.stack([encode(images) for _ in range(4)])
    descent.zero_grad()
    loss = torch.nn.functional.cross_entropy(net(spikes).mean(0), kinds)
    loss.backward()
    descent.step()
    functional.reset_net(net)
    print("loss", loss.item())
print("slopes", [p.grad.abs().sum().item() for p in net.parameters()])
x = torch.linspace(-1, 1, 7, requires_grad=True)
for shape in (
    surrogate.PiecewiseQuadratic,
    surrogate.SoftSign,
    surrogate.Erf,
    surrogate.LeakyKReLU,
):
    (slope,) = torch.autograd.grad(shape()(x).sum(), x)
    print(shape.__name__, slope.tolist())
print("phases", encoding.LatencyEncoder(4)(torch.tensor([0.1, 0.9])).tolist())
