"""The random streams of a worker process, each with a seed of its own."""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

from flambeau._core.generator import default_generator


def seed_everything(base_seed: int, worker: int) -> int:
    """Seed Python's, NumPy's and our default stream; returns `base_seed + worker`."""
    seed = base_seed + worker
    random.seed(seed)
    default_generator.manual_seed(seed)
    numpys = sys.modules.get("numpy.random")
    if numpys is not None:
        _seed_numpy(numpys, base_seed, worker)
    else:
        sys.meta_path.insert(0, Later(base_seed, worker))
    return seed


def seed_pipes(dataset: Any, seed: int) -> None:
    """Give each data pipe that draws a seed of its own, the same in every process."""
    from flambeau.utils.data.graph_settings import apply_random_seed

    stream = type(default_generator)()
    stream.manual_seed(seed)
    apply_random_seed(dataset, stream)


def _seed_numpy(numpys: Any, base_seed: int, worker: int) -> None:
    """From NumPy's SeedSequence over both numbers, of which it takes 32 bits at a time."""
    numpys.seed(_words(numpys, base_seed, worker))


def _words(numpys: Any, base_seed: int, worker: int) -> Any:
    words = [worker, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    return numpys.SeedSequence(words).generate_state(4)


def generate_state(base_seed: int, worker_id: int) -> list[int]:
    """The four numbers with which NumPy is seeded in a worker."""
    import numpy.random as numpys

    return _words(numpys, base_seed, worker_id).tolist()  # type: ignore[no-any-return]


class Later(MetaPathFinder):
    """Seeds `numpy.random` when it is imported: a fifth of what NumPy takes to import, and many
    workers never use it."""

    def __init__(self, base_seed: int, worker: int) -> None:
        self.base_seed, self.worker = base_seed, worker

    def find_spec(self, fullname: str, path: Sequence[str] | None,
                  target: ModuleType | None = None) -> ModuleSpec | None:  # fmt: skip
        """The module's own spec, of which the loader also seeds."""
        if fullname != "numpy.random":
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(fullname, path)
        if spec is None or spec.loader is None:
            return None
        loader: Any = spec.loader
        plain = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            plain(module)
            _seed_numpy(module, self.base_seed, self.worker)

        loader.exec_module = exec_module
        return spec
