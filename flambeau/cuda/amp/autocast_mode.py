"""`torch.cuda.amp.autocast_mode`: where some programs import its names from."""

from flambeau.cuda.amp import autocast, custom_bwd, custom_fwd

__all__ = ["autocast", "custom_bwd", "custom_fwd"]
