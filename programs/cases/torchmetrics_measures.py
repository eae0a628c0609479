"""Measures of torchmetrics on drawn predictions."""

import torch
import torchmetrics

torch.manual_seed(0)
scores, target = torch.randn(40, 5).softmax(-1), torch.randint(0, 5, (40,))
for name in (
    "Accuracy",
    "F1Score",
    "Precision",
    "Recall",
    "AUROC",
    "ConfusionMatrix",
    "CohenKappa",
):
    metric = getattr(torchmetrics, name)(task="multiclass", num_classes=5)
    metric.update(scores[:20], target[:20])
    metric.update(scores[20:], target[20:])
    print(name, metric.compute().tolist())
x, y = torch.randn(50), torch.randn(50)
for name in "MeanSquaredError MeanAbsoluteError R2Score PearsonCorrCoef SpearmanCorrCoef".split():
    print(name, getattr(torchmetrics, name)()(x, y).item())
images = torch.rand(2, 3, 32, 32), torch.rand(2, 3, 32, 32)
print("PSNR", torchmetrics.image.PeakSignalNoiseRatio(data_range=1.0)(*images).item())
print("SSIM", torchmetrics.image.StructuralSimilarityIndexMeasure(data_range=1.0)(*images).item())
