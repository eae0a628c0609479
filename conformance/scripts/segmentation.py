"""A U-Net in channels-last memory, fed by a DataLoader with its own collate function."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, WeightedRandomSampler, random_split

torch.manual_seed(3)


class Discs(Dataset):
    def __init__(self, count, transform=None):
        self.centres = torch.randint(4, 12, (count, 2))
        self.transform = transform

    def __len__(self):
        return len(self.centres)

    def __getitem__(self, index):
        y, x = torch.meshgrid(torch.arange(18), torch.arange(18), indexing="ij")
        row, column = self.centres[index]
        mask = ((y - row) ** 2 + (x - column) ** 2 < 16).float().unsqueeze(0)
        image = mask + 0.3 * torch.randn(mask.shape)
        return {"image": self.transform(image) if self.transform else image, "mask": mask}


def collate(samples):
    images = torch.stack([sample["image"] for sample in samples])
    return images.to(memory_format=torch.channels_last), torch.stack([s["mask"] for s in samples])


def convolutions(channels, features):
    return nn.Sequential(
        nn.Conv2d(channels, features, 3, padding=1, bias=False), nn.BatchNorm2d(features),
        nn.ReLU(inplace=True), nn.Conv2d(features, features, 3, padding=1),
        nn.GroupNorm(2, features), nn.SiLU(inplace=True),
    )  # fmt: skip


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1, self.down2 = convolutions(2, 4), convolutions(4, 8)
        self.bottom = convolutions(8, 16)
        self.pool = nn.MaxPool2d(2)
        self.grow = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
        self.transposed = nn.ConvTranspose2d(8, 8, 2, stride=2)
        self.up2, self.up1 = convolutions(24, 8), convolutions(12, 4)
        self.last = nn.Conv2d(4, 1, 1)

    def forward(self, x):
        first = self.down1(x)
        second = self.down2(self.pool(first))
        x = self.grow(self.bottom(self.pool(second)))
        rows, columns = (second.size(d) - x.size(d) for d in (2, 3))
        x = F.pad(x, [columns // 2, columns - columns // 2, rows // 2, rows - rows // 2])
        x = self.up2(torch.cat([x, second], dim=1))
        return self.last(self.up1(torch.cat([self.transposed(x), first], dim=1)))


def dice(scores, mask, eps=1e-6):
    found = torch.sigmoid(scores)
    overlap = (found * mask).sum(dim=(-1, -2))
    whole = found.sum(dim=(-1, -2)) + mask.sum(dim=(-1, -2))
    return (1 - (2 * overlap + eps) / (whole + eps)).mean()


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
dataset = Discs(40, transform=lambda image: torch.cat([image, image.flip(-1)]))
train, test = random_split(dataset, [0.8, 0.2], generator=torch.Generator().manual_seed(1))
loader = DataLoader(train, batch_size=8, shuffle=True, drop_last=True, collate_fn=collate)
model = UNet().to(device, memory_format=torch.channels_last)
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3, momentum=0.9, weight_decay=1e-8)
print(len(train), len(test), len(loader), sum(p.numel() for p in model.parameters()))
for epoch in range(2):
    for images, masks in loader:
        scores = model(images.to(device))
        loss = F.binary_cross_entropy_with_logits(scores, masks) + dice(scores, masks)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.4f} {images.stride()} {scores.shape}")

image = torch.randn(2, 4, 9, 9).to(memory_format=torch.channels_last)
for layer in (
    nn.Conv2d(4, 6, 3, stride=2), nn.ConvTranspose2d(4, 2, 3), nn.BatchNorm2d(4),
    nn.GroupNorm(2, 4), nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(3), nn.Upsample(scale_factor=2),
    nn.ReLU(), nn.Upsample(scale_factor=2, mode="bilinear"), nn.Conv2d(4, 4, 3, groups=2),
):  # fmt: skip
    result = layer(image)
    kept = result.is_contiguous(memory_format=torch.channels_last)
    print(type(layer).__name__, tuple(result.shape), result.stride(), kept)

weights = torch.tensor([0.1] * 5 + [0.9] * 5)
sampler = WeightedRandomSampler(weights, 6, replacement=True)
for batch in DataLoader([{"n": i, "name": f"s{i}"} for i in range(10)], 3, sampler=sampler):
    print(batch)
for wrong in (
    lambda: next(iter(DataLoader([torch.zeros(1), torch.zeros(2)], batch_size=2))),
    lambda: DataLoader(train, shuffle=True, sampler=sampler),
    lambda: model(torch.zeros(1, 3, 18, 18)),
    lambda: random_split(range(4), [1, 2]),
):
    try:
        wrong()
    except (RuntimeError, ValueError) as error:
        print(type(error).__name__, error)
