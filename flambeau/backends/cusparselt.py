"""`torch.backends.cusparselt`: a library for GPUs, not there."""


def is_available() -> bool:
    """Whether cuSPARSELt is used: no."""
    return False


def version() -> int | None:
    """Its version; None, as it is not there."""
    return None


def get_max_alg_id() -> int | None:
    """How many algorithms it has; None, as it is not there."""
    return None
