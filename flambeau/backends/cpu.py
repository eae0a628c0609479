"""`torch.backends.cpu`."""


def get_cpu_capability() -> str:
    """The vector extension that flambeau's own kernels are compiled for: "DEFAULT", none.

    NumPy chooses its own by the processor; `flambeau env` shows what the processor has.
    """
    return "DEFAULT"
