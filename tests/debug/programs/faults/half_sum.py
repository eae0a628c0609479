"""A total in float16 that stands still at 2048."""

import torch

total = torch.tensor(2000.0, dtype=torch.float16)
one = torch.ones((), dtype=torch.float16)
for _ in range(100):
    total = total + one  # advice: a sum that stands still
assert total.item() == 2048

mean = torch.zeros((), dtype=torch.bfloat16)
part = torch.tensor(1.0, dtype=torch.bfloat16)
for _ in range(300):
    mean += part  # advice: a sum that stands still
assert mean.item() == 256
