"""The mean of each row's neighbours, row by row."""

import torch


def smoothed(rows: torch.Tensor) -> torch.Tensor:
    out = []
    for i in range(rows.shape[0]):
        row = rows[i]  # advice: a loop of slices
        out.append((row[:-1] + row[1:]) / 2)
    return torch.stack(out)


assert smoothed(torch.rand(40, 8)).shape == (40, 7)
