"""`torch.mps`: Apple's GPUs: there are none; what needs one is not here."""

from __future__ import annotations

from flambeau._core.missing import lazily


def is_available() -> bool:
    """Whether there is such a device: no."""
    return False


def device_count() -> int:
    """The number of such devices: 0."""
    return 0


def manual_seed(seed: int) -> None:
    """Seed the current device: there is none."""
    int(seed)


def synchronize() -> None:
    """Wait for the device: RuntimeError, since there is none."""
    raise RuntimeError("Cannot execute deviceSynchronize() without MPS backend.")


__getattr__ = lazily(__name__)
