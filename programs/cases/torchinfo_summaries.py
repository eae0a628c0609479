"""torchinfo: a summary of a model."""

import torch
from torchinfo import summary

torch.manual_seed(0)
net = torch.nn.Sequential(
    torch.nn.Conv2d(3, 6, 3),
    torch.nn.BatchNorm2d(6),
    torch.nn.ReLU(),
    torch.nn.Flatten(),
    torch.nn.Linear(600, 4),
)
print(
    summary(
        net,
        (2, 3, 12, 12),
        verbose=0,
        col_names=("input_size", "output_size", "num_params", "kernel_size", "mult_adds"),
    )
)
print(summary(torch.nn.LSTM(4, 8, 2, batch_first=True), (2, 5, 4), verbose=0))
print(
    summary(
        torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), (2, 5, 8), verbose=0, depth=3
    )
)
