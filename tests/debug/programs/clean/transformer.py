"""A small transformer on sequences with padding."""

import torch
from torch import nn

torch.manual_seed(0)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.1, batch_first=True)
        self.embedding = nn.Embedding(30, 16, padding_idx=0)
        self.positions = nn.Parameter(torch.zeros(1, 12, 16))
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(16, 5)

    def forward(self, ids):
        x = self.embedding(ids) + self.positions[:, : ids.shape[1]]
        return self.head(self.encoder(x, src_key_padding_mask=ids == 0))


model = Tagger()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(3):
    ids = torch.randint(1, 30, (4, 9))
    ids[1, 6:] = 0
    tags = torch.where(ids == 0, -100, ids % 5)
    loss = nn.functional.cross_entropy(model(ids).transpose(1, 2), tags)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
model.eval()
with torch.no_grad():
    assert model(ids).argmax(-1).shape == ids.shape
