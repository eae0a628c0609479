"""DLPack between both libraries: every element type, strided, both ways, without a copy."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="conformance compares with PyTorch itself")

import flambeau  # noqa: E402
from conformance.side_by_side import attempt, compare  # noqa: E402

NAMES = (
    "bfloat16 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float16 float32 float64 "
    "complex64 uint8 int8 int64 uint16 bool"
).split()
BYTES = {"bool": "uint8"}
PAIRS = [(torch, flambeau), (flambeau, torch), (flambeau, flambeau)]


def bits(tensor: Any, library: Any) -> list[int]:
    return tensor.contiguous().view(library.uint8).flatten().tolist()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("pair", PAIRS, ids=["from torch", "to torch", "ours"])
def test_types(pair: Any, name: str) -> None:
    giver, taker = pair
    x = giver.arange(6.0).reshape(2, 3).to(getattr(giver, name)).t()
    y = taker.from_dlpack(x)
    assert str(y.dtype) == f"torch.{name}"
    assert (tuple(y.shape), y.stride()) == ((3, 2), (1, 3))
    assert y.data_ptr() == x.data_ptr()
    assert bits(y, taker) == bits(x, giver)
    y[0].fill_(1)
    assert bits(y, taker) == bits(x, giver)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e5m2", "float32"])
def test_capsules_are_taken_once(name: str) -> None:
    for library in (torch, flambeau):
        x = library.ones(3).to(getattr(library, name))
        capsule = library.utils.dlpack.to_dlpack(x)
        assert library.utils.dlpack.from_dlpack(capsule).dtype is x.dtype
        with pytest.raises(RuntimeError, match="invalid capsule"):
            library.utils.dlpack.from_dlpack(capsule)


def test_copies() -> None:
    for library in (torch, flambeau):
        x = library.ones(3, dtype=library.bfloat16)
        y = flambeau.from_dlpack(x, copy=True)
        x.zero_()
        assert y.tolist() == [1.0, 1.0, 1.0]


def test_interface_of_gpus():
    """Memory of the CPU has none."""

    def scenario(library: Any) -> Any:
        tensors = [library.ones(2), library.ones(2, dtype=library.int8), library.eye(2).to_sparse(),
                   library.ones(2, device="meta"), library.ones(2, requires_grad=True)]  # fmt: skip
        words = [attempt(getattr, tensor, "__cuda_array_interface__") for tensor in tensors]
        return words, hasattr(tensors[0], "__cuda_array_interface__")

    compare(scenario)
