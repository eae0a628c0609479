"""torchani: environment vectors, energies and forces of molecules, a training step, scripting."""

import torch
from torchani import arch, utils
from torchani.aev import AEVComputer
from torchani.grad import energies_and_forces

torch.manual_seed(0)
species = torch.tensor([[6, 1, 1, 1, 1], [7, 1, 1, 1, -1]])
coordinates = torch.tensor(
    [
        [
            [0.03, 0.01, 0.01],
            [-0.83, 0.39, -0.26],
            [-0.66, -0.84, 0.22],
            [0.45, 0.55, 0.82],
            [0.66, -0.16, -0.91],
        ],
        [
            [0.05, 0.02, 0.10],
            [0.95, 0.03, -0.25],
            [-0.45, 0.83, -0.22],
            [-0.42, -0.86, -0.20],
            [0.0, 0.0, 0.0],
        ],
    ]
)
computer = AEVComputer.like_2x(num_species=3)
indices = torch.tensor([[1, 0, 0, 0, 0], [2, 0, 0, 0, -1]])
vectors = computer(indices, coordinates)
print("aev", tuple(vectors.shape), vectors.sum((1, 2)).tolist(), vectors.std().item())
for strategy in ("pyaev",):
    torch.manual_seed(1)
    model = arch.simple_ani(("H", "C", "N"), lot="wb97x-631gd", ensemble_size=2, strategy=strategy)
    print(strategy, sum(p.numel() for p in model.parameters()))
    print(strategy, model((species, coordinates)).energies.tolist())
    told, forces = energies_and_forces(model, species, coordinates.clone().requires_grad_())
    print(strategy, told.tolist(), forces.flatten()[:12].tolist())
    print(
        strategy, "atoms", model.atomic_energies((species, coordinates)).energies.flatten().tolist()
    )
single = model[0]
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
target = model((species, coordinates)).energies.detach() + 0.1
for _ in range(3):
    loss = (model((species, coordinates)).energies - target).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("loss", loss.item())
print(
    "padded",
    utils.pad_atomic_properties(
        [
            {"species": species[:1, :3], "coordinates": coordinates[:1, :3]},
            {"species": species[:1], "coordinates": coordinates[:1]},
        ]
    )["species"].tolist(),
)
scripted = torch.jit.script(single)
print("scripted", scripted((species[:1], coordinates[:1])).energies.tolist())
