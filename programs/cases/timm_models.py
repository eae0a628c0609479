"""Small models of timm: outputs, a training step, features."""

import timm
import torch

for name in ("resnet10t", "mobilenetv3_small_050", "vit_tiny_patch16_224", "convnext_atto"):
    torch.manual_seed(0)
    model = timm.create_model(name, num_classes=5)
    x = torch.randn(2, 3, 224, 224)
    model.train()
    loss = torch.nn.functional.cross_entropy(model(x), torch.tensor([1, 3]))
    loss.backward()
    print(name, "loss", loss.item(), "grad", sum(p.grad.norm().item() for p in model.parameters()))
    print(name, model.eval()(x).tolist())
