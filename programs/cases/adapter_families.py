"""lycoris: low-rank adapters of many kinds, trained, merged, saved and loaded."""

import logging

import torch
from lycoris import LycorisNetwork, create_lycoris, create_lycoris_from_weights
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.images = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.GELU())
        self.mix = nn.Conv2d(8, 8, 1)
        self.norm = nn.LayerNorm(8)
        self.heads = nn.Sequential(nn.Linear(8, 16), nn.SiLU(), nn.Linear(16, 4))

    def forward(self, x):
        return self.heads(self.norm(self.mix(self.images(x)).mean((2, 3))))


logging.getLogger("LyCORIS").setLevel(logging.ERROR)
torch.manual_seed(0)
images, labels = torch.randn(12, 3, 8, 8), torch.randint(0, 4, (12,))
start = Net().state_dict()
for kind in ("lora", "loha", "lokr", "dylora", "diag-oft", "boft", "ia3", "glora", "full"):
    torch.manual_seed(1)
    net = Net()
    net.load_state_dict(start)
    LycorisNetwork.apply_preset({"target_module": ["Linear", "Conv2d"], "target_name": []})
    LycorisNetwork.apply_preset({"enable_conv": True})
    adapters = create_lycoris(
        net, 1.0, linear_dim=4, linear_alpha=2, conv_dim=4, conv_alpha=1, algo=kind
    )
    adapters.apply_to()
    trained = list(adapters.parameters())
    optimizer = torch.optim.AdamW(trained, lr=1e-2)
    losses = []
    for step in range(4):
        torch.manual_seed(step)
        loss = nn.functional.cross_entropy(net(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(kind, len(adapters.loras), sum(p.numel() for p in trained), losses)
    saved = {name: value.clone() for name, value in adapters.state_dict().items()}
    print("   keys", sorted(saved)[:2], sum(v.float().abs().sum().item() for v in saved.values()))
    if kind in ("lora", "loha", "lokr"):
        adapters.restore()
        adapters.merge_to(1.0)
        print("   merged", net(images).sum().item())
        torch.manual_seed(2)
        fresh = Net()
        fresh.load_state_dict(start)
        again, _ = create_lycoris_from_weights(1.0, "", fresh, saved)
        again.apply_to()
        again.load_state_dict(saved, strict=False)
        print("   loaded", fresh(images).sum().item())
