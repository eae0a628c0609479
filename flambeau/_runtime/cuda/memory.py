"""Device memory by the piece: a block goes back when nobody holds it any more."""

from __future__ import annotations

from flambeau._runtime.cuda.driver import Driver, driver


class Current:
    """The device and the stream that work is put into; 0 is the default stream."""

    device = 0
    stream = 0


def running(device: int | None = None) -> Driver:
    """The driver, for code that is only reached where there is one; it works on `device`, by
    default the current one.

    Raises:
        AssertionError: there is none.
    """
    found = driver()
    if found is None:
        raise AssertionError("Torch not compiled with CUDA enabled")
    found.use(Current.device if device is None else device)
    return found


class Block:
    """Memory of a device, `address` to `address + nbytes`."""

    __slots__ = ("address", "device", "nbytes")

    def __init__(self, nbytes: int, device: int) -> None:
        self.address = running(device).allocate(nbytes)
        self.nbytes, self.device = nbytes, device

    def __del__(self) -> None:
        running(self.device).free(self.address)
