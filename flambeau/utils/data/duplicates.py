"""Samples that several workers give: the sign of an iterable dataset that does not ask which
worker it is in.

Workers digest their first samples; the loader compares the digests. Workers that begin alike are
watched further, to say how many samples came more than once; all others soon stop digesting.
"""

from __future__ import annotations

import warnings
import zlib
from typing import Any

import numpy as np

BEGINNING = 16
"""Samples after which a worker that gives the same as another is a duplicate."""
ENOUGH = 1000
"""Duplicates after which the warning comes before the end of the pass."""
LOOKED_AT = 4096
"""Bytes of a buffer that a digest looks at, evenly spread: enough to tell samples apart."""
DIFFERENT = 3
"""At least so many samples have to differ from each other: constants come from everywhere."""

TEXT = (
    "{count} samples came more than once: this IterableDataset gives the same samples in "
    "{workers} workers. Every worker iterates over a copy of its own, so `__iter__` has to "
    "choose the samples that are this worker's: `info = torch.utils.data.get_worker_info()`, then "
    "for example every `info.num_workers`-th sample, beginning with number `info.id`. For tar "
    "archives torch.utils.data.TarDataset does so."
)


def digest(sample: Any) -> int | None:
    """A number that equal samples share; None for what can't be pickled."""
    from flambeau.utils.data.transfer import pickled

    try:
        text, buffers = pickled(sample)
    except Exception:
        return None
    found = zlib.crc32(text)
    for buffer in buffers:
        every = max(1, buffer.nbytes // LOOKED_AT)
        found = zlib.crc32(np.frombuffer(buffer, np.uint8)[::every].tobytes(), found)
    return found


class Watch:
    """Compares what the workers give in one pass."""

    def __init__(self, workers: int) -> None:
        self.first: list[int | None] = []  # digests, each of whoever came to its place first
        self.places = [0] * workers  # how many samples of each worker were compared
        self.alike = set(range(workers))  # those that have given what `first` has
        self.going_on = workers > 1

    def note(self, worker: int, digests: list[int | None]) -> None:
        """The digests of the next samples of a worker."""
        if worker not in self.alike or not self.going_on:
            return
        for one in digests:
            place = self.places[worker]
            if place == len(self.first):
                self.first.append(one)
            elif one is None or one != self.first[place]:
                self.alike.discard(worker)
                self.going_on = len(self.alike) > 1
                return
            self.places[worker] += 1
        if sorted(self.places)[-2] < BEGINNING:
            return
        if not self._are_different():
            self.going_on = False
        elif self._repeated() >= ENOUGH:
            self.end()

    def _are_different(self) -> bool:
        """Whether the samples are such that two workers can't give them by chance."""
        return len(set(self.first)) >= max(DIFFERENT, 0.75 * len(self.first))

    def _repeating(self) -> list[int]:
        """How many samples those workers gave that have given the same."""
        places = [self.places[worker] for worker in self.alike]
        return [place for place in places if place >= DIFFERENT]

    def _repeated(self) -> int:
        """How many of those came more than once."""
        counts = self._repeating()
        return sum(counts) - max(counts, default=0)

    def found(self) -> tuple[int, int]:
        """How many samples came more than once, and how many workers gave the same; or zeros."""
        count = self._repeated()
        if self.going_on and count and self._are_different():
            return count, len(self._repeating())
        return 0, 0

    def end(self) -> None:
        """Warn if workers have given the same samples all along."""
        count, workers = self.found()
        if count:
            text = TEXT.format(count=count, workers=workers)
            warnings.warn(text, UserWarning, stacklevel=5)
        self.going_on = False
