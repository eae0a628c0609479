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


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int64])
@pytest.mark.parametrize("dims", [(0, 1), (2, 0), (-1, 1), (-3, -2)])
def test_dims_may_be_numpys_integers(kind: type[np.integer], dims: tuple[int, int]) -> None:
    if kind is np.uint8 and min(dims) < 0:
        dims = (dims[0] % 3, dims[1] % 3)
    x = torch.arange(24).reshape(2, 3, 4)
    one, other = map(kind, dims)
    for found, wanted in (
        (x.transpose(one, other), x.transpose(*dims)),
        (x.movedim(one, other), x.movedim(*dims)),
        (x.diagonal(0, one, other), x.diagonal(0, *dims)),
        (x.select(one, 1), x.select(dims[0], 1)),
        (x.unsqueeze(one), x.unsqueeze(dims[0])),
        (x[:, :1].squeeze(one), x[:, :1].squeeze(dims[0])),
        (x.unfold(one, 2, 1), x.unfold(dims[0], 2, 1)),
        (x.narrow(one, 1, 1), x.narrow(dims[0], 1, 1)),
        (x.unbind(one)[1], x.unbind(dims[0])[1]),
        (x.split(1, one)[1], x.split(1, dims[0])[1]),
    ):
        assert (found.stride(), found.tolist()) == (wanted.stride(), wanted.tolist())
    with pytest.raises(IndexError, match=r"\[-3, 2\], but got 120"):
        x.transpose(kind(120), other)
