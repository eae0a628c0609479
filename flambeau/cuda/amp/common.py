"""`torch.cuda.amp.common`: where some programs import its names from."""

from flambeau.cuda.amp import amp_definitely_not_available

__all__ = ["amp_definitely_not_available"]
