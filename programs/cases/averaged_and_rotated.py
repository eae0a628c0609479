"""ema-pytorch, rotary-embedding-torch, performer-pytorch: averages of weights, rotated positions,
attention in linear time."""

import torch
from ema_pytorch import EMA
from performer_pytorch import Performer, PerformerLM, SelfAttention
from rotary_embedding_torch import RotaryEmbedding

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 2))
ema = EMA(net, beta=0.99, update_after_step=1, update_every=1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(5):
    optimizer.zero_grad()
    net(torch.randn(16, 4)).square().mean().backward()
    optimizer.step()
    ema.update()
x = torch.randn(3, 4)
ema.eval()
print("ema", float(ema(x).sum()), float(net.eval()(x).sum()), int(ema.step))

rotary = RotaryEmbedding(dim=8)
q, k = torch.randn(1, 2, 16, 8), torch.randn(1, 2, 16, 8)
print("rotary", float(rotary.rotate_queries_or_keys(q).abs().sum()))
scores = (rotary.rotate_queries_or_keys(q) @ rotary.rotate_queries_or_keys(k).mT).softmax(-1)
print("scores", float(scores.square().sum()))
both = RotaryEmbedding(dim=8, use_xpos=True).rotate_queries_and_keys(q, k)
print("xpos", float(both[0].abs().sum()), float(both[1].abs().sum()))
planes = RotaryEmbedding(dim=4, freqs_for="pixel", max_freq=8).get_axial_freqs(3, 4)
print("axial", planes.shape, float(planes.abs().sum()))

torch.manual_seed(1)
attention = SelfAttention(dim=32, heads=2, causal=False, dim_head=16)
print("attention", float(attention(torch.randn(1, 20, 32)).abs().sum()))
model = Performer(dim=16, depth=1, heads=2, dim_head=8)
out = model(torch.randn(1, 12, 16))
out.square().sum().backward()
print(
    "performer",
    float(out.sum()),
    sum(float(p.grad.abs().sum()) for p in model.parameters() if p.grad is not None),
)
language = PerformerLM(
    num_tokens=20, max_seq_len=16, dim=16, depth=1, heads=2, dim_head=8, causal=False
)
print("language", float(language(torch.arange(12)[None] % 20).abs().sum()))
