"""Transforms of images, of Pillow's and of tensors [..., C, H, W], under torchvision's names.

    transform = Compose([RandomResizedCrop(224), RandomHorizontalFlip(), ToTensor(),
                         Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))])

Random choices come from torch's random stream, so that a seed, or a worker's, decides them.
"""

from __future__ import annotations

from flambeau.utils.data.transforms.basic import Compose, Lambda, Normalize, ToTensor
from flambeau.utils.data.transforms.chance import (
    RandomCrop,
    RandomHorizontalFlip,
    RandomResizedCrop,
    RandomVerticalFlip,
)
from flambeau.utils.data.transforms.geometry import CenterCrop, Resize

__all__ = [
    "CenterCrop",
    "Compose",
    "Lambda",
    "Normalize",
    "RandomCrop",
    "RandomHorizontalFlip",
    "RandomResizedCrop",
    "RandomVerticalFlip",
    "Resize",
    "ToTensor",
]
