"""What `importlib.metadata` finds for "torch" while the import hook is installed."""

from __future__ import annotations

from importlib.metadata import Distribution
from pathlib import Path
from typing import Any

from .torch_shim import METADATA

# packages_distributions() reads top_level.txt: which package belongs to which distribution.
RECORDS = {"METADATA": METADATA, "top_level.txt": "torch\n", "INSTALLER": "flambeau\n"}


class TorchDistribution(Distribution):
    """A distribution "torch" that has records and no files."""

    def read_text(self, filename: Any) -> str | None:
        return RECORDS.get(str(filename))

    def locate_file(self, path: Any) -> Any:
        return Path(__file__).parents[2] / path
