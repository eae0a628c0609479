"""`torch.utils.serialization`: process-wide choices for files."""

from flambeau.utils.serialization import config

__all__ = ["config"]
