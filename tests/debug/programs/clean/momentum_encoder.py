"""A student, and a teacher whose weights follow; the teacher has no gradients."""

import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
student = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 8))
teacher = copy.deepcopy(student).requires_grad_(False)
optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
for _ in range(5):
    first, second = torch.randn(12, 6), torch.randn(12, 6)
    with torch.no_grad():
        keys = torch.cat([teacher(first), teacher(second)])
    queries = torch.cat([student(second), student(first)])
    logits = F.normalize(queries, dim=1) @ F.normalize(keys, dim=1).T / 0.2
    loss = F.cross_entropy(logits, torch.arange(24))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for old, new in zip(teacher.parameters(), student.parameters(), strict=True):
            old.lerp_(new, 0.1)
