"""`flambeau inspect`, `verify` and `convert`: what they print, what they refuse, exit codes."""

from __future__ import annotations

import io
import json
import pickle
import re
import sys
import zipfile
from collections import OrderedDict
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import flambeau as torch
from flambeau import cli
from flambeau._commands import progress
from flambeau._commands.common import in_units
from flambeau.serialization.archive_writer import ArchiveWriter
from flambeau.serialization.description.tree import printable
from flambeau.serialization.pickler import pickle_tensors
from flambeau.serialization.safetensors import safe_open
from flambeau.serialization.safetensors.torch import load_file, save_file


class Custom:
    """A class that no safe load knows."""

    def __init__(self) -> None:
        self.weight = torch.ones(2)
        self.name = "red\x1b[31m"


class Items(list):  # type: ignore[type-arg]
    """A list of a class of its own."""


@pytest.fixture
def flambeau(capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs a command line; gives exit code, stdout and stderr."""

    def run(*words: object) -> tuple[int, str, str]:
        code = cli.main([str(word) for word in words])
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def model() -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(*(torch.nn.Linear(4, 4) for _ in range(4)))


def saved(path: Path, obj: object, **options: Any) -> Path:
    torch.save(obj, path, **options)
    return path


# ---- inspect

STATE_DICT = """\
{path}: PyTorch checkpoint (zip)
records {records}, format version 1, byte order little
2 tensors, 9 elements, 30 B in 2 storages

.             OrderedDict
├─ layer
│  └─ weight  float32   (2, 3)  24 B
└─ steps      bfloat16  (3,)     6 B
"""


def test_inspect_draws_a_tree(tmp_path: Path, flambeau: Any):
    state = OrderedDict(
        {"layer.weight": torch.zeros(2, 3), "steps": torch.ones(3, dtype=torch.bfloat16)}
    )
    path = saved(tmp_path / "model.pth", state)
    records = len(zipfile.ZipFile(path).namelist())
    expected = STATE_DICT.format(path=path, records=records)
    assert flambeau("inspect", path) == (0, expected, "")


@pytest.mark.parametrize("zip_format", [True, False])
def test_inspect_shows_what_a_safe_load_refuses(tmp_path: Path, flambeau: Any, zip_format: bool):
    content = {"custom": Custom(), "items": Items([1, torch.zeros(3)])}
    path = saved(tmp_path / "x.pth", content, _use_new_zipfile_serialization=zip_format)
    with pytest.raises(pickle.UnpicklingError):
        torch.load(path)
    code, out, _ = flambeau("inspect", path)
    assert code == 0
    assert f"refuses:\n  {__name__}.Custom\n  {__name__}.Items\n" in out
    assert re.search(r"weight +float32  \(2,\) +8 B", out)
    assert re.search(r"│  └─ name +'red\\x1b\[31m'", out)
    assert "\x1b" not in out


def test_inspect_shows_a_whole_module(tmp_path: Path, flambeau: Any, model: Any):
    path = saved(tmp_path / "x.pth", model)
    code, out, _ = flambeau("inspect", path, "--json")
    found = json.loads(out)
    assert code == 0
    expected = [(name, list(x.shape)) for name, x in model.state_dict().items()]
    assert [(entry["name"], entry["shape"]) for entry in found["tensors"]] == expected
    assert {entry["class"] for entry in found["tensors"]} == {"Parameter"}
    assert "torch.nn.modules.linear.Linear" in found["refused"]
    assert found["elements"] == 80 and found["bytes"] == 320


def test_inspect_json(tmp_path: Path, flambeau: Any):
    x = torch.arange(10.0)
    path = saved(tmp_path / "x.pth", {"x": x, "view": x[2:8:2], "step": 3, "name": "a"})
    found = json.loads(flambeau("inspect", path, "--json")[1])
    assert found["tensors"][1] == {
        "name": "view", "dtype": "float32", "shape": [3], "stride": [2], "offset": 2, "bytes": 12,
        "storage": "0", "class": "Tensor", "requires_grad": False,
    }  # fmt: skip
    assert found["values"] == {"step": "3", "name": "'a'"}
    assert found["shared"] == {"0": ["x", "view"]} and found["bytes"] == 40


def test_inspect_safetensors(tmp_path: Path, flambeau: Any):
    path = tmp_path / "x.safetensors"
    save_file({"a.b": torch.zeros(2, 2), "c": torch.ones(1)}, path, {"format": "pt", "k\n": "v"})
    for name in (path, tmp_path / "no_suffix"):
        code, out, _ = flambeau("inspect", name if name.exists() else path.rename(name))
        assert code == 0 and ": safetensors\n" in out
        assert re.search(r"└─ b +float32 +\(2, 2\) +16 B", out)
        assert "Metadata:\n  format: pt\n  k\\n: v\n" in out


def script_archive(path: Path) -> Path:
    """An archive as torch.jit.save writes it, small."""
    module = ModuleType("__torch__")
    module.Net = type("Net", (), {"__module__": "__torch__"})  # type: ignore[attr-defined]
    net = module.Net()
    net.training = True
    net.weight = torch.ones(2, 3)
    sys.modules["__torch__"] = module
    try:
        content, storages = pickle_tensors(net, 2)
    finally:
        del sys.modules["__torch__"]
    source = (
        "class Net(Module):\n  weight : Tensor\n  def forward(self: __torch__.Net) -> Tensor:\n"
    )
    with path.open("wb") as sink:
        writer = ArchiveWriter(sink, "net")
        writer.write("data.pkl", content)
        for key, reference in storages.by_key.items():
            writer.write(f"data/{key}", reference.storage.array)
        writer.write("code/__torch__.py", source.encode())
        writer.write("constants.pkl", pickle.dumps((), 2))
        writer.finish()
    return path


def test_inspect_torchscript(tmp_path: Path, flambeau: Any):
    code, out, _ = flambeau("inspect", script_archive(tmp_path / "net.pt"))
    assert code == 0
    assert ": TorchScript archive (zip)\n" in out and "format version 3" in out
    assert re.search(r"└─ weight +float32 +\(2, 3\) +24 B", out)
    assert "Code:\n  code/__torch__.py: Net.forward\n" in out


def test_inspect_draws_neighbours_that_look_alike_once(tmp_path: Path, flambeau: Any, model: Any):
    path = saved(tmp_path / "x.pth", model.state_dict())
    out = flambeau("inspect", path)[1]
    assert out.count("weight") == 1 and re.search(r"└─ 0 to 3 +4 alike", out)
    assert flambeau("inspect", path, "--all")[1].count("weight") == 4
    folded = flambeau("inspect", path, "--depth", 1)[1]
    assert "weight" not in folded and re.search(r"0 to 3 +4 alike, 2 tensors, 80 B", folded)
    assert "0" not in flambeau("inspect", path, "--depth", 0)[1].splitlines()[-1]


def test_inspect_ends_on_objects_that_hold_themselves(tmp_path: Path, flambeau: Any):
    loop: list[Any] = [torch.zeros(1)]
    loop.append(loop)
    deep: list[Any] = []
    for _ in range(300):
        deep = [deep, torch.zeros(1)] if len(deep) % 2 else [deep]
    out = flambeau("inspect", saved(tmp_path / "x.pth", {"loop": loop, "deep": deep}))[1]
    assert "list (drawn above)" in out and "list (too deep to draw)" in out


# ---- files that are damaged, or something else

STRANGE = {
    "nothing": b"",
    "text": b"hello world, this is text",
    "half an archive": b"PK\x03\x04" + bytes(100),
    "a pickle": pickle.dumps({"a": 1}),
    "a header": (100).to_bytes(8, "little") + b"{}",
}


@pytest.mark.parametrize("command", ["inspect", "verify"])
@pytest.mark.parametrize("name", list(STRANGE))
def test_strange_files(tmp_path: Path, flambeau: Any, command: str, name: str):
    path = tmp_path / "x"
    path.write_bytes(STRANGE[name])
    code, out, err = flambeau(command, path)
    assert (code, out) == (1, "")
    assert err.startswith(f"flambeau {command}: {path}: ") and err.count("\n") == 1


def test_a_pickle_that_attacks_is_named_and_not_run(tmp_path: Path, flambeau: Any):
    path = tmp_path / "x.pth"
    path.write_bytes(b"cposix\nsystem\n(S'touch " + bytes(tmp_path / "ran") + b"'\ntR.")
    code, _, err = flambeau("inspect", path)
    assert code == 1 and "it names posix.system" in err
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("command", ["inspect", "verify"])
def test_files_that_cannot_be_opened(tmp_path: Path, flambeau: Any, command: str):
    missing = tmp_path / "none"
    expected = f"flambeau {command}: {missing}: No such file or directory\n"
    assert flambeau(command, missing) == (1, "", expected)
    assert "Is a directory" in flambeau(command, tmp_path)[2]


# ---- verify


def test_verify_counts_what_it_checked(tmp_path: Path, flambeau: Any, model: Any):
    paths = [
        saved(tmp_path / "a.pth", model.state_dict()),
        saved(tmp_path / "b.pth", model.state_dict(), _use_new_zipfile_serialization=False),
        tmp_path / "c.safetensors",
    ]
    save_file(dict(model.state_dict()), paths[2])
    code, out, err = flambeau("verify", *paths)
    assert (code, err) == (0, "")
    first, second, third = out.splitlines()
    assert first.startswith(f"{paths[0]}: sound: ") and "8 storages, 8 tensors inside" in first
    assert all("a format without checksums" in line for line in (second, third))


def test_verify_names_every_bad_record(tmp_path: Path, flambeau: Any):
    path = saved(tmp_path / "x.pth", {"a": torch.ones(100), "b": torch.full((100,), 2.0)})
    content = bytearray(path.read_bytes())
    for value in (1.0, 2.0):
        pattern = torch.full((100,), value).numpy().tobytes()
        content[content.index(pattern) + 7] ^= 1
    path.write_bytes(content)
    good = saved(tmp_path / "good.pth", {"a": torch.ones(1)})
    code, out, err = flambeau("verify", path, good)
    assert code == 1 and out.startswith(f"{good}: sound")
    lines = err.splitlines()
    assert ["data/0" in lines[0], "data/1" in lines[1], len(lines)] == [True, True, 2]
    assert all("CRC-32 check failed" in line for line in lines)


def test_verify_checks_the_place_of_every_tensor(tmp_path: Path, flambeau: Any):
    content, storages = pickle_tensors({"good": torch.ones(1), "bad": torch.ones(4)}, 2)
    (reference,) = [item for item in storages.by_key.values() if item.storage.nbytes() == 16]
    with (tmp_path / "x.pth").open("wb") as sink:
        writer = ArchiveWriter(sink, "archive")
        writer.write("data.pkl", content)
        for key, item in storages.by_key.items():
            array = item.storage.array
            writer.write(f"data/{key}", array[:8] if item is reference else array)
        writer.finish()
    code, _, err = flambeau("verify", tmp_path / "x.pth")
    assert code == 1 and "tensor bad: sizes [4], strides [1] and offset 0 need 16 bytes" in err
    inspected = flambeau("inspect", tmp_path / "x.pth")
    assert inspected[0] == 0 and "Tensors outside their storages:\n  bad: " in inspected[1]


# ---- convert


def test_convert_there_and_back(tmp_path: Path, flambeau: Any, model: Any):
    state = model.state_dict()
    source = saved(tmp_path / "a.pth", state)
    there, back = tmp_path / "a.safetensors", tmp_path / "b.pth"
    assert flambeau("convert", source, there) == (0, f"{there}: 8 tensors, 320 B\n", "")
    with safe_open(there, "pt") as file:
        metadata = file.metadata()
    assert metadata is not None and metadata["format"] == "pt"
    assert flambeau("convert", there, back)[0] == 0
    loaded = torch.load(back)
    assert loaded.keys() == state.keys() and loaded._metadata == state._metadata
    assert all(torch.equal(loaded[name], state[name]) for name in state)
    torch.nn.Sequential(*model).load_state_dict(loaded)


def test_convert_keeps_metadata(tmp_path: Path, flambeau: Any):
    first, middle, last = (tmp_path / name for name in ("a.safetensors", "b.pt", "c.safetensors"))
    save_file({"x": torch.ones(1)}, first, {"author": "someone", "format": "pt"})
    assert flambeau("convert", first, middle)[0] == 0
    assert flambeau("convert", middle, last)[0] == 0
    assert first.read_bytes() == last.read_bytes()


def test_convert_refuses_what_the_format_cannot_hold(tmp_path: Path, flambeau: Any):
    x = torch.arange(6.0).reshape(2, 3)
    content = {"model": {"w": x, "tied": x}, "list": [x + 1], "epoch": 3}
    source, target = saved(tmp_path / "a.pth", content), tmp_path / "a.safetensors"
    options: list[str] = []
    for words, remedy in (
        ("'model' is a dict of its own", "--flatten"),
        ("these share memory: model.tied, model.w", "--clone-shared"),
        ("'epoch' is no tensor (int)", "--tensors-only"),
    ):
        tried = [*options, *(["--tensors-only"] if remedy == "--clone-shared" else [])]
        code, _, err = flambeau("convert", source, target, *tried)
        assert code == 1 and words in err and remedy in err
        assert not target.exists()
        options.append(remedy)
    assert flambeau("convert", source, target, *options)[0] == 0
    loaded = load_file(target)
    assert {name: tensor.tolist() for name, tensor in loaded.items()} == {
        "model.w": x.tolist(), "model.tied": x.tolist(), "list.0": (x + 1).tolist(),
    }  # fmt: skip


def test_convert_packs_views(tmp_path: Path, flambeau: Any):
    x = torch.arange(12.0).reshape(3, 4)
    source = saved(tmp_path / "a.pth", {"x": x.t(), "y": torch.tensor(1.0)})
    assert flambeau("convert", source, tmp_path / "a.safetensors")[0] == 0
    assert load_file(tmp_path / "a.safetensors")["x"].tolist() == x.t().tolist()


def test_convert_refuses_objects_and_damage(tmp_path: Path, flambeau: Any):
    target = tmp_path / "x.safetensors"
    target.write_bytes(b"old")
    source = saved(tmp_path / "a.pth", {"x": Custom()})
    code, _, err = flambeau("convert", source, target)
    assert code == 1 and f"a safe load refuses {__name__}.Custom" in err
    source = saved(tmp_path / "b.pth", {"x": torch.ones(100)})
    damaged = source.read_bytes().replace(torch.ones(100).numpy().tobytes(), bytes(400))
    source.write_bytes(damaged)
    code, _, err = flambeau("convert", source, target)
    assert code == 1 and "data/0" in err
    code, _, err = flambeau("convert", saved(tmp_path / "c.pth", torch.ones(1)), target)
    assert code == 1 and "it holds no dict of tensors" in err
    source = saved(tmp_path / "d.pth", {"x": torch.ones(1)})
    code, _, err = flambeau("convert", source, tmp_path / "none" / "x.safetensors")
    assert code == 1 and "does not exist" in err
    assert target.read_bytes() == b"old"


# ---- the command line


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["inspect"], "usage: flambeau inspect"),
        (["inspect", "a", "--depth", "-1"], "must not be negative"),
        (["inspect", "a", "--depth", "x"], "invalid"),
        (["inspect", "a", "--dep", "1"], "unrecognized arguments"),
        (["verify"], "usage: flambeau verify"),
        (["convert", "a.pth"], "usage: flambeau convert"),
        (["convert", "a.pth", "b.pth"], "has to end with .safetensors"),
        (["convert", "a.onnx", "b.safetensors"], "has to end with .safetensors"),
    ],
)
def test_wrong_use(words: list[str], text: str, flambeau: Any):
    code, out, err = flambeau(*words)
    assert (code, out) == (2, "") and text in err


@pytest.mark.parametrize("command", ["inspect", "verify", "convert"])
def test_help(command: str, flambeau: Any):
    code, out, err = flambeau(command, "--help")
    assert (code, err) == (0, "") and out.startswith(f"usage: flambeau {command}")
    assert f"  {command} " in flambeau("--help")[1]


# ---- progress


class Terminal(io.StringIO):
    """A stderr that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_progress_on_a_terminal(tmp_path: Path, flambeau: Any, monkeypatch: pytest.MonkeyPatch):
    path = saved(tmp_path / "x.pth", {"x": torch.ones(1000)})
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    monkeypatch.setattr(progress, "INTERVAL", 0.0)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    assert flambeau("verify", path)[0] == 0
    shown = terminal.getvalue()
    assert re.search(r"verify .*x\.pth: +\d+ %  4\.\d\d kB of \d\.\d\d kB, 0 s", shown)
    assert shown.endswith("\r\x1b[K")
    terminal.truncate(0)
    assert flambeau("convert", path, tmp_path / "x.safetensors")[0] == 0
    assert "write " in terminal.getvalue() and "100 %" in terminal.getvalue()


def test_no_progress_elsewhere(tmp_path: Path, flambeau: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    path = saved(tmp_path / "x.pth", {"x": torch.ones(1000)})
    assert flambeau("verify", path)[2] == ""


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.00 kB"), (9994, "9.99 kB"), (9996, "10.0 kB"),
     (99_960, "100 kB"), (999_499, "999 kB"), (999_500, "1.00 MB"), (5 * 10**18, "5.00 EB")],
)  # fmt: skip
def test_sizes(count: int, text: str):
    assert in_units(count) == text


def test_printable():
    assert printable("é 漢 𝄞 ok") == "é 漢 𝄞 ok"
    assert printable("\x1b[0m\r\n\x9b\u202e\u2028\ud800") == r"\x1b[0m\r\n\x9b\u202e\u2028\ud800"
