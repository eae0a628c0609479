"""Files cross over: what torch saves we load, what we save torch loads, in both formats."""

import io
import pickle
import warnings
from collections import Counter

import numpy as np
import pytest
import torch

import flambeau
from flambeau import serialization
from flambeau._core import dtype as dt
from flambeau._core.layout import channels_last
from flambeau._tensor.tensor import Tensor, wrap
from flambeau.serialization import load, save
from flambeau.serialization.archive import ArchiveReader

FORMATS = [True, False]
DTYPES = [entry for entry in dt.ALL if hasattr(torch, entry.name)]
# torch itself cannot load these from the format before 1.6: they lie in untyped storages.
pytestmark = pytest.mark.filterwarnings("ignore:ComplexHalf support")
UNTYPED = frozenset(("uint16", "uint32", "uint64", "complex32"))


def is_untyped(entry):
    return entry.name in UNTYPED or entry.name.startswith("float8")


def torch_saved(obj, **options):
    sink = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.save(obj, sink, **options)
    return sink.getvalue()


def our_saved(obj, **options):
    sink = io.BytesIO()
    save(obj, sink, **options)
    return sink.getvalue()


def torch_bytes(tensor):
    return bytes(tensor.detach().resolve_conj().contiguous().flatten().view(torch.uint8).tolist())


def check(theirs, ours):
    """The same structure, with the same bits, shapes, strides and flags in every tensor."""
    if isinstance(theirs, torch.Tensor):
        assert isinstance(ours, Tensor)
        assert str(ours.dtype) == str(theirs.dtype)
        assert tuple(ours.shape) == tuple(theirs.shape)
        assert ours._requires_grad == theirs.requires_grad
        if not theirs.is_conj():
            steps = tuple(step // ours._data.itemsize for step in ours._data.strides)
            assert steps == theirs.stride()
        assert np.ascontiguousarray(ours._data).tobytes() == torch_bytes(theirs)
    elif isinstance(theirs, dict):
        assert type(ours) is type(theirs)
        assert list(ours) == list(theirs)
        for key in theirs:
            check(theirs[key], ours[key])
    elif type(theirs) in (list, tuple):
        assert type(ours) is type(theirs)
        assert len(ours) == len(theirs)
        for ours_item, theirs_item in zip(ours, theirs, strict=True):
            check(theirs_item, ours_item)
    else:
        assert repr(ours) == repr(theirs)


def values(entry):
    return torch.tensor([0.0, 1, 1, 3, 2, 5, 7, 6]).to(getattr(torch, entry.name))


def model_and_optimizer():
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(5, 3)).sum().backward()
    optimizer.step()
    return model, optimizer


def examples():
    base = torch.arange(24.0)
    noted = torch.ones(2)
    noted.note = ["mine"]
    model, optimizer = model_and_optimizer()
    return {
        "base": base,
        "strided": base[4:20:2],
        "transposed": base.view(4, 6).t(),
        "scalar": torch.tensor(3),
        "empty": torch.empty(0, 3),
        "expanded": torch.ones(1).expand(4),
        "channels_last": torch.ones(2, 2, 3, 3).to(memory_format=torch.channels_last),
        "wants_grad": torch.ones(2, requires_grad=True),
        "conjugated": (torch.ones(2) * 1j).conj(),
        "noted": noted,
        "state": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "small": [torch.float32, torch.device("cuda:1"), torch.Size([1, 2]), torch.strided],
        "plain": (None, True, 2**80, 1.5, "text", b"bytes", bytearray(b"x"), 1j, {1, 2}),
        "counter": Counter("aab"),
    }


@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize("zip_format", FORMATS)
def test_we_load_what_torch_saves(zip_format, protocol):
    value = examples()
    content = torch_saved(
        value, pickle_protocol=protocol, _use_new_zipfile_serialization=zip_format
    )
    found = load(io.BytesIO(content))
    check(value, found)
    assert found["noted"].note == ["mine"]
    assert found["state"]._metadata == value["state"]._metadata
    found["base"]._data[4] = -1
    assert found["strided"]._data[0] == -1
    assert found["transposed"]._data[4, 0] == -1


@pytest.mark.parametrize("zip_format", FORMATS)
def test_torch_loads_what_we_save(zip_format):
    value = examples()
    ours = load(io.BytesIO(torch_saved(value)))
    content = our_saved(ours, _use_new_zipfile_serialization=zip_format)
    back = torch.load(io.BytesIO(content), weights_only=True)
    check(back, ours)
    assert back["noted"].note == ["mine"]
    assert back["state"]._metadata == value["state"]._metadata
    back["base"][4] = -1
    assert back["strided"][0] == -1
    model, optimizer = model_and_optimizer()
    model.load_state_dict(back["state"])
    optimizer.load_state_dict(back["optimizer"])


@pytest.mark.parametrize("entry", DTYPES, ids=str)
@pytest.mark.parametrize("zip_format", FORMATS)
def test_every_dtype_from_torch(entry, zip_format):
    value = values(entry)
    content = torch_saved(value, _use_new_zipfile_serialization=zip_format)
    check(value, load(io.BytesIO(content)))


# torch cannot load its own untyped storages from the legacy format.
TO_TORCH = [(e, new) for e in DTYPES for new in FORMATS if new or not is_untyped(e)]


@pytest.mark.parametrize(("entry", "zip_format"), TO_TORCH, ids=str)
def test_every_dtype_to_torch(entry, zip_format):
    data = np.array([0, 1, 1, 3, 2, 5, 7, 6], np.float32).astype(entry.numpy_dtype)
    content = our_saved(wrap(data), _use_new_zipfile_serialization=zip_format)
    back = torch.load(io.BytesIO(content), weights_only=True)
    assert str(back.dtype) == str(entry)
    assert torch_bytes(back) == data.tobytes()


def test_the_pickle_is_torchs_byte_for_byte():
    """Plain tensors in plain containers: the same opcodes, names and memo numbers."""
    base = torch.arange(6.0)
    value = {"a": base, "b": [base[2:], torch.ones(2, dtype=torch.uint16)], "c": torch.float32}
    content = torch_saved(value)
    ours = our_saved(load(io.BytesIO(content)))
    assert ArchiveReader(ours).read("data.pkl") == ArchiveReader(content).read("data.pkl")


def test_the_layout_is_torchs():
    """Everything but the identity number at the end: offsets, paddings, descriptors."""
    content = torch_saved({"a": torch.arange(6.0), "b": torch.empty(0), "c": torch.ones(3)})
    ours = our_saved(load(io.BytesIO(content)))
    end = content.index(b"archive/.data/serialization_id")
    assert ours[:end] == content[:end]
    assert len(ours) == len(content)


def test_torch_maps_our_files_and_computes_our_offsets(tmp_path, monkeypatch):
    from torch.utils.serialization import config

    path = tmp_path / "model.pt"
    save([wrap(np.full(n, n, np.float32)) for n in (5, 0, 1000, 1)], path)
    monkeypatch.setenv("TORCH_SERIALIZATION_DEBUG", "1")
    with config.patch("load.calculate_storage_offsets", True):
        for tensor in torch.load(path, mmap=True):
            assert (tensor == len(tensor)).all()


def test_we_map_torchs_files(tmp_path):
    path = tmp_path / "model.pt"
    torch.save([torch.full((n,), float(n)) for n in (5, 0, 1000, 1)], path)
    for tensor in load(path, mmap=True):
        assert (tensor._data == tensor._data.size).all()


def test_numpy_scalars_need_the_users_word():
    content = torch_saved({"loss": np.float64(1.5)})
    with pytest.raises(pickle.UnpicklingError, match=r"numpy\._core\.multiarray\.scalar"):
        load(io.BytesIO(content))
    allowed = [np._core.multiarray.scalar, np.dtype, np.dtypes.Float64DType]
    allowed[0] = (allowed[0], "numpy._core.multiarray.scalar")
    with serialization.safe_globals(allowed):
        assert load(io.BytesIO(content)) == {"loss": 1.5}
    assert load(io.BytesIO(content), weights_only=False) == {"loss": 1.5}


class Unknown:
    pass


def first_line(action):
    with pytest.raises(Exception) as caught:
        action()
    return type(caught.value), str(caught.value).split("\n")[0]


@pytest.mark.parametrize(
    "content",
    [
        torch_saved(Unknown()),
        b"\x80\x02K\x01.",
    ],
    ids=["unknown global", "no magic number"],
)
def test_errors_are_torchs(content):
    theirs = first_line(lambda: torch.load(io.BytesIO(content)))
    assert first_line(lambda: load(io.BytesIO(content))) == theirs


def test_errors_about_files_are_torchs(tmp_path):
    for name in (tmp_path / "nothing.pt", 3, object()):
        assert first_line(lambda name=name: load(name)) == first_line(
            lambda name=name: torch.load(name)
        )
    for name in (tmp_path / "nowhere" / "x.pt", 3):
        assert first_line(lambda name=name: save(1, name)) == first_line(
            lambda name=name: torch.save(1, name)
        )


def test_blocked_globals_in_torchs_words():
    content = torch_saved(Unknown())
    messages = []
    for loader in (torch.load, load):
        with pytest.raises(pickle.UnpicklingError) as caught:
            loader(io.BytesIO(content))
        line = [line for line in str(caught.value).split("\n") if "WeightsUnpickler error" in line]
        messages.append(line)
    assert messages[0] == messages[1]


def test_unsafe_globals_agree():
    content = torch_saved([Unknown(), {1}, np.float64(2)])
    theirs = torch.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(content))
    ours = serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(content))
    assert sorted(ours) == sorted(theirs)


def test_torch_loads_our_memory_formats():
    content = our_saved([channels_last])
    assert torch.load(io.BytesIO(content), weights_only=False) == [torch.channels_last]


@pytest.mark.parametrize("zip_format", FORMATS)
def test_parameters(zip_format):
    nn = flambeau.nn
    plain, noted = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(1), False)
    noted.note = "mine"
    content = torch_saved([plain, noted], _use_new_zipfile_serialization=zip_format)
    for weights_only in (True, False):
        found = load(io.BytesIO(content), weights_only=weights_only)
        assert [type(entry) for entry in found] == [nn.Parameter, nn.Parameter]
        assert [entry.requires_grad for entry in found] == [True, False]
        assert found[1].note == "mine"
    content = our_saved(found, _use_new_zipfile_serialization=zip_format)
    back = torch.load(io.BytesIO(content), weights_only=True)
    assert [type(entry) for entry in back] == [torch.nn.Parameter, torch.nn.Parameter]
    assert [entry.requires_grad for entry in back] == [True, False]
    assert back[1].note == "mine"


def allowed_load(stream):
    nn = flambeau.nn
    with serialization.safe_globals([nn.Sequential, nn.Linear, nn.ReLU]):
        return load(stream)


def unsafe_load(stream):
    return load(stream, weights_only=False)


@pytest.mark.parametrize("loader", [unsafe_load, allowed_load])
def test_whole_modules_with_the_users_word(loader):
    nn = flambeau.nn
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU())
    found = loader(io.BytesIO(torch_saved(model)))
    assert type(found) is nn.Sequential
    assert type(found[0]) is nn.Linear
    back = torch.load(io.BytesIO(our_saved(found)), weights_only=False)
    assert type(back) is torch.nn.Sequential
    for theirs, ours in zip(model.parameters(), back.parameters(), strict=True):
        assert torch.equal(theirs, ours)
    assert torch.equal(model(torch.ones(2, 3)), back(torch.ones(2, 3)))
