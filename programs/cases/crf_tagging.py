"""pytorch-crf: a conditional random field."""

import torch
from torchcrf import CRF

torch.manual_seed(0)
m = CRF(4, batch_first=True)
e = torch.randn(3, 6, 4, requires_grad=True)
t = torch.randint(0, 4, (3, 6))
mask = torch.tensor([[1] * 6, [1] * 4 + [0] * 2, [1] * 5 + [0]]).bool()
loss = -m(e, t, mask=mask, reduction="mean")
loss.backward()
print(loss.item(), e.grad.norm().item(), m.transitions.grad.norm().item(), m.decode(e, mask=mask))
