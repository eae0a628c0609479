"""Sequential, ModuleList, ModuleDict, ParameterList, ParameterDict."""

from collections import OrderedDict

import pytest

import flambeau as torch
from flambeau import nn


def kinds(modules):
    return [type(module).__name__ for module in modules]


def test_sequential_is_a_list_of_steps():
    steps = nn.Sequential(nn.ReLU(), nn.Tanh(), nn.Sigmoid())
    assert isinstance(steps[-1], nn.Sigmoid)
    assert kinds(steps[1:]) == ["Tanh", "Sigmoid"]
    del steps[0]
    assert list(steps._modules) == ["0", "1"]
    steps.append(nn.GELU()).insert(0, nn.ReLU()).extend([nn.ELU()])
    assert kinds(steps) == ["ReLU", "Tanh", "Sigmoid", "GELU", "ELU"]
    assert kinds(steps[:1] + steps[1:2]) == ["ReLU", "Tanh"]
    assert len(steps * 2) == 10
    assert isinstance(steps.pop(-1), nn.ELU)
    steps[0] = nn.Identity()
    assert kinds(steps)[0] == "Identity"
    with pytest.raises(IndexError, match="index 9 is out of range"):
        steps[9]


def test_sequential_with_names():
    steps = nn.Sequential(OrderedDict(begin=nn.Identity(), end=nn.ReLU()))
    assert steps.end is steps[1]
    assert steps(torch.ones(1)).item() == 1


def test_module_list():
    layers = nn.ModuleList([nn.Linear(1, 2), nn.Linear(1, 2)])
    layers.append(nn.ReLU())
    layers.insert(0, nn.Tanh())
    assert kinds(layers) == ["Tanh", "Linear", "Linear", "ReLU"]
    assert kinds(layers[::-1])[0] == "ReLU"
    assert "(1-2): 2 x Linear(" in repr(layers)
    layers += [nn.GELU()]
    assert len(layers) == 5
    assert len(list(layers.parameters())) == 4
    with pytest.raises(NotImplementedError, match='missing the required "forward" function'):
        layers(1)


def test_module_dict():
    table = nn.ModuleDict([("b", nn.ReLU()), ("a", nn.Tanh())])
    table["c"] = nn.Linear(1, 1)
    assert list(table) == ["b", "a", "c"]
    assert "a" in table
    assert isinstance(table.pop("b"), nn.ReLU)
    table.update({"d": nn.ReLU()})
    assert list(table.keys()) == ["a", "c", "d"]
    with pytest.raises(TypeError, match="int is not a Module subclass"):
        table["x"] = 3


def test_parameter_list():
    values = nn.ParameterList([torch.ones(2), nn.Parameter(torch.zeros(1)), "text"])
    assert isinstance(values[0], nn.Parameter)
    assert values[-1] == "text"
    assert [name for name, _ in values.named_parameters()] == ["0", "1"]
    values[0] = torch.zeros(3)
    assert values[0].shape == (3,)
    assert len(values[:2]) == 2
    with pytest.raises(RuntimeError, match="ParameterList should not be called"):
        values(1)


def test_parameter_dict():
    values = nn.ParameterDict({"a": torch.ones(2), "b": 3})
    assert isinstance(values["a"], nn.Parameter)
    assert values.popitem() == ("b", 3)
    merged = values | {"c": torch.ones(1)}
    assert list(merged.keys()) == ["a", "c"]
    assert list(values.keys()) == ["a"]
    assert values.setdefault("z", 1) == 1
    values.clear()
    assert not len(values)
