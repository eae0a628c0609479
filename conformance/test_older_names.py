"""Older names and types that libraries still use, beside PyTorch's."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import numpy as np
import pytest
import torch as theirs

import flambeau as ours
from flambeau import _utils

pytestmark = pytest.mark.filterwarnings(
    "ignore:Sparse invariant checks", "ignore:torch.sparse.SparseTensor"
)

PLACES, VALUES, SIZE = [[0, 1]], [1.0, 2.0], (3,)
SPARSE = "FloatTensor DoubleTensor HalfTensor BFloat16Tensor LongTensor IntTensor ShortTensor"


@pytest.mark.parametrize("name", SPARSE.split())
def test_types_of_sparse_tensors(name: str) -> None:
    found = []
    for torch in (theirs, ours):
        kind = getattr(torch.sparse, name)
        values = torch.tensor(VALUES, dtype=kind.dtype)
        made = [kind(), kind(2, 3), kind(torch.Size([2])), kind(torch.tensor(PLACES), values, SIZE)]
        assert all(isinstance(each, kind) for each in made)
        assert not isinstance(torch.ones(2, dtype=kind.dtype), kind)
        facts = [(x.type(), tuple(x.shape), x._nnz(), x.to_dense().tolist()) for x in made]
        told = repr(kind), str(kind.dtype), str(kind.layout), kind.is_sparse, kind.is_cuda
        found.append((facts, told))
        with pytest.raises(TypeError, match="only accepts sizes"):
            kind([2])
    assert found[0] == found[1]


def test_conjugates_of_sparse_tensors() -> None:
    for run in (lambda x: x.conj(), lambda x: x.conj_physical(), lambda x: x.mH,
                lambda x: x.adjoint(), lambda x: x.conj().resolve_conj()):  # fmt: skip
        found = [
            run(torch.sparse_coo_tensor([[0], [1]], [1 + 2j], (2, 2))) for torch in (theirs, ours)
        ]
        assert found[0].to_dense().tolist() == found[1].to_dense().tolist()
        assert not found[1].is_conj()


def test_flat_tensors() -> None:
    found = []
    for torch in (theirs, ours):
        utils = importlib.import_module("torch._utils") if torch is theirs else _utils
        parts = [torch.arange(4.0).view(2, 2).t(), torch.ones(3)]
        flat = utils._flatten_dense_tensors(parts)
        back = utils._unflatten_dense_tensors(flat, parts)
        one = utils._flatten_dense_tensors(parts[1:])
        shared = one.data_ptr() == parts[1].data_ptr(), back[0].data_ptr() == flat.data_ptr()
        found.append((flat.tolist(), [part.tolist() for part in back], shared))
    assert found[0] == found[1]


@pytest.mark.parametrize("error", [KeyError("x"), ValueError("y"), OSError(2, "gone")])
def test_errors_of_elsewhere(error: Exception) -> None:
    found = []
    for utils in (importlib.import_module("torch._utils"), _utils):
        try:
            raise error
        except Exception:
            wrapped = utils.ExceptionWrapper(where="in worker 3")
        with pytest.raises(type(error)) as caught:
            wrapped.reraise()
        found.append((type(caught.value), str(caught.value).splitlines()[:2]))
    assert found[0] == found[1]


@pytest.mark.parametrize("stream", [1, 0, "x", 1.5])
def test_streams_of_dlpack(stream: Any) -> None:
    found = []
    for torch in (theirs, ours):
        with pytest.raises((TypeError, AssertionError)) as caught:
            torch.ones(2).__dlpack__(stream=stream)
        found.append((type(caught.value), str(caught.value)))
    assert found[0] == found[1]
    assert type(ours.ones(2).__dlpack__(stream=-1)).__name__ == "PyCapsule"


def test_warnings_of_tensor() -> None:
    lists = {
        "extremely slow": lambda torch: torch.tensor([np.array([0]), np.array([1])]),
        "to a scalar": lambda torch: torch.tensor([torch.ones((), requires_grad=True)]),
    }
    for words, run in lists.items():
        for torch in (theirs, ours):
            torch.set_warn_always(True)
            try:
                with pytest.warns(UserWarning, match=words):
                    run(torch)
            finally:
                torch.set_warn_always(False)


def test_other_byte_orders_are_refused() -> None:
    for torch in (theirs, ours):
        with pytest.raises(ValueError, match="byte order different"):
            torch.from_numpy(np.ones(2, ">f4"))


def test_fields_that_lie_across_elements_are_refused() -> None:
    field = np.zeros(3, dtype=[("a", np.uint8), ("b", "<f4")])["b"]
    for torch in (theirs, ours):
        with pytest.raises(ValueError, match="not a multiple of the element byte size"):
            torch.from_numpy(field)


def test_volumes_without_a_batch_keep_their_order() -> None:
    found = []
    for torch in (theirs, ours):
        x = torch.ones(1, 3, 4, 5, 6).contiguous(memory_format=torch.channels_last_3d)[0]
        y, places = torch.nn.functional.max_pool3d(x, 2, return_indices=True)
        found.append((y.stride(), places.stride()))
    assert found[0] == found[1] == ((1, 18, 9, 3), (1, 18, 9, 3))


def test_typed_storages_in_shared_memory() -> None:
    for torch in (theirs, ours):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            storage = torch.FloatStorage._new_shared(3)
            assert storage.is_shared() and storage.tolist() == [0.0, 0.0, 0.0]
            assert torch.Storage(np.int64(3)).size() == 3
