"""`torch.cuda.amp.common`: whether mixed precision can be."""

from flambeau.amp.old_names import amp_definitely_not_available

__all__ = ["amp_definitely_not_available"]
