"""`torch.fx.passes`: what is done with whole graphs. Each file is imported when it is asked for."""

from __future__ import annotations
