"""monai: networks, losses, transforms and sliding windows of medical images."""

import numpy as np
import torch
from monai.data import CacheDataset, DataLoader, decollate_batch
from monai.inferers import sliding_window_inference
from monai.losses import DiceCELoss, FocalLoss, TverskyLoss
from monai.metrics import DiceMetric, HausdorffDistanceMetric
from monai.networks.nets import SegResNet, SwinUNETR, UNet, ViT
from monai.transforms import (
    AsDiscrete,
    Compose,
    EnsureChannelFirstd,
    RandAffined,
    RandFlipd,
    RandGaussianNoised,
    ScaleIntensityd,
    ToTensord,
)
from monai.utils import set_determinism

set_determinism(0)
random = np.random.default_rng(0)
cases = []
for _ in range(4):
    image = random.normal(size=(24, 24)).astype(np.float32)
    cases.append({"image": image, "label": (image > 0.5).astype(np.float32)})
keys = ["image", "label"]
prepare = Compose(
    [
        EnsureChannelFirstd(keys, channel_dim="no_channel"),
        ScaleIntensityd("image"),
        RandFlipd(keys, prob=0.5, spatial_axis=0),
        RandAffined(
            keys, prob=1.0, rotate_range=0.3, scale_range=0.1, mode=("bilinear", "nearest")
        ),
        RandGaussianNoised("image", prob=0.5, std=0.05),
        ToTensord(keys),
    ]
)
prepare.set_random_state(0)
loader = DataLoader(CacheDataset(cases, prepare, progress=False), batch_size=2)
torch.manual_seed(0)
net = UNet(spatial_dims=2, in_channels=1, out_channels=2, channels=(4, 8, 16), strides=(2, 2),
           num_res_units=1)  # fmt: skip
loss = DiceCELoss(to_onehot_y=True, softmax=True)
optimizer = torch.optim.Adam(net.parameters(), 1e-2)
dice = DiceMetric(include_background=False)
discrete = Compose([AsDiscrete(argmax=True, to_onehot=2)])
for _ in range(2):
    for batch in loader:
        optimizer.zero_grad()
        found = net(batch["image"])
        error = loss(found, batch["label"])
        error.backward()
        optimizer.step()
        dice([discrete(one) for one in decollate_batch(found)],
             [AsDiscrete(to_onehot=2)(one) for one in decollate_batch(batch["label"])])  # fmt: skip
        print("unet", error.item(), float(batch["image"].mean()))
print("dice", dice.aggregate().item())

net.eval()
with torch.no_grad():
    whole = sliding_window_inference(torch.rand(1, 1, 40, 40), (16, 16), 2, net, overlap=0.5)
print("window", whole.mean((0, 2, 3)).tolist())
torch.manual_seed(1)
volume = torch.rand(1, 1, 16, 16, 16)
print("segresnet", SegResNet(init_filters=8, in_channels=1, out_channels=2)(volume).mean().item())
vit = ViT(in_channels=1, img_size=(16, 16, 16), patch_size=(8, 8, 8), hidden_size=24, mlp_dim=32,
          num_layers=2, num_heads=2, classification=True, num_classes=3)  # fmt: skip
print("vit", vit(volume)[0].tolist())
swin = SwinUNETR(in_channels=1, out_channels=2, feature_size=12, spatial_dims=2)
print("swin", swin(torch.rand(1, 1, 64, 64)).mean((0, 2, 3)).tolist())
scores, truth = torch.randn(2, 1, 8, 8), torch.randint(0, 2, (2, 1, 8, 8)).float()
print("losses", FocalLoss()(scores, truth).item(), TverskyLoss(sigmoid=True)(scores, truth).item())
distance = HausdorffDistanceMetric(include_background=True)
distance((scores > 0).float(), truth)
print("hausdorff", distance.aggregate().item())
