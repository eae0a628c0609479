"""torchvision: models, transforms, boxes."""

import torch
import torchvision
from torchvision.transforms import v2

torch.manual_seed(0)
images = torch.rand(2, 3, 64, 64)
for name in ("resnet18", "mobilenet_v3_small", "shufflenet_v2_x0_5"):
    torch.manual_seed(1)
    model = getattr(torchvision.models, name)(num_classes=4)
    loss = torch.nn.functional.cross_entropy(model(images), torch.tensor([1, 3]))
    loss.backward()
    print(name, loss.item(), sum(p.grad.norm().item() for p in model.parameters()))
torch.manual_seed(2)
turned = v2.Compose([v2.RandomResizedCrop(32), v2.RandomHorizontalFlip(), v2.ColorJitter(0.3, 0.3)])
print("transforms", turned(images).mean((2, 3)).tolist())
print("resize", v2.functional.resize(images, [20, 24]).std().item())
print("rotate", v2.functional.rotate(images, 30.0).mean().item())
boxes = torch.tensor([[0.0, 0, 4, 4], [1, 1, 5, 5], [2, 0, 3, 9]])
print("iou", torchvision.ops.box_iou(boxes, boxes).tolist())
