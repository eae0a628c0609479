"""`torch.cuda.set_sync_debug_mode`: where a program waits for the GPU, it is told.

The check stands in front of the driver's own function, so that it costs nothing when it is off.
"""

from __future__ import annotations

import warnings

from flambeau._runtime.cuda.driver import Driver

TEXT = "called a synchronizing CUDA operation"
OFF, WARN, ERROR = 0, 1, 2


class Chosen:
    """What happens: nothing, a warning, or an error."""

    mode = OFF


def choose(driver: Driver, mode: int) -> None:
    """Let a driver warn or refuse where `to_host` waits; OFF takes the check away."""
    Chosen.mode = mode
    vars(driver).pop("to_host", None)
    if mode == OFF:
        return
    plain = driver.to_host

    def checked(target: int, source: int, nbytes: int, stream: int, wait: bool = True) -> None:
        if wait and mode == ERROR:
            raise RuntimeError(TEXT)
        if wait:
            warnings.warn(TEXT, UserWarning, stacklevel=2)
        plain(target, source, nbytes, stream, wait)

    vars(driver)["to_host"] = checked
