"""Modules that call recurrent layers, for tensors and for packed sequences."""

from typing import Optional, Tuple

import torch
from torch import Tensor, nn


class Holder(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, input: Tensor, state: Optional[Tensor] = None):
        return self.layer(input, state)


class HolderOfPair(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, input: Tensor, state: Optional[Tuple[Tensor, Tensor]] = None):
        return self.layer(input, state)


class Packer(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, rows: Tensor, sizes: Tensor):
        packed = torch.nn.utils.rnn.PackedSequence(rows, sizes, None, None)
        output, state = self.layer(packed)
        return output.data, state
