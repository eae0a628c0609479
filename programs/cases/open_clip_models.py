"""open_clip: pictures and texts through tiny CLIP models, their loss, the tokenizer."""

import open_clip
import torch
from open_clip.model import CLIP, CLIPTextCfg, CLIPVisionCfg

torch.manual_seed(0)

m = CLIP(
    32,
    CLIPVisionCfg(layers=2, width=64, head_width=16, patch_size=8, image_size=32),
    CLIPTextCfg(context_length=16, vocab_size=100, width=32, heads=2, layers=2),
)
x = torch.randn(3, 3, 32, 32)
t = torch.randint(1, 100, (3, 16))
i, tx, s = m(x, t)
print("clip", i.flatten()[:5].tolist(), tx.flatten()[:5].tolist(), s.item())
loss = open_clip.ClipLoss()(i, tx, s)
loss.backward()
print("loss", loss.item(), m.visual.conv1.weight.grad.norm().item())
print("tok", open_clip.SimpleTokenizer(context_length=10)(["a photo of a cat"]).tolist())
print("models", len(open_clip.list_models()) > 10)
m = CLIP(
    32,
    CLIPVisionCfg(layers=(1, 1, 1, 1), width=16, image_size=32, head_width=16),
    CLIPTextCfg(context_length=16, vocab_size=100, width=32, heads=2, layers=1),
).eval()
print("rn", m.encode_image(x).abs().mean().item())
