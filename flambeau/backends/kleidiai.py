"""`torch.backends.kleidiai`."""


def is_available() -> bool:
    """Whether ARM's KleidiAI is used: no."""
    return False
