"""`torch.cuda.amp.grad_scaler`: the old name of `torch.amp.GradScaler`."""

from flambeau.cuda.amp import GradScaler

__all__ = ["GradScaler"]
