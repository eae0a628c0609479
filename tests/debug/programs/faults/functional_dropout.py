"""`F.dropout` does not ask for the mode of the module that calls it."""

import torch
import torch.nn.functional as F


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(4, 8), torch.nn.Linear(8, 2)

    def forward(self, x):
        hidden = torch.relu(self.first(x))
        return self.second(F.dropout(hidden, 0.5))  # advice: dropout in eval mode


net = Net().eval()
with torch.inference_mode():
    net(torch.randn(3, 4))
