"""Where classes say they are under the import hook, and where PyTorch's say it.

Each library answers in a process of its own, under the name torch.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from flambeau._core.class_homes import table

HOOK = "from flambeau import hook; hook.install()\n"

CLASSES = """
import importlib, json, pickle, sys
answers = {}
for home, name in json.load(sys.stdin):
    kind = importlib.import_module(home)
    for part in name.split("."):
        kind = getattr(kind, part)
    same = pickle.loads(pickle.dumps(kind)) is kind
    answers[f"{home}.{name}"] = kind.__module__, kind.__qualname__, repr(kind), same
print(json.dumps(answers))
"""

PROGRAM = """
import copyreg, inspect, pickle, sys, torch
from torch import nn, optim
torch.manual_seed(0)
model = nn.Sequential(nn.Conv1d(2, 3, 1), nn.BatchNorm1d(3), nn.Flatten(), nn.Linear(12, 2),
                      nn.TransformerEncoderLayer(2, 1, 4), nn.LSTM(2, 3))
for layer in model:
    print(type(layer).__module__, inspect.getmodule(type(layer)) is
          sys.modules[type(layer).__module__], type(layer))
print(copyreg.__newobj__(nn.ReLU).__class__, torch.typename(model), torch.typename(nn.Linear))
values = [torch.ones(1), nn.Parameter(torch.ones(1)), torch.Size([1]), torch.float32,
          torch.device("cpu"), torch.strided, torch.contiguous_format, torch.finfo(torch.float32),
          torch.iinfo(torch.int8), optim.Adam(model.parameters()), torch.optim.SGD([torch.ones(1)]),
          optim.lr_scheduler.StepLR(optim.SGD([torch.ones(1)]), 3),
          torch.distributions.Normal(0.0, 1.0), torch.distributions.Categorical(torch.ones(3)),
          torch.utils.data.TensorDataset(torch.ones(2)), torch.utils.data.DataLoader([1, 2])]
for value in values:
    print(type(value), type(value).__module__, type(value).__qualname__)
class Net(nn.Module):
    pass
print(repr(Net()), Net.__mro__[1], nn.ReLU()._get_name())
again = pickle.loads(pickle.dumps(model))
print([type(layer).__module__ for layer in again])
print(pickle.loads(pickle.dumps([type(value) for value in values])))
"""

SAVES = """
import sys, torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Conv1d(2, 3, 1), nn.BatchNorm1d(3), nn.Flatten(), nn.Linear(12, 2),
                      nn.GELU(), nn.Linear(2, 2), nn.PReLU())
torch.save([model, torch.optim.Adam(model.parameters()), torch.float16, torch.device("cpu"),
            torch.distributions.Normal(torch.zeros(2), torch.ones(2))], sys.argv[1])
torch.save(model, sys.argv[1] + ".model")
"""

LOADS = """
import sys, torch
model, optimizer, dtype, device, normal = torch.load(sys.argv[1], weights_only=False)
print(model, type(optimizer), dtype, device, normal)
print(type(model[0]).__module__, round(model(torch.ones(2, 2, 4)).sum().item(), 4))
with torch.serialization.safe_globals({type(part) for part in model.modules()} | {set}):
    again = torch.load(sys.argv[1] + ".model")
print(round(again(torch.ones(2, 2, 4)).sum().item(), 4))
"""


def told(program: str, *arguments: str, given: Any = None, ours: bool) -> str:
    """What a program prints under one library."""
    command = [sys.executable, "-c", (HOOK if ours else "") + program, *arguments]
    done = subprocess.run(
        command, input=json.dumps(given), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_every_class_of_the_table_is_where_torch_has_it():
    rows = [(home, name) for names in table().values() for name, home in names.items()]
    assert len(rows) > 450
    ours = json.loads(told(CLASSES, given=rows, ours=True))
    theirs = json.loads(told(CLASSES, given=rows, ours=False))
    odd = {place: (ours[place], theirs[place]) for place in theirs if ours[place] != theirs[place]}
    assert not odd


def test_instances_and_pickles_name_the_classes_of_torch():
    ours = told(PROGRAM, ours=True).splitlines()
    assert ours == told(PROGRAM, ours=False).splitlines()


SUBCLASSES = """
import json, torch, torch.optim.swa_utils

def below(kind):
    for other in kind.__subclasses__():
        if other.__module__.partition(".")[0] == kind.__module__.partition(".")[0]:
            yield other
            yield from below(other)

kinds = torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler
print(json.dumps([sorted({k.__name__ for k in below(kind)}) for kind in kinds]))
"""


def test_subclasses_are_found_without_leaving_the_package():
    """As registries of libraries look for them."""
    ours, theirs = (json.loads(told(SUBCLASSES, ours=who)) for who in (True, False))
    for mine, other in zip(ours, theirs, strict=True):
        assert set(other) <= set(mine)


@pytest.mark.parametrize("writer", [True, False])
@pytest.mark.parametrize("reader", [True, False])
def test_whole_modules_go_both_ways(tmp_path: Path, writer: bool, reader: bool):
    file = str(tmp_path / "model.pt")
    told(SAVES, file, ours=writer)
    if writer == reader:
        told(LOADS, file, ours=reader)
        return
    other = str(tmp_path / "other.pt")
    told(SAVES, other, ours=reader)
    assert told(LOADS, file, ours=reader) == told(LOADS, other, ours=reader)
