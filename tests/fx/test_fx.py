"""`torch.fx` by itself: what `wrap` records, files, and that a trace leaves nothing behind."""

from __future__ import annotations

import io
import math
import operator
from pathlib import Path

import pytest

import flambeau as torch
from flambeau import fx, nn


def doubled(x):
    return len(x) * x + math.sqrt(4.0)


def helper(x, n):
    return x.tolist()[n]


fx.wrap("len")
fx.wrap(helper)


def test_wrapped_functions_are_nodes():
    traced = fx.symbolic_trace(lambda x: doubled(x) + helper(x, 1))
    called = [n.target for n in traced.graph.nodes if n.op == "call_function"]
    assert called == [len, operator.mul, operator.add, helper, operator.add]
    x = torch.tensor([1.0, 2.0])
    assert traced(x).tolist() == (doubled(x) + 2.0).tolist()


def test_a_trace_leaves_nothing_behind():
    before = nn.Module.__call__, nn.Module.__getattr__, math.sqrt, globals()["helper"]
    with pytest.raises(fx.proxy.TraceError):
        fx.symbolic_trace(lambda x: 1 if x else 2)
    assert before == (nn.Module.__call__, nn.Module.__getattr__, math.sqrt, globals()["helper"])
    assert "len" not in globals()


def test_saved_and_loaded():
    traced = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 3), nn.ReLU()))
    file = io.BytesIO()
    torch.save(traced, file)
    file.seek(0)
    again = torch.load(file, weights_only=False)
    x = torch.ones(1, 2)
    assert again.code == traced.code
    assert torch.equal(again(x), traced(x))


def test_to_folder(tmp_path: Path):
    fx.symbolic_trace(nn.Sequential(nn.Linear(2, 3), nn.ReLU())).to_folder(tmp_path / "made")
    text = (tmp_path / "made" / "module.py").read_text()
    compile(text, "module.py", "exec")
    assert 'getattr(self, "0")(input_1)' in text


def test_gradients_reach_the_module_that_was_traced():
    module = nn.Linear(2, 1)
    fx.symbolic_trace(module)(torch.ones(1, 2)).sum().backward()
    assert module.weight.grad is None or module.weight.grad.tolist() == [[1.0, 1.0]]
