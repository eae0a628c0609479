"""From a kernel's definition to a launch on a device.

    k = kernel(fill, Shape(threads=256), T=f32, V=4)   # from this process, the disk, the compiler
    k(blocks, x, count, 1.0)                           # into the current stream

Arguments are device arrays (their first element), addresses and numbers, 64 bits each. On the fake
driver the same text runs on the CPU, the threads of a block by turns.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable
from typing import Any

from flambeau._compiler.gpu.ptx import Shape
from flambeau._compiler.types import Pointer
from flambeau._runtime.cpu import address
from flambeau._runtime.cuda.driver import Driver
from flambeau._runtime.cuda.memory import Current, running

MAJOR, MINOR = 75, 76
"""The driver's numbers for a device's compute capability."""
Go = Callable[..., Any]
LOCK = threading.RLock()


class Several:
    """Whether there is more than one device: launches then go where their arrays are."""

    devices = False


class Kernel:
    """A kernel for given constants, and how each device is asked to run it."""

    __slots__ = ("devices", "letters", "native", "shape", "statics")

    def __init__(self, native: Any, shape: Shape, statics: dict[str, Any]) -> None:
        self.native, self.shape, self.statics = native, shape, statics
        types = [native.type_of(p, dict(statics)) for p in native.parameters if not p.static]
        self.letters = "".join(
            "Q" if isinstance(t, Pointer) else "d" if t.is_float else "q" for t in types
        )
        self.devices: dict[int, Go] = {}

    def __call__(self, blocks: int, *arguments: Any) -> None:
        """Put a launch into the current stream of the device that the arrays lie on."""
        if watching is not None:
            watching.launched(self, blocks, arguments)
        go = self.devices.get(Current.device)
        if go is None or Several.devices:
            self._with_its_device(blocks, arguments)
        else:
            go(Current.stream, blocks, *arguments)

    def _with_its_device(self, blocks: int, arguments: tuple[Any, ...]) -> None:
        """The same where there is more than one device, or the kernel is not loaded yet."""
        current = Current.device
        device = next((a.place.index for a in arguments if hasattr(a, "place")), current)
        stream = Current.stream if device == current else Current.streams.get(device, 0)
        use = running(device)
        Several.devices = use.device_count() > 1
        try:
            (self.devices.get(device) or self._on(device))(stream, blocks, *arguments)
        finally:
            if device != current:
                use.use(current)

    def _on(self, device: int) -> Go:
        """The launching function of a device, which is the current one."""
        with LOCK:
            driver = running(device)
            made = self._emulated(driver) if driver.fake else self._loaded(driver, device)
            self.devices[device] = made
            return made

    def _emulated(self, driver: Any) -> Go:
        from flambeau._runtime.cuda import emulator

        pointers = tuple(letter == "Q" for letter in self.letters)
        run = emulator.launcher(self.native, self.statics, pointers, driver.distance)
        names = [parameter.name for parameter in self.native.parameters if not parameter.static]
        places = [place for place, is_pointer in enumerate(pointers) if is_pointer]
        writes = [place for place in places if names[place] not in self.shape.reads]
        return self._through(driver, driver.register(run, writes, places))

    def _loaded(self, driver: Driver, device: int) -> Go:
        from flambeau._runtime.cuda import assemble, trampoline

        capability = (driver.attribute(device, MAJOR), driver.attribute(device, MINOR))
        arch = assemble.architecture(capability)
        image = assemble.image(self.native, self.statics, self.shape, arch)
        function = driver.function(driver.load_module(image), self.native.name)
        entry = trampoline.launch_address(driver)
        if not entry or len(self.letters) > trampoline.MOST:
            return self._through(driver, function)
        return trampoline.made(driver, entry, self.letters, function, self.shape.threads)

    def _through(self, driver: Driver, function: int) -> Go:
        """A launch by way of the driver's interface."""
        pack = struct.Struct(self.letters).pack
        threads, letters = self.shape.threads, self.letters

        def go(stream: int, blocks: int, *arguments: Any) -> None:
            words = [
                value if letter != "Q" or value.__class__ is int else address(value)
                for letter, value in zip(letters, arguments, strict=True)
            ]
            driver.launch(function, (blocks, 1, 1), threads, 0, stream, pack(*words))

        return go


watching: Any = None
"""What is told of every launch (`_ops.cuda.repeating`), if something is."""


def unseen() -> None:
    """Say that work is put into a stream of which nothing else is told: it cannot be repeated."""
    if watching is not None:
        watching.is_whole = False


KERNELS: dict[Any, Kernel] = {}


def kernel(native: Any, shape: Shape, **statics: Any) -> Kernel:
    """The kernel for these constants; compiled for a device when it is first launched there."""
    key = (native, shape, *statics.items())
    found = KERNELS.get(key)
    if found is None:
        found = KERNELS.setdefault(key, Kernel(native, shape, statics))
    return found
