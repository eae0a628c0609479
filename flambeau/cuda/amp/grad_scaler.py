"""`torch.cuda.amp.grad_scaler`: where some programs import its names from."""

from flambeau.cuda.amp import GradScaler

__all__ = ["GradScaler"]
