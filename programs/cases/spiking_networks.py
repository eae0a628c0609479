"""snntorch: spiking neurons, surrogate gradients, losses over spikes, and spike codes."""

import snntorch as snn
import torch
from snntorch import functional, spikegen, surrogate, utils
from torch import nn

torch.manual_seed(5)
pixels = torch.rand(6, 20)
targets = torch.arange(6) % 3
trains = spikegen.rate(pixels, num_steps=8)
print("rate", tuple(trains.shape), trains.sum().item())
print("latency", spikegen.latency(pixels, num_steps=8, tau=5, threshold=0.01).sum(0).tolist()[0])
print("delta", spikegen.delta(pixels, threshold=0.1).sum().item())
slope = surrogate.fast_sigmoid(slope=25)
kinds = {
    "Leaky": lambda: snn.Leaky(beta=0.9, spike_grad=slope, init_hidden=True, learn_beta=True),
    "Synaptic": lambda: snn.Synaptic(alpha=0.9, beta=0.8, spike_grad=slope, init_hidden=True),
    "Alpha": lambda: snn.Alpha(alpha=0.9, beta=0.8, spike_grad=surrogate.atan(), init_hidden=True),
    "Lapicque": lambda: snn.Lapicque(beta=0.7, init_hidden=True, reset_mechanism="zero"),
}
for name, neuron in kinds.items():
    model = nn.Sequential(nn.Linear(20, 16), neuron(), nn.Linear(16, 3), neuron())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for step in range(3):
        utils.reset(model)
        spikes = torch.stack([model(now) for now in trains])
        loss = functional.ce_rate_loss()(spikes, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(name, step, loss.item(), spikes.sum().item())
    print(name, functional.accuracy_rate(spikes, targets), sorted(model.state_dict()))
recurrent = snn.RLeaky(beta=0.8, linear_features=16, spike_grad=slope)
spike, memory = recurrent.init_rleaky()
for now in trains:
    spike, memory = recurrent(now[:, :16], spike, memory)
memory.sum().backward()
print("RLeaky", memory.sum().item(), recurrent.recurrent.weight.grad.abs().sum().item())
unit = snn.SLSTM(20, 7, spike_grad=slope)
synapse, memory = unit.init_slstm()
for now in trains:
    spike, synapse, memory = unit(now, synapse, memory)
print("SLSTM", synapse.sum().item(), memory.sum().item())
