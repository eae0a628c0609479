"""Tensors in Python's own pickles: views keep offset and strides, each with memory of its own."""

import copy
import io
import pickle

import numpy as np
import pytest

import flambeau as torch

BASE = torch.arange(24.0)
VIEWS = {
    "from the middle": BASE[5:],
    "strided": BASE[4:20:3],
    "transposed": BASE.view(4, 6).t(),
    "expanded": BASE[3:4].expand(5),
    "a number": BASE[7],
    "empty": BASE[9:9],
    "empty in two dims": torch.ones(0, 3),
}


def trip(value, protocol=5):
    return pickle.loads(pickle.dumps(value, protocol))


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("protocol", [2, 5])
def test_views(name, protocol):
    before = VIEWS[name]
    after = trip(before, protocol)
    assert torch.equal(before, after)
    assert after.stride() == before.stride()
    assert after.storage_offset() == before.storage_offset()
    assert after.untyped_storage().nbytes() == before.untyped_storage().nbytes()


def test_views_do_not_share_memory_any_more():
    base = torch.arange(6)
    whole, again, part, parameter = trip([base, base, base[2:], torch.nn.Parameter(base.float())])
    whole[3] = -1
    assert again is whole
    assert part.tolist() == [2, 3, 4, 5]
    assert type(parameter) is torch.nn.Parameter


@pytest.mark.parametrize(
    "dtype", [torch.bfloat16, torch.float8_e4m3fn, torch.complex64, torch.bool]
)
def test_dtypes(dtype):
    before = torch.tensor([0, 1, 1]).to(dtype)
    after = trip(before[1:])
    assert after.dtype is dtype
    assert after.tolist() == before[1:].tolist()


def test_what_else_a_tensor_has():
    tensor = torch.ones(2, requires_grad=True)
    tensor.note = "mine"
    found = trip(tensor)
    assert found.requires_grad
    assert found.note == "mine"


def test_results_of_operators_become_leaves():
    result = torch.ones(2, requires_grad=True) * 2
    for found in (trip(result), copy.copy(result)):
        assert found.requires_grad
        assert found.is_leaf
        assert found._version == 1
    assert copy.copy(result).data_ptr() == result.data_ptr()


def test_memory_of_others():
    array = np.arange(6.0)
    found = trip(torch.from_numpy(array[::2]))
    assert found.tolist() == [0, 2, 4]
    assert copy.deepcopy(found).tolist() == [0, 2, 4]


def test_slices_without_elements_keep_their_place():
    """Through files, pickles and copies, with what shares their memory."""
    base = torch.arange(12.0).reshape(3, 4)
    for view in (base[1:1], base[:, 2:2], base.t()[3:3], base[2:, 1:1]):
        file = io.BytesIO()
        torch.save([view, base], file)
        file.seek(0)
        pairs = [torch.load(file), copy.deepcopy([view, base])]
        for found, whole in pairs:
            assert found.storage_offset() == view.storage_offset() > 0
            assert found.stride() == view.stride()
            assert found.untyped_storage().data_ptr() == whole.untyped_storage().data_ptr()
        assert pickle.loads(pickle.dumps(view)).storage_offset() == view.storage_offset()
