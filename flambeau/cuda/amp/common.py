"""`torch.cuda.amp.common`: whether mixed precision can be."""

from flambeau.cuda.amp import amp_definitely_not_available

__all__ = ["amp_definitely_not_available"]
