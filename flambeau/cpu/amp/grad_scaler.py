"""`torch.cpu.amp.grad_scaler`: where some programs import its names from."""

from flambeau.cpu.amp import GradScaler

__all__ = ["GradScaler"]
