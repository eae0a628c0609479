"""A classifier: training, evaluation, a schedule, running totals."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
inputs, targets = torch.randn(96, 6), torch.arange(96) % 3
train = DataLoader(TensorDataset(inputs, targets), batch_size=16, shuffle=True)
test = DataLoader(TensorDataset(inputs, targets), batch_size=8)
body = [nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.1)]
model = nn.Sequential(*body, nn.Linear(16, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=3)
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
for _ in range(3):
    model.train()
    running = 0.0
    for x, y in train:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        running += loss.item() * len(x)
    scheduler.step()
    model.eval()
    correct = 0
    with torch.no_grad():
        for x, y in test:
            correct += (model(x).argmax(1) == y).sum().item()
    print(f"{running / len(inputs):.3f} {correct / len(inputs):.2f}")
