"""What stands around tensors in a file: parameters, generators, functions, storages, modules."""

import collections
import io
import pickle
import types

import numpy as np
import pytest

import flambeau as torch
from flambeau._tensor import typed_storage
from flambeau.serialization import load, save
from flambeau.serialization.archive import ArchiveReader
from tests.serialization.checkpoints import FORMATS, round_trip, saved


def trusted(value, **options):
    return round_trip(value, weights_only=False, **options)


def test_generators_go_on_where_they_were():
    generator = torch.Generator()
    generator.manual_seed(5)
    torch.randn(7, generator=generator)
    found = trusted(generator)
    assert type(found) is torch.Generator
    assert found.initial_seed() == 5
    assert torch.equal(torch.randn(9, generator=found), torch.randn(9, generator=generator))
    assert torch.equal(round_trip(generator.get_state()), generator.get_state())


def test_the_default_generator():
    torch.manual_seed(3)
    found = trusted(torch.default_generator)
    assert torch.equal(torch.rand(4, generator=found), torch.rand(4))


@pytest.mark.parametrize("zip_format", FORMATS)
def test_typed_storages(zip_format, monkeypatch):
    monkeypatch.setattr("flambeau._core.settings.Warnings.given", {typed_storage.DEPRECATED})
    tensor = torch.arange(4, dtype=torch.int16)
    content = {"tensor": tensor[1:], "storage": tensor.storage()}
    found = round_trip(content, zip_format=zip_format)
    assert isinstance(found["storage"], torch.ShortStorage)
    found["storage"][2] = 9
    assert found["tensor"].tolist() == [1, 9, 3]
    again = round_trip(found, zip_format=zip_format)
    assert again["storage"].tolist() == [0, 1, 9, 3]


def test_lazy_modules_before_their_first_batch():
    found = trusted(torch.nn.LazyLinear(3))
    assert type(found.weight) is torch.nn.UninitializedParameter
    assert found(torch.ones(2, 5)).shape == (2, 3)
    assert type(found) is torch.nn.Linear


def test_functions_of_torch():
    for function in (torch.relu, torch.nn.functional.gelu, torch.nn.functional.relu):
        assert trusted({"activation": function})["activation"] is function
    pickled = ArchiveReader(saved(torch.relu)).read("data.pkl")
    assert b"ctorch\nrelu\n" in pickled


@pytest.mark.parametrize("zip_format", FORMATS)
def test_modules_and_tensors_share_memory(zip_format):
    layer = torch.nn.Linear(2, 3)
    value = {"layer": layer, "row": layer.weight.detach()[1], "all": [layer.weight]}
    found = trusted(value, zip_format=zip_format)
    with torch.no_grad():
        found["layer"].weight.fill_(7)
    assert found["row"].tolist() == [7, 7]
    assert found["all"][0] is found["layer"].weight


def test_hooks_are_not_saved():
    tensor = torch.ones(2, requires_grad=True)
    tensor.register_hook(lambda grad: grad * 3)
    found = round_trip(tensor)
    found.sum().backward()
    assert found.grad.tolist() == [1, 1]


def test_the_graph_is_not_saved():
    found = round_trip(torch.ones(2, requires_grad=True) * 2)
    assert found.requires_grad
    assert found.is_leaf


Pair = collections.namedtuple("Pair", "first second")  # noqa: PYI024 - it has to be picklable


def test_containers_of_users():
    value = Pair(torch.ones(2), collections.defaultdict(list, a=[torch.zeros(1)]))
    with pytest.raises(pickle.UnpicklingError, match=r"test_objects\.Pair"):
        round_trip(value)
    found = trusted(value)
    assert type(found) is Pair
    assert found.second["a"][0].tolist() == [0]
    with torch.serialization.safe_globals([Pair]):
        assert type(round_trip(Pair(1, [torch.ones(2)]))) is Pair


def test_many_small_tensors():
    """More than 255 objects need the long form of memo numbers."""
    tensors = {f"layer{i}.weight": torch.full((i % 3, 2), i) for i in range(400)}
    tensors["shared"] = tensors["layer1.weight"]
    tensors["deep"] = torch.ones(1, 1, 1, 2, 70_000)[..., ::3]
    for protocol in (2, 3, 4, 5):
        found = load(io.BytesIO(saved(tensors, pickle_protocol=protocol)))
        assert list(found) == list(tensors)
        assert all(torch.equal(found[key], tensors[key]) for key in tensors)
        assert found["shared"] is found["layer1.weight"]
        assert found["deep"].stride() == tensors["deep"].stride()


# ---- other pickle modules


class Doubling(pickle._Pickler):
    """A pickler with a dispatch table of its own, as dill has: ints are written doubled."""

    dispatch = dict(pickle._Pickler.dispatch)

    def save_fraction(self, obj):
        self.save_reduce(complex, (obj.real * 2, obj.imag * 2), obj=obj)

    dispatch[complex] = save_fraction


def test_picklers_made_of_pythons_own():
    module = types.SimpleNamespace(
        __name__="doubling", Pickler=Doubling, Unpickler=pickle.Unpickler
    )
    sink = io.BytesIO()
    save({"a": 1 + 2j, "b": torch.ones(2)}, sink, pickle_module=module)
    found = load(io.BytesIO(sink.getvalue()), pickle_module=module)
    assert found["a"] == 2 + 4j
    assert found["b"].tolist() == [1, 1]


def test_other_picklers_are_refused_by_name():
    module = types.SimpleNamespace(__name__="strange", Pickler=dict)
    with pytest.raises(NotImplementedError, match="pickle_module=strange is not supported"):
        save(1, io.BytesIO(), pickle_module=module)


# ---- file objects with few methods


class Few:
    """Only `read`, `readinto`, `seek` and `tell`."""

    def __init__(self, content):
        stream = io.BytesIO(content)
        self.read, self.readinto = stream.read, stream.readinto
        self.seek, self.tell = stream.seek, stream.tell


@pytest.mark.parametrize("zip_format", FORMATS)
def test_file_objects_with_few_methods(zip_format):
    content = saved(torch.arange(3), _use_new_zipfile_serialization=zip_format)
    for weights_only in (True, False):
        assert load(Few(content), weights_only=weights_only).tolist() == [0, 1, 2]


def test_writers_that_take_a_part_only():
    class Slow:
        def __init__(self):
            self.taken = bytearray()

        def write(self, data):
            part = bytes(data)[:1000]
            self.taken += part
            return len(part)

    sink = Slow()
    save(torch.arange(10_000), sink)
    assert torch.equal(load(io.BytesIO(sink.taken)), torch.arange(10_000))


def test_numpy_comes_with_the_users_word():
    value = {"array": np.arange(3), "number": np.float64(1.5)}
    with pytest.raises(pickle.UnpicklingError, match="numpy"):
        round_trip(value)
    found = trusted(value)
    assert found["number"] == 1.5
    assert found["array"].tolist() == [0, 1, 2]
