"""DistributedDataParallel as its documentation shows it; started by torchrun."""

import json
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def main() -> None:
    alone = sys.argv[1] == "alone"
    if not alone:
        dist.init_process_group("gloo")
    size = 1 if alone else dist.get_world_size()
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(10, 20), torch.nn.ReLU(), torch.nn.Linear(20, 5))
    x = torch.arange(640.0).reshape(64, 10).mul(0.37).sin()
    data = TensorDataset(x, x @ torch.arange(50.0).reshape(10, 5).cos())
    if alone:
        loader = DataLoader(data, batch_size=16)
        trained = model
    else:
        sampler = DistributedSampler(data, shuffle=False)
        loader = DataLoader(data, batch_size=16 // size, sampler=sampler)
        trained = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(trained.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for _ in range(3):
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(trained(inputs), targets)
            loss.backward()
            optimizer.step()
            seen = loss.detach().clone()
            if not alone:
                dist.all_reduce(seen)
                seen /= size
            losses.append(seen.item())
    if alone or dist.get_rank() == 0:
        print(json.dumps(losses))
    if not alone:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
