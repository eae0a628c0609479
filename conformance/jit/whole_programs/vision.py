"""Models of images, and detection with its own non-maximum suppression."""

from typing import Callable, Dict, List, NamedTuple, Optional, Tuple, Type

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, inplanes: int, planes: int, stride: int = 1, downsample: Optional[nn.Module] = None):
        super().__init__()
        self.conv1 = nn.Conv2d(inplanes, planes, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(planes, planes, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        return self.relu(out)


class ResNet(nn.Module):
    """ResNet-18 with narrow layers."""

    def __init__(self, layers: List[int], width: int = 4, num_classes: int = 5):
        super().__init__()
        self.inplanes = width
        self.conv1 = nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        self.layer1 = self._make_layer(width, layers[0])
        self.layer2 = self._make_layer(2 * width, layers[1], stride=2)
        self.layer3 = self._make_layer(4 * width, layers[2], stride=2)
        self.layer4 = self._make_layer(8 * width, layers[3], stride=2)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(8 * width, num_classes)

    def _make_layer(self, planes: int, blocks: int, stride: int = 1) -> nn.Sequential:
        downsample = None
        if stride != 1 or self.inplanes != planes:
            convolution = nn.Conv2d(self.inplanes, planes, 1, stride, bias=False)
            downsample = nn.Sequential(convolution, nn.BatchNorm2d(planes))
        layers = [BasicBlock(self.inplanes, planes, stride, downsample)]
        self.inplanes = planes
        layers += [BasicBlock(planes, planes) for _ in range(1, blocks)]
        return nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        x = torch.flatten(self.avgpool(x), 1)
        return self.fc(x)


def make_resnet():
    return ResNet([2, 2, 2, 2]).eval()


def make_small_resnet():
    return ResNet([1, 1, 1, 1])


class UNet(nn.Module):
    def __init__(self, channels: int = 2):
        super().__init__()
        widths = [channels * 2**i for i in range(3)]
        pairs = zip([1] + widths[:-1], widths)
        self.down = nn.ModuleList([nn.Conv2d(a, b, 3, padding=1) for a, b in pairs])
        self.up = nn.ModuleList([nn.ConvTranspose2d(b, a, 2, stride=2) for a, b in zip(widths[-2::-1], widths[:0:-1])])
        self.merge = nn.ModuleList([nn.Conv2d(2 * a, a, 3, padding=1) for a in widths[-2::-1]])
        self.final = nn.Conv2d(channels, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        skipped: List[Tensor] = []
        for i, layer in enumerate(self.down):
            x = F.relu(layer(x))
            if i < 2:
                skipped.append(x)
                x = F.max_pool2d(x, 2)
        for i, (up, merge) in enumerate(zip(self.up, self.merge)):
            x = up(x)
            other = skipped[-1 - i]
            if x.shape[-2:] != other.shape[-2:]:
                x = F.interpolate(x, size=other.shape[-2:], mode="bilinear", align_corners=False)
            x = F.leaky_relu(merge(torch.cat([x, other], dim=1)), 0.1)
        return torch.sigmoid(self.final(x))


class VAE(nn.Module):
    def __init__(self, size: int = 6, latent: int = 2):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(size, 8), nn.ReLU())
        self.mean = nn.Linear(8, latent)
        self.log_variance = nn.Linear(8, latent)
        self.decoder = nn.Sequential(nn.Linear(latent, 8), nn.ReLU(), nn.Linear(8, size))

    def encode(self, x: Tensor) -> Tuple[Tensor, Tensor]:
        hidden = self.encoder(x)
        return self.mean(hidden), self.log_variance(hidden)

    def sample(self, mean: Tensor, log_variance: Tensor) -> Tensor:
        if not self.training:
            return mean
        std = torch.exp(0.5 * log_variance)
        return mean + torch.randn_like(std) * std

    @torch.jit.export
    def decode(self, z: Tensor) -> Tensor:
        return torch.sigmoid(self.decoder(z))

    def forward(self, x: Tensor) -> Tuple[Tensor, Tensor]:
        mean, log_variance = self.encode(x)
        result = self.decode(self.sample(mean, log_variance))
        error = F.binary_cross_entropy(result, x, reduction="sum")
        divergence = -0.5 * torch.sum(1 + log_variance - mean.pow(2) - log_variance.exp())
        return result, error + divergence


class Detections(NamedTuple):
    boxes: Tensor
    scores: Tensor
    labels: Tensor


def box_iou(a: Tensor, b: Tensor) -> Tensor:
    """Intersections over unions of all pairs of boxes (x1, y1, x2, y2)."""
    area_a = (a[:, 2] - a[:, 0]) * (a[:, 3] - a[:, 1])
    area_b = (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])
    low = torch.max(a[:, None, :2], b[:, :2])
    high = torch.min(a[:, None, 2:], b[:, 2:])
    sides = (high - low).clamp(min=0)
    both = sides[:, :, 0] * sides[:, :, 1]
    return both / (area_a[:, None] + area_b - both)


def nms(boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    order = scores.argsort(descending=True)
    iou = box_iou(boxes, boxes)
    kept: List[int] = []
    for i in range(order.numel()):
        candidate = int(order[i])
        suppressed = False
        for j in kept:
            if float(iou[candidate, j]) > threshold:
                suppressed = True
                break
        if not suppressed:
            kept.append(candidate)
    return torch.tensor(kept, dtype=torch.long)


class Detector(nn.Module):
    """What follows a detection network."""

    def __init__(self, score_threshold: float = 0.3, nms_threshold: float = 0.5, limit: int = 4):
        super().__init__()
        self.score_threshold = score_threshold
        self.nms_threshold = nms_threshold
        self.limit = limit
        self.register_buffer("anchors", torch.tensor([[0.0, 0.0, 2.0, 2.0]]).repeat(8, 1) + torch.arange(8.0)[:, None] / 2)

    def forward(self, deltas: Tensor, logits: Tensor) -> List[Detections]:
        results: List[Detections] = []
        for delta, logit in zip(deltas, logits):
            boxes = self.anchors + delta
            scores = torch.softmax(logit, -1)
            parts: List[Tuple[Tensor, Tensor, Tensor]] = []
            for label in range(1, scores.size(1)):
                score = scores[:, label]
                keep = torch.nonzero(score > self.score_threshold).squeeze(1)
                if keep.numel() == 0:
                    continue
                selected = keep[nms(boxes[keep], score[keep], self.nms_threshold)]
                labels = torch.full((selected.numel(),), label, dtype=torch.int64)
                parts.append((boxes[selected], score[selected], labels))
            if len(parts) == 0:
                empty = torch.zeros(0)
                results.append(Detections(empty.reshape(0, 4), empty, empty.to(torch.int64)))
                continue
            all_scores = torch.cat([part[1] for part in parts])
            top = all_scores.topk(min(self.limit, all_scores.numel())).indices
            all_boxes = torch.cat([part[0] for part in parts])
            results.append(Detections(all_boxes[top], all_scores[top], torch.cat([part[2] for part in parts])[top]))
        return results


PROGRAMS = {
    "resnet": (make_resnet, [(torch.randn(1, 3, 32, 32),), (torch.randn(2, 3, 17, 33),)]),
    "resnet_in_training": (make_small_resnet, [(torch.randn(4, 3, 32, 32),)]),
    "unet": (UNet, [(torch.rand(1, 1, 8, 8),), (torch.rand(1, 1, 10, 9),)]),
    "vae": (VAE, [(torch.rand(3, 6),)]),
    "box_iou": (box_iou, [(torch.tensor([[0.0, 0.0, 2.0, 2.0]]), torch.tensor([[1.0, 1.0, 3.0, 3.0], [5.0, 5.0, 6.0, 6.0]]))]),
    "detector": (Detector, [(torch.randn(2, 8, 4) / 4, torch.randn(2, 8, 3) * 2), (torch.zeros(1, 8, 4), torch.zeros(1, 8, 9))]),
}
