"""Our .safetensors files beside those of the `safetensors` package: the same bytes, both ways."""

from __future__ import annotations

import json
import random
import struct
import subprocess
import sys
from math import prod
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import torch

pytest.importorskip("safetensors", reason="the reference implementation is the oracle")
import safetensors  # noqa: E402
import safetensors.numpy as their_numpy  # noqa: E402
import safetensors.torch as theirs  # noqa: E402

import flambeau  # noqa: E402
from flambeau.serialization import safetensors as our_package  # noqa: E402
from flambeau.serialization.safetensors import numpy as our_numpy  # noqa: E402
from flambeau.serialization.safetensors import torch as ours  # noqa: E402
from flambeau.serialization.safetensors.dtypes import DTYPES  # noqa: E402

ROOT = Path(__file__).parents[1]
DTYPE_NAMES = [entry.name for entry in DTYPES.values()]
NAMES = ["weight", "a", "b.c", "", "é", "\u2028", '"quoted"', "back\\slash", "tab\t", "\x01", "𝄞"]


def pair(rng, dtype_name):
    """The same random bytes as a tensor of either library."""
    shape = [rng.randrange(4) for _ in range(rng.randrange(4))]
    dtypes = getattr(torch, dtype_name), getattr(flambeau, dtype_name)
    if 0 in shape:
        return torch.empty(shape, dtype=dtypes[0]), flambeau.empty(shape, dtype=dtypes[1])
    size = prod(shape) * dtypes[0].itemsize
    raw = np.frombuffer(rng.randbytes(size), np.uint8) & (1 if dtype_name == "bool" else 255)
    their = torch.from_numpy(raw.copy()).view(dtypes[0]).reshape(shape)
    our = flambeau.from_numpy(raw.copy()).view(dtypes[1]).reshape(shape)
    return their, our


def dicts(seed):
    rng = random.Random(seed)
    names = rng.sample(NAMES, rng.randrange(1, len(NAMES)))
    pairs = {name: pair(rng, rng.choice(DTYPE_NAMES)) for name in names}
    # The package writes several texts in an order that changes from call to call.
    metadata = {rng.choice(NAMES): rng.choice(NAMES)}
    return (
        {name: their for name, (their, _) in pairs.items()},
        {name: our for name, (_, our) in pairs.items()},
        rng.choice([None, {}, metadata]),
    )


def raw_bytes(tensor):
    return bytes(tensor.reshape(-1).view(type_module(tensor).uint8).tolist())


def type_module(tensor):
    return torch if isinstance(tensor, torch.Tensor) else flambeau


def check_same(their, our):
    assert isinstance(our, flambeau.Tensor)
    assert str(our.dtype) == str(their.dtype)
    assert tuple(our.shape) == tuple(their.shape)
    assert our.is_contiguous() and not our.requires_grad
    assert our.untyped_storage().nbytes() == their.untyped_storage().nbytes()
    if their.numel():
        assert raw_bytes(our) == raw_bytes(their)


@pytest.mark.parametrize("seed", range(60))
def test_the_same_bytes(seed, tmp_path):
    their_dict, our_dict, metadata = dicts(seed)
    expected = theirs.save(their_dict, metadata)
    assert ours.save(our_dict, metadata) == expected
    ours.save_file(our_dict, tmp_path / "ours", metadata)
    theirs.save_file(their_dict, tmp_path / "theirs", metadata)
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes() == expected


@pytest.mark.parametrize("backend", ["mmap", "pread"])
@pytest.mark.parametrize("seed", range(20))
def test_files_cross_over(seed, backend, tmp_path):
    their_dict, our_dict, metadata = dicts(seed)
    theirs.save_file(their_dict, tmp_path / "theirs", metadata)
    ours.save_file(our_dict, tmp_path / "ours", metadata)
    loaded = ours.load_file(tmp_path / "theirs", backend=backend)
    reference = theirs.load_file(tmp_path / "ours", backend=backend)
    sized = [name for name in reference if reference[name].numel()]
    assert [name for name in loaded if loaded[name].numel()] == sized
    assert set(loaded) == set(reference)
    for name, tensor in reference.items():
        check_same(tensor, loaded[name])
    with (
        safetensors.safe_open(tmp_path / "ours", "pt") as their_file,
        our_package.safe_open(tmp_path / "ours", "pt", backend=backend) as our_file,
    ):
        assert our_file.keys() == their_file.keys()
        assert our_file.metadata() == their_file.metadata()
        for name in our_file.keys():  # noqa: SIM118
            their_slice, our_slice = their_file.get_slice(name), our_file.get_slice(name)
            assert our_slice.get_shape() == their_slice.get_shape()
            assert our_slice.get_dtype() == their_slice.get_dtype()


def test_bytes_cross_over():
    for seed in range(20):
        their_dict, _, metadata = dicts(seed)
        for unsupported in [k for k, v in their_dict.items() if v.dtype == torch.float8_e8m0fnu]:
            del their_dict[unsupported]  # save writes it, load does not know it (safetensors 0.8)
        content = theirs.save(their_dict, metadata)
        loaded = ours.load(content)
        for name, tensor in theirs.load(content).items():
            check_same(tensor, loaded[name])


def outcome(action):
    """The result, or the class of the error and its text."""
    try:
        return action()
    except Exception as error:
        return type(error).__name__, str(error)


# ---- slices

INDICES = [
    "0", "-1", "4", "-5", "1:3", ":", "...", "..., 1", "1, ..., 2", "None", "::2", "::-1",
    "0, 1, 2", "0, 1, 2, 3", "1:1", "3:1", "1:100", "-100:2", "::0", ":, 2", "0:3:2, 1:5:3, 0",
    "[1, 2], 0", "()",
]  # fmt: skip


@pytest.mark.parametrize("text", INDICES)
def test_slices(text, tmp_path):
    numbers = np.random.default_rng(0).random((4, 5, 6), np.float32)
    their_numpy.save_file({"x": numbers}, tmp_path / "file")
    index = eval(f"np.s_[{text}]") if text != "()" else ()

    def read(package):
        with package.safe_open(tmp_path / "file", "pt") as file:
            part = file.get_slice("x")[index]
        return part.tolist(), tuple(part.shape), tuple(part.stride())

    assert outcome(lambda: read(our_package)) == outcome(lambda: read(safetensors))


# ---- what saving refuses


def refused(module, face):
    """Ways to save that fail, each under its name, for one library and its `safetensors`."""
    x, y = module.arange(12.0).reshape(3, 4), module.ones(2)
    wide = module.zeros(1, 2, 3, 3).contiguous(memory_format=module.channels_last)
    return {
        "a list": lambda: face.save([x]),
        "no tensor": lambda: face.save({"a": 1}),
        "an int as name": lambda: face.save({1: x}),
        "an int in metadata": lambda: face.save({"a": x}, {"a": 1}),
        "transposed": lambda: face.save({"k": x.t()}),
        "channels last": lambda: face.save({"k": wide}),
        "every second": lambda: face.save({"k": x[:, ::2]}),
        "the same twice": lambda: face.save({"a": x, "b": x}),
        "overlapping rows": lambda: face.save({"a": x[0:2], "b": x[1:3], "c": x.clone()}),
        "two groups": lambda: face.save({"a": x, "b": x, "c": y, "d": y}),
        "text to load": lambda: face.load("text"),
        "a bytearray to load": lambda: face.load(bytearray(10)),
        "no file": lambda: face.load_file("/no/such/file"),
    }


@pytest.mark.parametrize("name", list(refused(flambeau, ours)))
def test_refusals(name):
    """The same class and words; the sets of names in them print in any order."""

    def shape(result):
        kind, text = result
        return kind, sorted(text) if "share memory" in text else text

    their, our = outcome(refused(torch, theirs)[name]), outcome(refused(flambeau, ours)[name])
    assert shape(our) == shape(their)


def test_rows_that_do_not_overlap_are_saved():
    x, y = torch.arange(12.0).reshape(3, 4), flambeau.arange(12.0).reshape(3, 4)
    expected = theirs.save({"a": x[0], "b": x[1:3]})
    assert ours.save({"a": y[0], "b": y[1:3]}) == expected


def test_parameters_and_scalars():
    expected = theirs.save({"p": torch.nn.Parameter(torch.ones(2)), "s": torch.tensor(True)})
    mine = {"p": flambeau.nn.Parameter(flambeau.ones(2)), "s": flambeau.tensor(True)}
    assert ours.save(mine) == expected


# ---- damaged files

FIELD = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}


def content(header, data=b""):
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(raw)) + raw + data


BROKEN = {
    "empty": b"",
    "seven bytes": b"1234567",
    "no header": bytes(8),
    "half a header": content(b"{"),
    "longer than 2**63": struct.pack("<Q", 2**63) + b"{}",
    "longer than 100 MB": struct.pack("<Q", 100_000_001) + b"{}",
    "longer than the file": struct.pack("<Q", 99_000_000) + b"{}",
    "a byte order mark": content(b"\xef\xbb\xbf{}"),
    "zeros as padding": content(b"{}\0\0"),
    "text behind": content(b"{}x"),
    "no UTF-8": content(b'{"\xff":1}'),
    "no value": content(b'{"a":}'),
    "a comma too much": content(b'{"__metadata__":{"a":"b",}}'),
    "single quotes": content(b"{'a':1}"),
    "a list": content(b"[]"),
    "NaN": content(b'{"a":NaN}'),
    "null": content(b'{"a":null}'),
    "nested deeply": content(b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    "half a surrogate": content(rb'{"__metadata__":{"a":"\ud800"}}'),
    "a newline in a string": content(b'{"__metadata__":{"a":"\n"}}'),
    "a wrong escape": content(rb'{"__metadata__":{"a":"\x41"}}'),
    "a number in metadata": content({"__metadata__": {"a": 1}}),
    "metadata as list": content({"__metadata__": []}),
    "metadata twice": content(b'{"__metadata__":{},"__metadata__":{}}'),
    "dtype twice": content(
        b'{"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}}', b"1234"
    ),
    "no offsets": content({"a": {"dtype": "F32", "shape": [1]}}, b"1234"),
    "unknown dtype": content({"a": {**FIELD, "dtype": "Q4"}}, b"1234"),
    "dtype in lower case": content({"a": {**FIELD, "dtype": "f32"}}, b"1234"),
    "negative size": content({"a": {**FIELD, "shape": [-1]}}, b"1234"),
    "size as float": content({"a": {**FIELD, "shape": [1.0]}}, b"1234"),
    "size with exponent": content(
        b'{"a":{"dtype":"F32","shape":[1e0],"data_offsets":[0,4]}}', b"1234"
    ),
    "size with leading zero": content(
        b'{"a":{"dtype":"F32","shape":[01],"data_offsets":[0,4]}}', b"1234"
    ),
    "size as bool": content({"a": {**FIELD, "shape": [True]}}, b"1234"),
    "product overflows": content({"a": {**FIELD, "shape": [2**62, 2**62]}}, b"1234"),
    "bits overflow": content({"a": {**FIELD, "shape": [2**63]}}, b"1234"),
    "size over 64 bits": content({"a": {**FIELD, "shape": [2**64]}}, b"1234"),
    "zero times overflow": content({"a": {**FIELD, "shape": [2**62, 2**62, 0]}}, b"1234"),
    "offsets reversed": content({"a": {**FIELD, "data_offsets": [4, 0]}}, b"1234"),
    "three offsets": content({"a": {**FIELD, "data_offsets": [0, 4, 8]}}, b"1234"),
    "past the end": content({"a": {**FIELD, "shape": [2], "data_offsets": [0, 8]}}, b"1234"),
    "a hole at the start": content({"a": {**FIELD, "data_offsets": [4, 8]}}, bytes(8)),
    "a hole at the end": content({"a": FIELD}, bytes(8)),
    "a hole": content({"a": FIELD, "b": {**FIELD, "data_offsets": [8, 12]}}, bytes(12)),
    "an overlap": content({"a": FIELD, "b": {**FIELD, "data_offsets": [2, 6]}}, bytes(6)),
    "the same bytes": content({"a": FIELD, "b": {**FIELD, "data_offsets": [0, 8]}}, bytes(8)),
    "another size": content({"a": {**FIELD, "shape": [2]}}, b"1234"),
    "half a byte": content({"a": {"dtype": "F4", "shape": [3], "data_offsets": [0, 2]}}, b"12"),
    "data without tensors": content({}, b"1234"),
}


@pytest.mark.parametrize("name", list(BROKEN))
def test_broken_files(name, tmp_path):
    """Whatever the package refuses we refuse; where its words are fixed, ours begin like them."""
    path = tmp_path / "file"
    path.write_bytes(BROKEN[name])
    for face, package in ((theirs, safetensors), (ours, our_package)):
        with pytest.raises(package.SafetensorError):
            face.load(BROKEN[name])
        with pytest.raises(package.SafetensorError):
            face.load_file(path)
    expected = outcome(lambda: theirs.load(BROKEN[name]))[1].split(" at line ")[0]
    found = outcome(lambda: ours.load(BROKEN[name]))[1]
    if "JSON" in expected or "UTF-8" in expected:
        assert found.split(":")[:1] == expected.split(":")[:1]
    elif "subbytes" not in expected:
        assert found.startswith(expected.removesuffix("for tensor"))


STRICTER = {
    "a name twice": content(b'{"a":%s,"a":%s}' % ((json.dumps(FIELD).encode(),) * 2), b"1234"),
    "metadata key twice": content(b'{"__metadata__":{"a":"1","a":"2"}}'),
    "unknown field": content({"a": {**FIELD, "x": 1}}, b"1234"),
    "a list for a tensor": content(b'{"a":["F32",[1],[0,4]]}', b"1234"),
    "metadata null": content({"__metadata__": None}),
}


@pytest.mark.parametrize("name", list(STRICTER))
def test_where_we_are_stricter(name):
    """What two readers may understand differently, or no writer writes, we refuse."""
    theirs.load(STRICTER[name])
    with pytest.raises(our_package.SafetensorError):
        ours.load(STRICTER[name])


def test_headers_that_are_fine():
    for header in (b" {}", b"{}  ", b"{ }\n\t\r ", b'{"__metadata__" : { "a" : "\\u00e9\\n" } }'):
        assert ours.load(content(header)) == theirs.load(content(header)) == {}
    odd = content({"a": {**FIELD, "data_offsets": [1, 5]}, "u": {
        "dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}, b"\x07\0\0\x80?")  # fmt: skip
    assert ours.load(odd)["a"].item() == theirs.load(odd)["a"].item() == 1.0


# ---- models


class Tied:
    """The same small model with a shared weight, in either library."""

    @staticmethod
    def make(module):
        class Model(module.nn.Module):
            def __init__(self):
                super().__init__()
                self.first = module.nn.Linear(3, 3)
                self.last = module.nn.Linear(3, 3)
                self.last.weight = self.first.weight

        module.manual_seed(0)
        return Model()


def test_models(tmp_path):
    their_model, our_model = Tied.make(torch), Tied.make(flambeau)
    theirs.save_model(their_model, tmp_path / "theirs")
    ours.save_model(our_model, tmp_path / "ours")
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()
    for parameter in our_model.parameters():
        parameter.data.zero_()
    assert ours.load_model(our_model, tmp_path / "theirs") == (set(), [])
    for mine, reference in zip(our_model.parameters(), their_model.parameters(), strict=True):
        assert mine.tolist() == reference.tolist()
    other, mine = torch.nn.Linear(2, 2, bias=False), flambeau.nn.Linear(2, 2, bias=False)
    theirs.save_file({"x": torch.ones(1)}, tmp_path / "x")
    expected = outcome(lambda: theirs.load_model(other, tmp_path / "x"))
    assert outcome(lambda: ours.load_model(mine, tmp_path / "x")) == expected
    assert ours.load_model(mine, tmp_path / "x", strict=False) == ({"weight"}, ["x"])


# ---- arrays


@pytest.mark.parametrize("code", ["f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1",
                                  "?", "c8", ">f4", ">i8"])  # fmt: skip
def test_arrays(code, tmp_path):
    x = np.arange(6).reshape(2, 3).astype(code)
    assert our_numpy.save({"x": x}) == their_numpy.save({"x": x})
    our_numpy.save_file({"x": x}, tmp_path / "x")
    for loaded in (our_numpy.load(our_numpy.save({"x": x})), our_numpy.load_file(tmp_path / "x")):
        assert loaded["x"].dtype == x.dtype.newbyteorder("=") and (loaded["x"] == x).all()


def test_arrays_beyond_numpy():
    x = np.arange(4).astype(ml_dtypes.bfloat16)
    expected = theirs.save({"x": torch.arange(4, dtype=torch.bfloat16)})
    assert our_numpy.save({"x": x}) == expected
    assert our_numpy.load(expected)["x"].dtype == ml_dtypes.bfloat16
    for array in (np.zeros(1, complex), np.array([None])):
        their, our = (
            outcome(lambda m=m, a=array: m.save({"x": a})) for m in (their_numpy, our_numpy)
        )
        assert our[0] == their[0] == "SafetensorError"
        assert our[1].split(".")[0] == their[1].split(".")[0]


@pytest.mark.parametrize(
    "arguments",
    [("xx",), ("pt", "xxx"), ("pt", "meta"), ("pt", None), ("np", "cpu", "fast"), ()],
)
def test_wrong_arguments_of_safe_open(arguments, tmp_path):
    theirs.save_file({"x": torch.ones(1)}, tmp_path / "x")

    def open_with(package):
        options = {"backend": arguments[2]} if len(arguments) > 2 else {}
        return package.safe_open(tmp_path / "x", *arguments[:2], **options).keys()

    their, our = outcome(lambda: open_with(safetensors)), outcome(lambda: open_with(our_package))
    assert our[0] == their[0]
    if our[0] != "TypeError":
        assert our == their


def test_a_closed_file(tmp_path):
    theirs.save_file({"x": torch.ones(1)}, tmp_path / "x")
    for package in (safetensors, our_package):
        with package.safe_open(tmp_path / "x", "pt") as file:
            x = file.get_tensor("x")
            assert outcome(lambda f=file: f.get_tensor("y"))[1] == "File does not contain tensor y"
        for action in (file.keys, file.metadata, lambda f=file: f.get_tensor("x")):
            assert outcome(action) == ("SafetensorError", "File is closed")
        assert x.tolist() == [1.0]


# ---- torch.load, and the package itself over flambeau


def test_torch_load(tmp_path):
    path = str(tmp_path / "x.safetensors")
    theirs.save_file({"x": torch.ones(2)}, path)
    assert flambeau.load(path)["x"].tolist() == torch.load(path)["x"].tolist()
    for place in ({"cpu": "cpu"}, lambda storage, location: storage):
        their = outcome(lambda m=place: torch.load(path, map_location=m))
        assert outcome(lambda m=place: flambeau.load(path, map_location=m)) == their
    for place in ("cpu", torch.device("cpu")):
        our_place = place if isinstance(place, str) else flambeau.device("cpu")
        assert flambeau.load(path, map_location=our_place)["x"].tolist() == [1.0, 1.0]


SCRIPT = """
import sys, torch, safetensors
from safetensors import safe_open
from safetensors.torch import load, load_file, load_model, save, save_file, save_model
tensors = {"x": torch.arange(6.0).reshape(2, 3), "b": torch.ones(3, dtype=torch.bfloat16),
           "empty": torch.zeros(0, 2)}
save_file(tensors, sys.argv[1], {"format": "pt"})
for found in (load_file(sys.argv[1]), load(save(tensors))):
    assert all(torch.equal(found[name], tensor) for name, tensor in tensors.items())
    assert all(found[name].dtype == tensor.dtype for name, tensor in tensors.items())
with safe_open(sys.argv[1], "pt") as file:
    assert file.get_slice("x")[:, 1].tolist() == [1.0, 4.0] and file.metadata() == {"format": "pt"}
model = torch.nn.Linear(2, 3)
save_model(model, sys.argv[1])
assert load_model(torch.nn.Linear(2, 3), sys.argv[1]) == (set(), [])
print("flambeau" in torch.__file__, load_file.__module__)
"""


@pytest.mark.parametrize("installed", [True, False])
def test_scripts_that_import_safetensors(installed, tmp_path):
    """Under `flambeau run`, with the package, and where it cannot be found."""
    start = "from flambeau.cli import main; import sys; sys.exit(main(sys.argv[1:]))"
    if not installed:
        start = (
            "import importlib.machinery as m; find = m.PathFinder.find_spec\n"
            "m.PathFinder.find_spec = classmethod(lambda cls, name, *rest: "
            "None if name == 'safetensors' else find(name, *rest))\n" + start
        )
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, "-c", start, "run", str(script), str(tmp_path / "x")]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    module = "safetensors.torch" if installed else "flambeau.serialization.safetensors.torch"
    assert (result.stdout, result.stderr) == (f"True {module}\n", "")
    assert {**theirs.load_file(tmp_path / "x")}.keys() == {"weight", "bias"}


# ---- what the package needs of torch


def storage_outcomes(library, folder):
    """Mapped storages, tensors over storages, empty tensors seen as another dtype."""
    path = folder / library.__name__
    path.write_bytes(bytes(range(8)))
    from_file = library.UntypedStorage.from_file
    shared = from_file(str(path), True, 10)
    shared[0] = 9
    private = from_file(str(path), False, 4)
    private[1] = 77
    over = library.asarray(private, dtype=library.int16)
    return [
        shared.tolist(), private.tolist(), path.read_bytes(), private.nbytes(),
        outcome(lambda: from_file(str(path), False, 100))[1].replace(str(path), "x"),
        outcome(lambda: from_file("/no/file", False, 1)),
        over.tolist(), over.data_ptr() == private.data_ptr(),
        outcome(lambda: library.empty((3, 0), dtype=library.uint8).view(library.float32)),
    ]  # fmt: skip


def test_storages(tmp_path):
    assert storage_outcomes(flambeau, tmp_path) == storage_outcomes(torch, tmp_path)
    for shape in [(0, 4), (4, 0, 4), (0,)]:
        our, their = (m.empty(shape, dtype=m.uint8).view(m.int16) for m in (flambeau, torch))
        assert (tuple(our.shape), our.stride()) == (tuple(their.shape), their.stride())
