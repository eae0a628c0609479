"""An LSTM over letters, trained on random chunks, and a text drawn from it."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
text = torch.randint(0, 20, (500,))


class Letters(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(20, 8)
        self.lstm = nn.LSTM(8, 16, num_layers=2, dropout=0.1, batch_first=True)
        self.head = nn.Linear(16, 20)

    def forward(self, ids, state=None):
        out, state = self.lstm(self.embedding(ids), state)
        return self.head(out), state


model = Letters()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(4):
    starts = torch.randint(0, 480, (8,)).tolist()
    batch = torch.stack([text[i : i + 17] for i in starts])
    logits, _ = model(batch[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_value_(model.parameters(), 0.5)
    optimizer.step()

model.eval()
ids, state = torch.zeros(1, 1, dtype=torch.long), None
with torch.no_grad():
    for _ in range(40):
        logits, state = model(ids[:, -1:], state)
        drawn = torch.multinomial(F.softmax(logits[:, -1], dim=-1), 1)
        ids = torch.cat([ids, drawn], dim=1)
assert ids.shape == (1, 41)
