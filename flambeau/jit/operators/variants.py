"""Overloads that mean something else than the function of flambeau of the same name."""

from __future__ import annotations

from typing import Any

from flambeau._ops.table.lookup import get
from flambeau.jit.operators.registry import implements


@implements("stft")
def stft(input: Any, n_fft: int, hop_length: int | None, win_length: int | None, window: Any,
         normalized: bool, onesided: bool | None, return_complex: bool | None,
         align_to_window: bool | None) -> Any:  # fmt: skip
    """The transform of a signal that has been padded before."""
    return get("stft")(
        input, n_fft, hop_length, win_length, window, center=False, normalized=normalized,
        onesided=onesided, return_complex=return_complex, align_to_window=align_to_window,
    )  # fmt: skip


@implements("random_.to")
def random_below(self: Any, to: int, generator: Any) -> Any:
    """Integers from 0 up to a bound."""
    return self.random_(to, generator=generator)


@implements("random_.from")
def random_between(self: Any, start: int, to: int | None, generator: Any) -> Any:
    """Integers between two bounds; without an upper one, as large as the type allows."""
    return self.random_(start, to, generator=generator)


@implements("repeat_interleave.Tensor")
def repeat_places(repeats: Any, output_size: int | None) -> Any:
    """Position 0 so many times, then position 1, ..."""
    return get("repeat_interleave")(repeats, output_size=output_size)
