"""What `scatter_reduce` refuses to combine."""

from __future__ import annotations

import pytest

import flambeau as torch

REFUSED = [("mean", torch.bool, "Bool"), ("amax", torch.complex64, "ComplexFloat"),
           ("amin", torch.complex128, "ComplexDouble")]  # fmt: skip


@pytest.mark.parametrize(("reduce", "dtype", "name"), REFUSED)
@pytest.mark.parametrize("include_self", [True, False])
def test_types_that_have_no_such_order_or_mean(
    reduce: str, dtype: torch.dtype, name: str, include_self: bool
):
    x, index = torch.zeros(3, dtype=dtype), torch.tensor([0, 0])
    with pytest.raises(NotImplementedError, match=f"reduce_{reduce}\" not implemented for '{name}"):
        x.scatter_reduce(0, index, torch.ones(2, dtype=dtype), reduce, include_self=include_self)
