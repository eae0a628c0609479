"""Sliding windows over a series, cut out one by one."""

import torch

series = torch.arange(100.0)
windows = torch.stack([series[i : i + 5] for i in range(96)])  # advice: a loop of slices
assert windows.shape == (96, 5)
