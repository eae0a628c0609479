"""`torch.backends.mps`."""


def is_available() -> bool:
    """Whether there is a GPU of Apple's that can be used: no."""
    return False


def is_built() -> bool:
    """Whether support for Apple's GPUs is built in: no."""
    return False
