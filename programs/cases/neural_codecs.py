"""snac: a neural audio codec; codes, sound back from codes, training steps, a saved model."""

import io

import torch
from snac import SNAC

torch.manual_seed(0)
shape = {"sampling_rate": 8000, "encoder_dim": 16, "encoder_rates": [2, 2, 3], "decoder_dim": 64}
shape |= {"decoder_rates": [3, 2, 2], "attn_window_size": 4, "codebook_size": 32}
model = SNAC(**shape, codebook_dim=4, vq_strides=[4, 2, 1], noise=True)
sound = torch.sin(torch.arange(400.0).view(1, 1, -1) / 7) + 0.1 * torch.randn(2, 1, 400)
print("parameters", sum(p.numel() for p in model.parameters()))
model.eval()
with torch.no_grad():
    codes = model.encode(sound)
    print("codes", [tuple(c.shape) for c in codes], [c[0, :12].tolist() for c in codes])
    torch.manual_seed(1)
    back = model.decode(codes)
    print("back", tuple(back.shape), back.abs().mean().item(), back[0, 0, :4].tolist())
model.train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.8, 0.99))
for step in range(4):
    torch.manual_seed(step)
    heard, codes = model(sound)
    loss = (heard - sound).abs().mean()
    loss = loss + (torch.stft(heard[:, 0], 64, window=torch.hann_window(64), return_complex=True)
                   - torch.stft(sound[:, 0], 64, window=torch.hann_window(64), return_complex=True)
                   ).abs().mean()  # fmt: skip
    optimizer.zero_grad()
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    print("step", step, loss.item(), norm.item())
file = io.BytesIO()
torch.save(model.state_dict(), file)
file.seek(0)
again = SNAC(**shape, codebook_dim=4, vq_strides=[4, 2, 1], noise=False)
print("loaded", again.load_state_dict(torch.load(file), strict=False).unexpected_keys[:2])
names = [name for name, _ in model.named_parameters() if "parametrizations" in name]
print("weights by norm", len(names), names[:2])
