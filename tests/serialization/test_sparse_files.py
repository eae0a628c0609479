"""Sparse tensors in files, and files that lie about them."""

from __future__ import annotations

import io
from collections import OrderedDict
from pickle import UnpicklingError
from typing import Any

import pytest

import flambeau as torch
from flambeau.serialization import reducers
from flambeau.serialization.sparse import rebuild_sparse_tensor


def tensor() -> Any:
    return torch.sparse_coo_tensor([[0, 2, 0], [1, 0, 1]], [1.0, 2.0, 3.0], (3, 2))


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("weights_only", [True, False])
def test_what_was_saved_comes_back(zipped: bool, weights_only: bool) -> None:
    saved = OrderedDict(plain=tensor(), sorted=tensor().coalesce(), empty=tensor().zero_())
    file = io.BytesIO()
    torch.save(saved, file, _use_new_zipfile_serialization=zipped)
    file.seek(0)
    loaded = torch.load(file, weights_only=weights_only)
    for name, expected in saved.items():
        found = loaded[name]
        assert found.layout is torch.sparse_coo
        assert found._indices().tolist() == expected._indices().tolist()
        assert found._values().tolist() == expected._values().tolist()
        assert (found.shape, found.is_coalesced()) == (expected.shape, expected.is_coalesced())


def lie(monkeypatch: pytest.MonkeyPatch, zipped: bool = True, **changes: Any) -> io.BytesIO:
    """A file with a sparse tensor of which some parts are others."""
    parts: dict[str, Any] = {
        "indices": tensor()._indices(), "values": tensor()._values(), "size": (3, 2),
        "coalesced": False, "layout": torch.sparse_coo,
    }  # fmt: skip
    parts.update(changes)
    layout = parts.pop("layout")

    def reduce(value: Any) -> Any:
        return rebuild_sparse_tensor, (layout, tuple(parts.values()))

    monkeypatch.setattr(reducers, "reduce_sparse", reduce)
    file = io.BytesIO()
    torch.save({"a": tensor()}, file, _use_new_zipfile_serialization=zipped)
    file.seek(0)
    return file


LIES = {
    "place too large": {"indices": torch.tensor([[0, 3, 0], [1, 0, 1]])},
    "place negative": {"indices": torch.tensor([[0, -1, 0], [1, 0, 1]])},
    "said to be sorted": {"coalesced": True},
    "indices of another type": {"indices": torch.tensor([[0, 2, 0], [1, 0, 1]], dtype=torch.int32)},
    "indices without dims": {"indices": torch.tensor(3)},
    "values without dims": {"values": torch.tensor(3.0)},
    "fewer values": {"values": torch.ones(2)},
    "values with more dims": {"values": torch.ones(3, 4)},
    "more sizes": {"size": (3, 2, 5)},
    "fewer sizes": {"size": (3,)},
    "a negative size": {"size": (3, -2)},
    "a size that is no int": {"size": (3, 2.0)},
    "a size beyond 64 bits": {"size": (2**40, 2**40)},
    "a size that is a list": {"size": [3, 2]},
    "very many dims": {"size": (1,) * 100},
    "a flag that is no bool": {"coalesced": 1},
    "no tensors": {"values": [1.0, 2.0, 3.0]},
    "a sparse tensor inside": {"values": torch.nn.Parameter(torch.ones(3))},
    "indices that repeat few bytes": {
        "indices": torch.zeros(2, 1, dtype=torch.int64).expand(2, 2**40),
        "values": torch.ones(1).expand(2**40),
    },
}


@pytest.mark.parametrize("name", LIES)
@pytest.mark.parametrize("zipped", [True, False])
def test_lies_are_found(name: str, zipped: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    file = lie(monkeypatch, zipped, **LIES[name])
    with pytest.raises(UnpicklingError):
        torch.load(file)


@pytest.mark.parametrize("layout", [torch.jagged, torch.strided])
def test_other_layouts_are_refused_by_name(layout: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    file = lie(monkeypatch, layout=layout)
    with pytest.raises((NotImplementedError, UnpicklingError), match=repr(layout)):
        torch.load(file)


def test_the_pieces_of_a_failed_load_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnpicklingError):
        torch.load(lie(monkeypatch, coalesced=True))
    monkeypatch.undo()
    file = io.BytesIO()
    torch.save(tensor(), file)
    file.seek(0)
    assert torch.load(file)._nnz() == 3


COMPRESSED = {
    "last": ([0, 1, 2], [1, 0, 2], [1.0, 2, 3], (2, 3)),
    "descending": ([0, 3, 1], [1, 0, 2], [1.0, 2, 3], (2, 3)),
    "beyond": ([0, 1, 3], [1, 0, 2**40], [1.0, 2, 3], (2, 3)),
    "negative": ([0, -1, 3], [1, 0, 2], [1.0, 2, 3], (2, 3)),
    "rows": ([0, 1, 3], [1, 0, 2], [1.0, 2, 3], (2**40, 3)),
    "values": ([0, 1, 3], [1, 0, 2], [1.0, 2], (2, 3)),
    "dims": ([0, 1, 3], [1, 0, 2], [1.0, 2, 3], (3,)),
    "none": ([0, 1, 3], [1, 0, 2], 1.0, (2, 3)),
    "empty": ([], [], [], (2, 3)),
}


@pytest.mark.parametrize("name", COMPRESSED)
def test_lies_of_compressed_layouts_are_found(name: str) -> None:
    pointers, others, values, size = COMPRESSED[name]
    parts = (torch.tensor(pointers, dtype=torch.int64), torch.tensor(others, dtype=torch.int64),
             torch.tensor(values), size)  # fmt: skip
    with pytest.raises(UnpicklingError):
        rebuild_sparse_tensor(torch.sparse_csr, parts)
