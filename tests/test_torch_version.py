"""Versions in order, as PEP 440 has them."""

from __future__ import annotations

from itertools import pairwise

import pytest

from flambeau.torch_version import TorchVersion

ASCENDING = [
    "1.9", "1.10.0a0+git123", "1.10.0rc1", "1.10", "1.10.0.post2", "2.0.0.dev20230101", "2.0",
    "2.0.1", "2.13.0", "2.13.0+cpu", "2.13.0+flambeau", "2.13.0+flambeau.1", "10.0",
]  # fmt: skip


@pytest.mark.parametrize(("lower", "higher"), list(pairwise(ASCENDING)))
def test_order(lower: str, higher: str):
    assert TorchVersion(lower) < higher
    assert TorchVersion(lower) <= higher
    assert TorchVersion(higher) > lower
    assert TorchVersion(higher) >= TorchVersion(lower)
    assert TorchVersion(lower) != higher


@pytest.mark.parametrize("same", ["2.13", "2.13.0", (2, 13), ["2", "13", "0"], "v2.13.0"])
def test_equal(same: object):
    assert TorchVersion("2.13.0") == same
    assert TorchVersion("2.13.0") <= same
    assert TorchVersion("2.13.0") >= same


def test_text_that_is_no_version_compares_as_text():
    assert TorchVersion("2.13.0") < "parrot"
    assert TorchVersion("2.13.0") != "parrot"


def test_other_types_do_not_compare():
    assert TorchVersion("2.13.0") != 2
    with pytest.raises(TypeError):
        assert TorchVersion("2.13.0") < 3


def test_is_text():
    version = TorchVersion("2.13.0+flambeau")
    assert version.split("+")[0] == "2.13.0"
    assert hash(version) == hash("2.13.0+flambeau")
