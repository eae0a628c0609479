"""segmentation-models-pytorch: three architectures, a loss, a measure."""

import segmentation_models_pytorch as smp
import torch

torch.manual_seed(0)
for m in (
    smp.Unet("resnet18", encoder_weights=None, classes=2),
    smp.FPN("mobilenet_v2", encoder_weights=None, classes=2),
    smp.DeepLabV3Plus("resnet18", encoder_weights=None, classes=2),
):
    m.train()
    x = torch.randn(2, 3, 64, 64)
    y = m(x)
    total = smp.losses.DiceLoss("multiclass")(y, torch.randint(0, 2, (2, 64, 64)))
    total.backward()
    print(type(m).__name__, y.abs().mean().item(), total.item())
tp, fp, fn, tn = smp.metrics.get_stats(
    torch.randint(0, 2, (2, 1, 8, 8)), torch.randint(0, 2, (2, 1, 8, 8)), mode="binary"
)
print("iou", smp.metrics.iou_score(tp, fp, fn, tn, reduction="micro").item())
