"""`torch.cuda.amp.autocast_mode`: the old names of `torch.amp.autocast`."""

from flambeau.cuda.amp import autocast, custom_bwd, custom_fwd

__all__ = ["autocast", "custom_bwd", "custom_fwd"]
