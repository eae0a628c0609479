"""`torch.cpu.amp.autocast_mode`: where some programs import its names from."""

from flambeau.cpu.amp import autocast

__all__ = ["autocast"]
