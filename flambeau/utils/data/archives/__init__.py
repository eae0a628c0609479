"""Samples in archives that are read one after the other: tar files and TFRecords.

An index of where the samples lie, made once, lets any number of workers and ranks share any number
of files, each sample exactly once, and lets a pass go on in the middle.
"""

from __future__ import annotations

from typing import Any

FILES = {"TFRecordDataset": "records", "TarDataset": "tar"}
"""Where each name is; imported when it is used, since they need tarfile and urllib."""


def __getattr__(name: str) -> Any:
    if name not in FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{FILES[name]}"), name)
