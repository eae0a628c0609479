"""What programs of settings use beside the library: threads, blocks that are left later, and a look
at all settings.
"""

from __future__ import annotations

import contextlib
import queue
import re
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from conformance.autograd.generated.observing import Line, is_tensor, plain, seen
from conformance.autograd.generated.words import Words

SETTINGS = {
    "default dtype": "get_default_dtype()",
    "default device": "get_default_device()",
    "grad": "is_grad_enabled()",
    "inference": "is_inference_mode_enabled()",
    "autocast": "is_autocast_enabled('cpu')",
    "autocast dtype": "get_autocast_dtype('cpu')",
    "autocast cache": "is_autocast_cache_enabled()",
    "anomaly": "is_anomaly_enabled()",
    "anomaly nan": "is_anomaly_check_nan_enabled()",
    "deterministic": "get_deterministic_debug_mode()",
    "fill": "utils.deterministic.fill_uninitialized_memory",
    "threads": "get_num_threads()",
    "matmul precision": "get_float32_matmul_precision()",
    "tf32": "backends.cuda.matmul.allow_tf32",
    "precision": "backends.fp32_precision",
    "precision of products": "backends.mkldnn.matmul.fp32_precision",
    "cudnn": "backends.cudnn.benchmark",
    "warn always": "is_warn_always_enabled()",
    "seed": "initial_seed()",
    "fast path": "backends.mha.get_fastpath_enabled()",
    "math attention": "backends.cuda.math_sdp_enabled()",
    "print": "_tensor_str.PRINT_OPTS",
}
"""How settings are read."""


class Worker:
    """A Python thread that does what it is given, one after the other."""

    def __init__(self) -> None:
        self.todo: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.done: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.blocks: list[Any] = []
        threading.Thread(target=self._live, daemon=True).start()

    def _live(self) -> None:
        while True:
            action = self.todo.get()
            try:
                self.done.put((action(), None))
            except Exception as error:  # noqa: BLE001  # raised again by `result`
                self.done.put((None, error))

    def result(self) -> Any:
        """What the action gave."""
        return self.value(*self.done.get())

    @staticmethod
    def value(value: Any, error: Exception | None) -> Any:
        """What an action gave, or its error."""
        if error is not None:
            raise error
        return value


class Here:
    """The thread of the program itself, as a worker."""

    def __init__(self) -> None:
        self.blocks: list[Any] = []


class SettingsWords(Words):
    """The words of a program of settings."""

    def __init__(self, torch: Any, shift: float = 0.0) -> None:
        super().__init__(torch, shift)
        self.workers: list[Any] = [Here()]
        torch.get_num_threads()  # a thread's number is settled when it first asks

    def names(self) -> dict[str, Any]:
        own = (
            "on",
            "start",
            "together",
            "enter",
            "leave",
            "look",
            "tell",
            "fresh",
            "leaf",
            "shown",
        )
        return {"torch": self.torch, "F": self.torch.nn.functional, "nn": self.torch.nn,
                **{name: getattr(self, name) for name in own}}  # fmt: skip

    @contextlib.contextmanager
    def listening(self, line: Line) -> Iterator[None]:
        """Errors and warnings are weighed in words."""
        line.weighed = True
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            yield
        line.warned = sorted({told_by(warning) for warning in told})

    # ---- threads

    def start(self) -> int:
        """A new thread's number; 0 is the program's own."""
        self.workers.append(Worker())
        number = len(self.workers) - 1
        self.on(number, self.torch.get_num_threads)
        return number

    def on(self, number: int, action: Callable[[], Any]) -> Any:
        """What an action gives in a thread, which is waited for."""
        worker = self.workers[number]
        if number == 0:
            return action()
        worker.todo.put(action)
        return worker.result()

    def together(self, *actions: Callable[[], Any]) -> list[Any]:
        """What actions give in threads 1, 2, ... which all begin at the same time."""
        ready = threading.Barrier(len(actions))

        def after_all(action: Callable[[], Any]) -> Callable[[], Any]:
            return lambda: (ready.wait(), action())[1]

        busy = self.workers[1 : 1 + len(actions)]
        for worker, action in zip(busy, actions, strict=True):
            worker.todo.put(after_all(action))
        told = [worker.done.get() for worker in busy]  # of all, before an error of one is raised
        return [Worker.value(*one) for one in told]

    # ---- blocks

    def enter(self, number: int, make: Callable[[], Any]) -> None:
        """Begin a `with` block in a thread."""

        def begin() -> None:
            block = make()
            block.__enter__()
            self.workers[number].blocks.append(block)

        self.on(number, begin)

    def leave(self, number: int) -> None:
        """End the innermost `with` block of a thread, if there is one."""
        blocks = self.workers[number].blocks
        if blocks:
            self.on(number, lambda: blocks.pop().__exit__(None, None, None))

    # ---- a look

    def look(self) -> dict[str, Any]:
        """All settings, as this thread sees them."""
        return {name: self._read(path) for name, path in SETTINGS.items()}

    def _read(self, path: str) -> str:
        if path == "_tensor_str.PRINT_OPTS":
            return self.shown(_printed_numbers(self.torch))[:200]
        try:
            return str(eval(f"torch.{path}", {"torch": self.torch}))  # noqa: S307
        except Exception as error:  # noqa: BLE001  # it is what reading gives
            return f"{type(error).__name__}: {error}"

    def tell(self, tensor: Any) -> list[Any]:
        """A tensor, and what modes have made of it."""
        return [
            seen(tensor.detach()),
            tensor.requires_grad,
            tensor.is_inference(),
            self.shown(tensor),
        ]

    def leaf(self, *numbers: float) -> Any:
        """A tensor that learns; none of inference mode, which differ where they are used later."""
        with self.torch.inference_mode(False):
            return self.torch.tensor(numbers, requires_grad=True)

    def shown(self, tensor: Any) -> str:
        """A tensor as text, outside of regions of autocast: PyTorch's printing may fail in them."""
        with self.torch.autocast("cpu", enabled=False):
            return str(tensor)

    def fresh(self, *size: int) -> Any:
        """Memory that nothing was written to, if it is filled; zeros else."""
        torch = self.torch
        filled = torch.utils.deterministic.fill_uninitialized_memory
        if filled and torch.are_deterministic_algorithms_enabled():
            return torch.empty(*size)
        return torch.zeros(*size)

    @staticmethod
    def plain(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [SettingsWords.plain(item) for item in value]
        return seen(value) if is_tensor(value) else plain(value)


def _printed_numbers(torch: Any) -> Any:
    """What shows how numbers and long tensors are printed."""
    return torch.arange(1, 2001, dtype=torch.float64, device="cpu") / 7e3


def told_by(warning: Any) -> tuple[str, str]:
    """The class and the words of a warning, the same for both libraries."""
    said = re.sub(r"\bflambeau\b", "torch", str(warning.message)).partition("\n")[0]
    return warning.category.__name__, said.partition(" (Triggered internally")[0]
