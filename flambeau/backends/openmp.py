"""`torch.backends.openmp`."""


def is_available() -> bool:
    """Whether OpenMP is used: no."""
    return False
