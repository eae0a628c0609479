"""[2, 1] + [2] is [2, 2], and its sum is 12, not 6."""

import torch

a = torch.tensor([[1.0], [2.0]])
b = torch.tensor([1.0, 2.0])
c = a + b  # advice: both operands broadcast
total = torch.sum(c)  # advice: a reduction of a broadcast
assert total.item() == 12
