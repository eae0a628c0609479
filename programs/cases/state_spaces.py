"""mambapy: Mamba, Jamba and the vision form, by parallel scans and step by step."""

import torch
from mambapy.jamba import JambaLM, JambaLMConfig
from mambapy.mamba import Mamba, MambaConfig
from mambapy.vim import MambaConfig as VisionConfig
from mambapy.vim import VMamba
from torch import nn

torch.manual_seed(0)
words = torch.randn(2, 21, 16)
for scan in (True, False):
    torch.manual_seed(1)
    net = Mamba(MambaConfig(d_model=16, n_layers=2, d_state=4, pscan=scan))
    out = net(words)
    net.zero_grad()
    out.square().mean().backward()
    slopes = sum(p.grad.abs().sum().item() for p in net.parameters())
    print("scan" if scan else "loop", out.abs().mean().item(), out[0, -1, :3].tolist(), slopes)
net.eval()
caches = [(None, torch.zeros(2, net.config.d_inner, net.config.d_conv - 1)) for _ in net.layers]
with torch.no_grad():
    whole = net(words)
    for at in range(words.shape[1]):
        step, caches = net.step(words[:, at], caches)
print("step by step", (step - whole[:, -1]).abs().max().item() < 1e-4, step[0, :3].tolist())
torch.manual_seed(3)
vision = VMamba(VisionConfig(d_model=16, n_layers=2, d_state=4))
print("vision", vision(words).abs().mean().item())
torch.manual_seed(4)
model = nn.Sequential(
    nn.Embedding(40, 32), Mamba(MambaConfig(d_model=32, n_layers=2, d_state=4)), nn.Linear(32, 40)
)
ids = torch.randint(0, 40, (4, 16))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for step in range(6):
    logits = model(ids[:, :-1])
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("language", step, loss.item())
print("written", model(ids[:1])[0].argmax(-1).tolist())
torch.manual_seed(6)
mixed = JambaLM(
    JambaLMConfig(d_model=32, n_layers=4, mlp_size=48, d_state=4, num_attention_heads=4,
                  num_key_value_heads=2, num_experts=4, attn_layer_offset=1, attn_layer_period=2,
                  vocab_size=40)
)  # fmt: skip
logits, routes = mixed(ids)
loss = nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
loss.backward()
slopes = sum(p.grad.abs().sum().item() for p in mixed.parameters() if p.grad is not None)
print("jamba", tuple(logits.shape), loss.item(), slopes, [r is None for r in routes])
