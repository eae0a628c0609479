"""Datasets: by index, in order and shuffled; a stream that is split over workers."""

import itertools

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info


class Pairs(Dataset):
    def __init__(self):
        self.inputs, self.labels = torch.rand(60, 5), torch.arange(60) % 4

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.inputs[index] * 2 - 1, int(self.labels[index])


class Numbers(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        yield from (torch.tensor([n]) for n in itertools.islice(range(64), first, None, step))


data = Pairs()
for workers in (0, 2):
    count = sum(len(labels) for _, labels in DataLoader(data, batch_size=7, num_workers=workers))
    assert count == 60
numbers = torch.cat(list(DataLoader(Numbers(), batch_size=4, num_workers=2)))
assert sorted(numbers.flatten().tolist()) == list(range(64))
