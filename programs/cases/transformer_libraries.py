"""x-transformers and vit-pytorch: losses and gradients."""

import torch
from vit_pytorch import SimpleViT, ViT
from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper

torch.manual_seed(0)
for kind in (ViT, SimpleViT):
    model = kind(image_size=32, patch_size=8, num_classes=5, dim=32, depth=2, heads=4, mlp_dim=64)
    loss = model(torch.randn(2, 3, 32, 32)).square().mean()
    loss.backward()
    print(kind.__name__, loss.item(), sum(p.grad.norm().item() for p in model.parameters()))
layers = Decoder(dim=32, depth=2, heads=4, rotary_pos_emb=True, attn_dim_head=8)
text = AutoregressiveWrapper(TransformerWrapper(num_tokens=40, max_seq_len=32, attn_layers=layers))
ids = torch.randint(0, 40, (2, 16))
loss = text(ids)
loss.backward()
print("x-transformers", loss.item())
print("greedy", text.eval().generate(ids[:, :4], 8, temperature=0.0).tolist())
