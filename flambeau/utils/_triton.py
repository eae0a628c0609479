"""`torch.utils._triton`: whether Triton compiles kernels here: it does not."""


def has_triton_package() -> bool:
    """Whether Triton is used: it is not."""
    return False


def has_triton() -> bool:
    """Whether Triton is used, and there is a device for it: neither."""
    return False
