"""A histogram that reads every element by itself."""

import torch

torch.manual_seed(0)
values = torch.randint(0, 10, (200,))
counts = [0] * 10
for value in values:
    counts[value.item()] += 1  # advice: numbers read in a loop
assert sum(counts) == 200

total = 0.0
chunks = torch.rand(100, 4).split(1)
for chunk in chunks:
    total += float(chunk.sum())  # advice: numbers read in a loop
