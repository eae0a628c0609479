"""Where a tensor lives: `torch.device`."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from numbers import Integral
from typing import Any

from flambeau._core.settings import warn_user

KINDS = (
    "cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga",
    "maia", "xla", "lazy", "vulkan", "mps", "meta", "hpu", "mtia", "privateuseone",
)  # fmt: skip


class device:
    """A device kind and an optional index: `device("cuda:0")`, `device("cuda", 0)`.

    >>> import flambeau as torch
    >>> torch.device("cuda", 1)
    device(type='cuda', index=1)
    >>> torch.device("cpu").type
    'cpu'
    """

    __slots__ = ("index", "type")
    type: str
    index: int | None

    def __init__(self, type: Any = None, index: int | None = None, *, device: Any = None) -> None:
        chosen = device if type is None else type
        if not isinstance(chosen, (str, bool)) and isinstance(chosen, Integral):
            index = int(chosen)
            chosen = "cuda"
            if index >= 0 and not Cuda.devices():
                raise RuntimeError("Cannot access accelerator device when none is available.")
        if isinstance(index, int) and index < 0:
            raise RuntimeError("Device index must not be negative")
        if hasattr(chosen, "type"):
            chosen, index = chosen.type, chosen.index
        if not isinstance(chosen, str):
            raise TypeError(f"device(): argument 'type' must be str, not {_name(chosen)}")
        kind, colon, number = chosen.partition(":")
        if kind not in KINDS:
            raise _kind_error(chosen, kind)
        if colon:
            index = _parse_index(chosen, number, index)
        object.__setattr__(self, "type", kind)
        object.__setattr__(self, "index", index)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"attribute '{name}' of 'torch.device' objects is not writable")

    def __repr__(self) -> str:
        if self.index is None:
            return f"device(type='{self.type}')"
        return f"device(type='{self.type}', index={self.index})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        is_same = isinstance(other, device) and self.type == other.type
        return is_same and self.index == other.index  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __reduce__(self) -> Any:
        return (device, (str(self),))

    def __enter__(self) -> device:
        thread.blocks.append(self)
        Defaults.touched = True
        return self

    def __exit__(self, *exc: object) -> None:
        if not thread.blocks:
            raise RuntimeError("trying to pop from empty mode stack")
        thread.blocks.pop()


def _name(value: Any) -> str:
    return type(value).__name__


def _kind_error(text: str, kind: str) -> RuntimeError:
    """Torch's error for a string that begins with no device type."""
    if not text:
        return RuntimeError("Device string must not be empty")
    if not re.fullmatch(r"[A-Za-z_]+(:(0|[1-9]\d*))?", text, re.ASCII):
        return RuntimeError(f"Invalid device string: '{text}'")
    kinds = ", ".join(KINDS)
    return RuntimeError(f"Expected one of {kinds} device type at start of device string: {kind}")


def _parse_index(text: str, number: str, index: int | None) -> int:
    if not number.isdigit() or (len(number) > 1 and number[0] == "0"):
        raise RuntimeError(f"Invalid device string: '{text}'")
    if index is not None:
        raise RuntimeError(f"type (string) must not include an index because index was passed "
                           f"explicitly: {text}")  # fmt: skip
    return int(number)


CPU = device("cpu")
META = device("meta")


class Defaults:
    """Whether any thread has chosen a device for new tensors. Functions that make tensors look at
    this alone as long as it is False."""

    touched = False
    elsewhere = False
    """Whether anybody has asked for a tensor on a device other than the CPU."""


class OfThread(threading.local):
    """Per thread: what `set_default_device` was told, and the `with torch.device(...)` blocks that
    are open, innermost last."""

    def __init__(self) -> None:
        self.chosen: device = CPU
        self.on_zeros = False  # whether an operator runs for its layout alone
        self.makes_on: device | None = None  # where the tensor that is being made shall lie
        self.cuda = 0  # the current GPU
        self.pins = False  # whether its memory shall be pinned
        self.works_on: device | None = None  # the GPU for which the CPU computes now
        self.blocks: list[device] = []


thread = OfThread()


def default_device() -> device:
    """The device of new tensors in this thread when none is given, as it was set."""
    return thread.blocks[-1] if thread.blocks else thread.chosen


def get_default_device() -> device:
    """The device of new tensors in this thread when none is given.

    Raises:
        AssertionError: it is a device that is not there.

    >>> import flambeau as torch
    >>> torch.get_default_device()
    device(type='cpu')
    """
    found = default_device()
    return check_available(found) if found.index is None else found


def set_default_device(device_: Any) -> None:
    """Make `device_` the device of new tensors of this thread; None means the CPU.

    Within a `with torch.device(...)` block a device holds at once, and after the block, too; None
    leaves the block as it is.

    >>> import flambeau as torch
    >>> torch.set_default_device("meta")
    >>> torch.ones(2).device
    device(type='meta')
    >>> torch.set_default_device(None)
    """
    thread.chosen = CPU  # also where what is asked for is no device
    chosen = CPU if device_ is None else device(device_)
    thread.chosen = chosen
    if thread.blocks and device_ is not None:
        thread.blocks[-1] = chosen
    Defaults.touched = True


def _missing_device(wanted: device) -> NotImplementedError:
    return NotImplementedError(f"device '{wanted}' is not implemented in flambeau 0.1")


def check_pin(device_: Any) -> None:
    """Memory that is there shall be pinned. Raises RuntimeError without an accelerator."""
    if device_ is not None:
        _warn_of_device("pin_memory")
        _warn_of_device("is_pinned")  # which is asked first
        if device(device_).type == "cpu":
            raise RuntimeError("CPU device type not an accelerator.")
    if not Cuda.devices():
        raise RuntimeError("Cannot access accelerator device when none is available.")


def look_at_pinned(device_: Any) -> None:
    """The argument of `is_pinned`, which is of no use."""
    if device_ is not None:
        device(device_)
        _warn_of_device("is_pinned")


def _warn_of_device(name: str) -> None:
    warn_user(f"The argument 'device' of Tensor.{name}() is deprecated. Please do not pass this "
              "argument.", DeprecationWarning)  # fmt: skip


def refuse_pinned(name: str, pin_memory: Any, optional: bool = True) -> None:
    """The argument `pin_memory` of a function that makes tensors, which is not False; True makes
    the memory of the next tensor pinned.

    Raises:
        RuntimeError: it is True, and there is no accelerator to pin memory for.
        TypeError: it is no bool.
    """
    if pin_memory is None and optional:
        return
    if not isinstance(pin_memory, bool):
        raise TypeError(f"{name}(): argument 'pin_memory' must be bool, not {_name(pin_memory)}")
    if not pin_memory:
        return
    if not Cuda.devices():
        raise RuntimeError("pin_memory=True requires a CUDA or other accelerator backend; no "
                           "pinned memory allocator is available on this system.")  # fmt: skip
    thread.pins = Defaults.elsewhere = True


class CudaKind(type):
    """Gives `Cuda` what differs from thread to thread."""

    @property
    def current(cls) -> int:
        """The index of this thread's current device."""
        return thread.cuda

    @current.setter
    def current(cls, index: int) -> None:
        thread.cuda = index


class Cuda(metaclass=CudaKind):
    """The CUDA devices of this process. The driver is looked for when they are first asked for."""

    count = 0
    version: str | None = None  # of CUDA
    cudnn_version: int | None = None
    look: Callable[[], None] | None = None
    """What finds the devices and gets flambeau ready for them: see `_tensor.device_array`."""

    @classmethod
    def devices(cls) -> int:
        """How many devices there are."""
        if cls.look is not None:
            look, cls.look = cls.look, None
            look()
        return cls.count


def _cuda(wanted: device) -> device:
    index = Cuda.current if wanted.index is None else wanted.index
    if index >= Cuda.count:
        raise AcceleratorError(INVALID_ORDINAL)
    return CUDA[index] if index < len(CUDA) else device("cuda", index)


CUDA = tuple([device("cuda", index) for index in range(16)])
"""The devices that machines have; one object each."""


def prepare(chosen: Any) -> None:
    """Look at the device that a factory was asked for, before it takes memory: `made_on` then says
    where the tensor shall lie."""
    place = check_available(chosen)
    if place is not CPU:
        Defaults.elsewhere = True
        thread.makes_on = place
    elif Defaults.elsewhere:
        thread.makes_on = None


def made_on() -> device | None:
    """Where the tensor that is being made shall lie, None for the CPU; the next one is another."""
    place, thread.makes_on = thread.makes_on, None
    return place


class AcceleratorError(RuntimeError):
    """An error that a device reports; `torch.AcceleratorError`.

    >>> import flambeau as torch
    >>> issubclass(torch.AcceleratorError, RuntimeError)
    True
    """

    __module__ = "torch"
    error_code = 0
    """The device's own number for it."""

    def __reduce__(self) -> Any:
        return (_error, (type(self).__name__, self.args))


def _error(name: str, args: tuple[Any, ...]) -> Exception:
    """An error of this file that was pickled, where `torch` may be nobody's name."""
    made: Exception = {"AcceleratorError": AcceleratorError}.get(name, OutOfMemoryError)(*args)
    return made


class OutOfMemoryError(RuntimeError):
    """A device has no more memory; `torch.OutOfMemoryError`.

    >>> import flambeau as torch
    >>> issubclass(torch.OutOfMemoryError, RuntimeError)
    True
    """

    __module__ = "torch"

    def __reduce__(self) -> Any:
        return (_error, (type(self).__name__, self.args))


ADVICE = (
    "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace "
    "below might be incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1\n"
    "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n"
)
"""What PyTorch adds to the errors that a device reports."""
INVALID_ORDINAL = (
    "CUDA error: invalid device ordinal\nGPU device may be out of range, do you have enough GPUs?\n"
    + ADVICE
)


NOT_COMPILED = {
    "xpu": "Torch not compiled with XPU enabled",
    "mtia": "Torch not compiled with MTIA enabled.",
}
"""What PyTorch says of accelerators that its build for the CPU leaves out; CUDA may be emulated."""


def check_available(chosen: Any) -> device:
    """The device asked for, or torch's error when this machine has no such device."""
    if chosen is None:
        if not Defaults.touched:
            return CPU
        chosen = default_device()
    wanted = chosen
    if wanted is CPU:
        return CPU
    if not isinstance(wanted, device):
        wanted = device(wanted)
    if wanted.type == "cpu":
        return CPU
    if wanted.type == "meta":
        return META
    if wanted.type in NOT_COMPILED:
        raise AssertionError(NOT_COMPILED[wanted.type])
    if wanted.type == "cuda":
        if Cuda.devices():
            return _cuda(wanted)
        raise AssertionError("Torch not compiled with CUDA enabled")
    raise _missing_device(wanted)
