"""Views in inference mode."""

from __future__ import annotations

import flambeau as torch


def test_a_view_of_another_type_is_of_inference_mode():
    """Other views of a normal tensor are normal ones; this one is not, as in torch."""
    x = torch.ones(4)
    with torch.inference_mode():
        found = [x.view(torch.int32), x.view(2, 2), x[1:], x.view(torch.float32)]
    assert [view.is_inference() for view in found] == [True, False, False, True]
