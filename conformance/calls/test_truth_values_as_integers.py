"""True is no dim and no size; tensors without dims are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch as reference

import flambeau

CALLS = (
    "x.transpose(v, 0)", "t.transpose(x, 0, v)", "x.sum(v)", "x.mean(dim=v)", "x.amax(v)",
    "x.softmax(v)", "t.log_softmax(x, v)", "x.cumsum(v)", "t.cat([x, x], v)", "t.stack([x], v)",
    "x.unsqueeze(v)", "x.squeeze(v)", "x.select(v, 0)", "x.unbind(v)", "x.split(1, v)",
    "x.chunk(2, v)", "x.narrow(v, 0, 1)", "x.argmax(v)", "x.max(v)", "x.sort(v)", "x.flip(v)",
    "x.permute(v, 0)", "x.movedim(v, 0)", "x.index_select(v, i)", "x.gather(v, i[:, None])",
    "t.zeros(v)", "t.zeros((v,))", "x.new_ones(v)", "x.topk(v)", "x.diagonal(0, v, 0)",
    "x.logsumexp(v)", "x.prod(v)", "x.any(v)", "x.cummax(v)", "x.kthvalue(1, v)",
    "x.roll(1, v)", "x.flatten(0, v)", "x.unflatten(v, (3, 1))", "x.sum((v,))", "x.sum((0, v))",
)  # fmt: skip
VALUES = (True, False, 1.0, np.float64(1), np.int64(1), np.bool_(True), "tensor")


@pytest.mark.parametrize("call", CALLS)
def test_dims(call: str) -> None:
    """The same calls are refused by their type."""
    for value in VALUES:
        assert _outcome(flambeau, call, value) == _outcome(reference, call, value), (call, value)


def _outcome(t: Any, call: str, value: Any) -> Any:
    x, i = t.arange(9.0).reshape(3, 3), t.tensor([0, 1, 0])
    v = t.tensor(1) if isinstance(value, str) else value
    try:
        found = eval(call, {"t": t, "x": x, "i": i, "v": v})
    except Exception as error:  # noqa: BLE001
        return type(error).__name__
    parts = found if isinstance(found, (tuple, list)) else [found]
    return [tuple(part.shape) for part in parts]
