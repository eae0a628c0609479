"""Views at any offset over memory of every kind: row-major, permuted, with gaps, read-only."""

import numpy as np
import pytest

import flambeau as torch

OWNERS = {
    "row-major": np.arange(24.0).reshape(2, 3, 4),
    "column-major": np.arange(24.0).reshape(4, 3, 2).T,
    "permuted": np.arange(24.0).reshape(2, 3, 4).transpose(1, 2, 0),
    "with gaps": np.arange(48.0).reshape(2, 3, 8)[:, :, :4],
    "permuted copy": np.copy(np.arange(24.0).reshape(2, 3, 4).transpose(1, 2, 0), order="K"),
}


@pytest.mark.parametrize("owner", OWNERS)
def test_as_strided_reaches_back_before_its_tensor(owner: str) -> None:
    whole = torch.from_numpy(OWNERS[owner])
    part = whole[1]
    assert part.storage_offset() > 0
    first = part.as_strided((2,), (0,), 0)
    assert first.tolist() == [whole[0, 0, 0].item()] * 2
    assert first.storage_offset() == 0
    assert first.data_ptr() == whole.data_ptr()
    again = part.as_strided((1,), (1,), part.storage_offset()).as_strided((1,), (1,), 0)
    assert again.tolist() == first.tolist()[:1]


@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable")
def test_as_strided_of_a_read_only_array() -> None:
    array = np.arange(6.0)
    array.flags.writeable = False
    assert torch.from_numpy(array)[2:].as_strided((2,), (1,), 1).tolist() == [1, 2]


def test_as_strided_of_a_result_with_permuted_strides() -> None:
    result = torch.arange(6.0).reshape(3, 2).t() + 0
    assert result.stride() == (1, 2)
    assert result[1].as_strided((6,), (1,), 0).tolist() == [0, 1, 2, 3, 4, 5]
