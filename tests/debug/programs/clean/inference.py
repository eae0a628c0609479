"""Predictions of a trained model, the best three of each."""

import torch
from torch import nn

torch.manual_seed(0)
hidden = [nn.Linear(10, 32), nn.LayerNorm(32), nn.GELU(), nn.Dropout(0.3)]
model = nn.Sequential(*hidden, nn.Linear(32, 7))
model.eval()
names = [f"class {k}" for k in range(7)]
with torch.inference_mode():
    for batch in torch.randn(40, 10).split(8):
        probabilities = model(batch).softmax(dim=1)
        values, indices = probabilities.topk(3)
        for row, best in zip(values.tolist(), indices.tolist(), strict=True):
            text = ", ".join(f"{names[k]} {p:.2f}" for k, p in zip(best, row, strict=True))
    entropy = torch.special.entr(probabilities).sum(1)
assert 0 < entropy.mean() < 2
