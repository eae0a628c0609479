"""`flambeau inspect`, `verify` and `convert` on files that PyTorch and safetensors have written."""

from __future__ import annotations

import json

import pytest
import torch

pytest.importorskip("safetensors", reason="the reference implementation is the oracle")
from safetensors.torch import load_file, save_file  # noqa: E402

from flambeau import cli  # noqa: E402


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2))
        self.head = torch.nn.LSTM(2, 3, num_layers=2)

    def forward(self, x):
        return self.body(x) + torch.tensor([1.0, 2.0])[:, None, None]

    @torch.jit.export
    def twice(self, x):
        return x * 2


@pytest.fixture
def inspect(capsys):
    def run(path):
        assert cli.main(["inspect", str(path), "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    return run


def listed(found):
    return [(x["name"], x["dtype"], x["shape"], x["stride"]) for x in found["tensors"]]


def expected(state):
    return [
        (name, str(x.dtype).removeprefix("torch."), list(x.shape), list(x.stride()))
        for name, x in state.items()
    ]


@pytest.mark.parametrize("new_format", [True, False])
def test_state_dicts_and_modules(tmp_path, inspect, new_format):
    model = Net()
    torch.save(model.state_dict(), tmp_path / "a", _use_new_zipfile_serialization=new_format)
    torch.save(model, tmp_path / "b", _use_new_zipfile_serialization=new_format)
    first, second = inspect(tmp_path / "a"), inspect(tmp_path / "b")
    assert listed(first) == expected(model.state_dict()) and first["refused"] == []
    assert sorted(listed(second)) == sorted(expected(model.state_dict()))
    unsafe = {f"{__name__}.Net", "torch.nn.modules.rnn.LSTM", "torch.nn.modules.conv.Conv2d"}
    assert unsafe <= set(second["refused"])
    if new_format:
        theirs = torch.serialization.get_unsafe_globals_in_checkpoint(tmp_path / "b")
        assert set(second["refused"]) == set(theirs)
    total = sum(x.numel() for x in model.state_dict().values())
    assert first["elements"] == second["elements"] == total
    assert cli.main(["verify", str(tmp_path / "a"), str(tmp_path / "b")]) == 0


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_torchscript(tmp_path, inspect):
    model = torch.jit.script(Net())
    model.save(tmp_path / "net.pt")
    found = inspect(tmp_path / "net.pt")
    assert set(model.state_dict()) <= {x["name"] for x in found["tensors"]}
    shapes = {x["name"]: x["shape"] for x in found["tensors"]}
    assert all(shapes[name] == list(x.shape) for name, x in model.state_dict().items())
    methods = [name for names in found["methods"].values() for name in names]
    assert {"Net.forward", "Net.twice", "BatchNorm2d.forward"} <= set(methods)
    assert cli.main(["verify", str(tmp_path / "net.pt")]) == 0


def test_unusual_contents(tmp_path, inspect):
    """Everything is shown, also what flambeau itself cannot hold."""
    x = torch.arange(10.0)
    torch.save(
        {
            "half": x.to(torch.float8_e4m3fn),
            "meta": torch.zeros(2, 3, device="meta"),
            "sparse": torch.eye(3).to_sparse(),
            "array": x.numpy(),
            "views": [x, x[2:4], x.view(2, 5).t()],
        },
        tmp_path / "x",
    )
    found = inspect(tmp_path / "x")
    names = {entry["name"]: entry for entry in found["tensors"]}
    assert names["half"]["dtype"] == "float8_e4m3fn" and names["meta"]["storage"] is None
    assert names["views.2"]["stride"] == [1, 5] and names["views.1"]["offset"] == 2
    assert found["shared"] == {names["views.0"]["storage"]: ["views.0", "views.1", "views.2"]}
    assert any("_reconstruct" in name for name in found["refused"])


def test_convert(tmp_path):
    torch.manual_seed(0)
    model = Net()
    state = model.state_dict()
    torch.save(state, tmp_path / "a.pth")
    assert cli.main(["convert", str(tmp_path / "a.pth"), str(tmp_path / "a.safetensors")]) == 0
    assert cli.main(["convert", str(tmp_path / "a.safetensors"), str(tmp_path / "b.pth")]) == 0
    loaded = torch.load(tmp_path / "b.pth")
    assert loaded._metadata == state._metadata
    for found in (load_file(tmp_path / "a.safetensors"), loaded):
        assert found.keys() == state.keys()
        assert all(torch.equal(found[name], state[name]) for name in state)
        assert all(found[name].dtype == state[name].dtype for name in state)
    save_file({"x": torch.ones(2, dtype=torch.bfloat16)}, tmp_path / "c.safetensors", {"k": "v"})
    assert cli.main(["convert", str(tmp_path / "c.safetensors"), str(tmp_path / "c.pt")]) == 0
    again = torch.load(tmp_path / "c.pt")
    assert again["x"].dtype == torch.bfloat16 and again._safetensors_metadata == {"k": "v"}
