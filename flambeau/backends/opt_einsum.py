"""`torch.backends.opt_einsum`."""

enabled = False
strategy: str | None = None


def is_available() -> bool:
    """Whether opt_einsum chooses the order of contractions: no."""
    return False
