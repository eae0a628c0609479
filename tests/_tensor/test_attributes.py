"""`tensor.__dict__` holds what users keep on a tensor, and nothing that makes it one."""

import copy
import pickle

import pytest

import flambeau
from flambeau import Tensor


class Named(Tensor):
    def __new__(cls, data, name=None):
        return flambeau.as_tensor(data).as_subclass(cls)

    def __init__(self, data, name=None):
        self.name_of = name


class Mixin:
    def describe(self):
        return self.name_of


class Mixed(Mixin, Named):
    """As the tensors of medical images are: what is no tensor comes first."""


def _tensors():
    leaf = flambeau.ones(3, requires_grad=True)
    made = leaf * 2
    made.retain_grad()
    leaf.register_hook(lambda grad: grad)
    made.sum().backward()
    view = flambeau.ones(3)[1:]
    view.add_(1)
    view.untyped_storage()
    with flambeau.inference_mode():
        inference = flambeau.ones(2)
    parameter = flambeau.nn.Parameter(flambeau.ones(2))
    sparse = flambeau.eye(2).to_sparse()
    return [leaf, made, view, inference, parameter, sparse, made.detach(), leaf.grad]


@pytest.mark.parametrize("tensor", _tensors())
def test_a_tensor_shows_none_of_its_fields(tensor):
    assert vars(tensor) == {}
    tensor.mine = 1
    assert vars(tensor) == {"mine": 1}
    del tensor.mine
    assert tensor.__dict__ == {}


@pytest.mark.parametrize("kind", [Named, Mixed])
@pytest.mark.parametrize("how", ["assigned", "updated", "item by item", "deep", "pickled"])
def test_attributes_copied_to_another_tensor_leave_its_data(kind, how):
    first, second = kind(flambeau.ones(2), "first"), kind(flambeau.zeros(3), "second")
    if how == "assigned":
        second.__dict__ = first.__dict__.copy()
    elif how == "updated":
        second.__dict__.update(first.__dict__)
    elif how == "deep":
        second.__dict__ |= copy.deepcopy(first.__dict__)
    elif how == "pickled":
        second.__dict__ = pickle.loads(pickle.dumps(first.__dict__))
    else:
        for name, value in vars(first).items():
            second.__dict__[name] = value
    assert second.name_of == "first"
    assert second.tolist() == [0.0, 0.0, 0.0]
    assert second.shape == (3,)


def test_changes_of_the_dictionary_are_changes_of_the_tensor():
    tensor = flambeau.ones(1)
    own = tensor.__dict__
    own["a"] = 1
    assert own.setdefault("b", 2) == 2
    assert (tensor.a, tensor.b) == (1, 2)
    del own["a"]
    assert not hasattr(tensor, "a")
    assert own.pop("b") == 2
    assert own.pop("b", None) is None
    assert not hasattr(tensor, "b")
    own["c"] = 3
    assert own.popitem() == ("c", 3)
    own["d"] = 4
    own.clear()
    assert vars(tensor) == {}
    assert tensor.tolist() == [1.0]


def test_a_dictionary_put_in_place_replaces_the_attributes():
    tensor = flambeau.ones(1)
    tensor.a = 1
    tensor.__dict__ = {"b": 2, "_data": None}
    assert vars(tensor) == {"b": 2}
    assert tensor.tolist() == [1.0]
    with pytest.raises(TypeError, match="__dict__ must be set to a dictionary, not a 'int'"):
        tensor.__dict__ = 3


def test_classes_made_by_a_call_belong_to_the_module_of_the_call():
    assert type("Made", (Tensor,), {}).__module__ == __name__
    assert type("Made", (Mixin, Tensor), {"__module__": "other"}).__module__ == "other"
