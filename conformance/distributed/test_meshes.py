"""Meshes and what is placed on them: every rank sees what it sees under PyTorch's gloo."""

from __future__ import annotations

import pytest

from conformance.distributed.test_collectives import compare

pytest.importorskip("torch")


def test_meshes():
    compare("meshes", 4)


@pytest.mark.parametrize(("program", "size"), [("placed", 4), ("computed", 2)])
def test_distributed_tensors(program: str, size: int):
    compare(program, size)


def test_divided_modules():
    compare("parallel", 2)


def test_fully_sharded_modules():
    compare("fully_sharded", 4)
