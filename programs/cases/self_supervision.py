"""lightly: losses, heads and models of learning without labels, with training steps."""

import copy
import os

os.environ["LIGHTLY_DID_VERSION_CHECK"] = "True"  # which asks the network

import torch
import torchvision
from lightly import loss as losses
from lightly.models import modules, utils
from torch import nn

torch.manual_seed(0)
one, two = torch.randn(8, 16), torch.randn(8, 16)
for kind, options in {
    "NTXentLoss": {},
    "BarlowTwinsLoss": {},
    "VICRegLoss": {},
    "NegativeCosineSimilarity": {},
    "DCLLoss": {},
    "DCLWLoss": {},
    "TiCoLoss": {},
    "MMCRLoss": {},
}.items():
    x = one.clone().requires_grad_()
    if kind == "MMCRLoss":
        told = losses.MMCRLoss()(torch.stack([x, two], 1), torch.stack([two, x], 1))
    else:
        told = getattr(losses, kind)(**options)(x, two)
    told.backward()
    print(kind, told.item(), x.grad.abs().mean().item())
bank = losses.NTXentLoss(memory_bank_size=(32, 16))
print("bank", [bank(torch.randn(8, 16), torch.randn(8, 16)).item() for _ in range(3)])
dino = losses.DINOLoss(output_dim=16, warmup_teacher_temp_epochs=2)
print("dino", dino([one, two], [one + 0.1, two], epoch=1).item())
swav = losses.SwaVLoss(sinkhorn_iterations=2)
print("swav", swav([one, two], [two]).item())


class BYOL(nn.Module):
    """A backbone and its slow copy."""

    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(*list(torchvision.models.resnet18().children())[:-1])
        self.projection = modules.BYOLProjectionHead(512, 32, 16)
        self.prediction = modules.BYOLPredictionHead(16, 32, 16)
        self.slow = copy.deepcopy(nn.Sequential(self.backbone, nn.Flatten(), self.projection))
        utils.deactivate_requires_grad(self.slow)

    def forward(self, x):
        return self.prediction(self.projection(self.backbone(x).flatten(1)))


torch.set_default_dtype(torch.float64)  # norms over four numbers: single precision shows rounding
model = BYOL()
criterion = losses.NegativeCosineSimilarity()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(2):
    views = torch.rand(2, 4, 3, 32, 32)
    utils.update_momentum(model.backbone, model.slow[0], m=0.9)
    utils.update_momentum(model.projection, model.slow[2], m=0.9)
    told = criterion(model(views[0]), model.slow(views[1]).detach())
    optimizer.zero_grad()
    told.backward()
    optimizer.step()
    print("byol", step, told.item())
print("tokens", utils.random_token_mask((2, 10), mask_ratio=0.4)[0].tolist())
heads = {
    "simclr": modules.SimCLRProjectionHead(16, 16, 8),
    "moco": modules.MoCoProjectionHead(16, 16, 8),
    "swav": modules.SwaVProjectionHead(16, 16, 8),
    "dino": modules.DINOProjectionHead(16, 16, 8, 12),
    "prototypes": modules.SwaVPrototypes(16, 5),
}
for name, head in heads.items():
    print(name, head(one.double()).abs().mean().item())
