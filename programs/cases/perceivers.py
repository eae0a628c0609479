"""perceiver-pytorch: attention from few latents to many inputs, trained and saved."""

import io

import torch
from perceiver_pytorch import Perceiver, PerceiverIO, PerceiverLM
from torch import nn

torch.manual_seed(10)
images = torch.randn(2, 12, 12, 3)
model = Perceiver(
    input_channels=3, input_axis=2, num_freq_bands=4, max_freq=10.0, depth=2, num_latents=8,
    latent_dim=16, cross_heads=1, latent_heads=4, cross_dim_head=8, latent_dim_head=8,
    num_classes=5, attn_dropout=0.0, ff_dropout=0.1, weight_tie_layers=True,
    self_per_cross_attn=2,
)  # fmt: skip
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(3):
    loss = nn.functional.cross_entropy(model(images), torch.tensor([1, 4]))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("images", step, loss.item())
file = io.BytesIO()
torch.save(model, file)
file.seek(0)
print("loaded", torch.load(file, weights_only=False).eval()(images).tolist())
print(sum(p.numel() for p in model.parameters()), len(model.state_dict()))
model = PerceiverIO(dim=8, queries_dim=6, logits_dim=4, depth=2, num_latents=5, latent_dim=12,
                    cross_dim_head=4, latent_dim_head=4, latent_heads=2)  # fmt: skip
mask = torch.arange(9).expand(2, 9) < torch.tensor([[9], [5]])
found = model(torch.randn(2, 9, 8), mask=mask, queries=torch.randn(3, 6))
found.square().sum().backward()
print("IO", found.tolist(), sum(p.grad.abs().sum().item() for p in model.parameters()))
words = PerceiverLM(num_tokens=20, dim=8, max_seq_len=12, depth=1, num_latents=4, latent_dim=12)
ids = torch.randint(0, 20, (2, 12))
print("words", tuple(words(ids).shape), words(ids).argmax(-1).tolist())
