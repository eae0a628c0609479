"""What is behind `torchrun`: starting the processes of a program, watching them, ending them."""

from __future__ import annotations

from flambeau.distributed.launcher.agent import Job, launch

__all__ = ["Job", "launch"]
