"""Overloads that mean something else than the function of flambeau of the same name."""

from __future__ import annotations

from typing import Any

from flambeau._ops.table.lookup import get
from flambeau.jit.operators.registry import functions, implements


@implements("stft")
def stft(input: Any, n_fft: int, hop_length: int | None, win_length: int | None, window: Any,
         normalized: bool, onesided: bool | None, return_complex: bool | None,
         align_to_window: bool | None) -> Any:  # fmt: skip
    """The transform of a signal that has been padded before."""
    return get("stft")(
        input, n_fft, hop_length, win_length, window, center=False, normalized=normalized,
        onesided=onesided, return_complex=return_complex, align_to_window=align_to_window,
    )  # fmt: skip


functions({
    "random_.to": lambda self, to, generator: self.random_(to, generator=generator),
    # Integers between two bounds; without an upper one, as large as the type allows.
    "random_.from": lambda self, start, to, generator: self.random_(start, to, generator=generator),
    "repeat_interleave.Tensor": (
        lambda repeats, output_size: get("repeat_interleave")(repeats, output_size=output_size)
    ),
})  # fmt: skip
