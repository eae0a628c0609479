"""`torch.utils.model_zoo`: an older name of what `torch.hub` loads."""

from __future__ import annotations

import importlib
from typing import Any

from flambeau._core.missing import missing
from flambeau.hub import load_state_dict_from_url as load_url

__all__ = ["load_url"]


def __getattr__(name: str) -> Any:
    if name == "tqdm":  # bars of progress, which libraries take from here
        return importlib.import_module("tqdm").tqdm
    return missing(__name__, name)
