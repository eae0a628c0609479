"""Every setter and every flag, with legal and illegal values: what is read back is PyTorch's, and
so are errors and warnings. Each is tried in a process of its own.
"""

from __future__ import annotations

import importlib
import inspect
import re
import types
from collections.abc import Iterator
from typing import Any

import pytest
import torch as reference

import flambeau
from conformance.settings.children import in_a_child
from conformance.settings.table import ELSEWHERE, SETTINGS, Setting
from conformance.settings.trying import tried_in_both


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.path)
def test_what_is_set_is_read_back(setting: Setting) -> None:
    """One setting in both libraries."""
    here, there = in_a_child(tried_in_both, setting)
    for mine, other in zip(here, there, strict=True):
        assert mine == other


# ---- whether the table is whole


def _namespaces() -> Iterator[str]:
    file = importlib.resources.files("flambeau").joinpath("_core/torch_names.txt")
    for line in file.read_text("utf-8").splitlines():
        if line.startswith("torch"):
            yield line.strip().partition(".")[2]


def _of(library: Any, path: str) -> Any:
    for name in path.split(".") if path else ():
        library = getattr(library, name, None)
    return library


def _setters() -> Iterator[str]:
    """Functions of PyTorch that set something, in public namespaces."""
    for namespace in _namespaces():
        found = _of(reference, namespace)
        if not isinstance(found, types.ModuleType) or namespace in ELSEWHERE:
            continue
        for name in dir(found):
            value = getattr(found, name, None)
            if re.match(r"(set|enable|preferred)_|allow_fp16", name) and inspect.isroutine(value):
                yield f"{namespace}.{name}".lstrip(".")


def _flags() -> Iterator[str]:
    """Attributes of modules below `torch.backends` that are settings."""
    for module in ("", "cudnn", "mkldnn", "miopen", "opt_einsum", "nnpack"):
        path = f"backends.{module}".rstrip(".")
        for name, value in vars(type(_of(reference, path))).items():
            if type(value).__name__ == "ContextProp":
                yield f"{path}.{name}"


def test_every_setter_is_in_the_table() -> None:
    """Or flambeau has it not, and says so."""
    known = {setting.name for setting in SETTINGS}
    wanted = [name for name in (*_setters(), *_flags()) if name not in known]
    assert [name for name in wanted if _of(flambeau, name) is not None] == []
