"""Samples that several workers of a loader give."""

from __future__ import annotations

from flambeau.debug.advice.base import Topic
from flambeau.debug.places import Line


class Duplicates(Topic):
    """An IterableDataset whose `__iter__` does not ask which worker it is in."""

    title = "an IterableDataset in every worker"

    def duplicates(self, count: int, workers: int, line: Line) -> None:
        """Every worker has iterated over all of the samples."""
        text = f"{workers} workers give the same samples: {count:,} came more than once"
        better = """\
def __iter__(self):
    info = torch.utils.data.get_worker_info()
    first, step = (0, 1) if info is None else (info.id, info.num_workers)
    yield from itertools.islice(self.samples(), first, None, step)"""
        self.add(line, text, better, count, unit="sample")
