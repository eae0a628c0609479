"""`torch.hub` from files: checkpoints by address, checksums, models of a folder."""

from __future__ import annotations

import hashlib
from pathlib import Path
from urllib.error import URLError

import pytest

import flambeau as torch
from flambeau import hub
from flambeau._core.missing import NotImplementedInFlambeau


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(hub, "_folder", None)
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "home"))
    return tmp_path


def checkpoint(folder: Path) -> Path:
    file = folder / "w.pt"
    torch.save({"w": torch.arange(3)}, file)
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    return file.rename(folder / f"w-{digest[:8]}.pt")


def test_checkpoint_by_address_is_fetched_once(folder: Path, capsys: pytest.CaptureFixture[str]):
    file = checkpoint(folder)
    first = hub.load_state_dict_from_url(file.as_uri(), check_hash=True)
    assert first["w"].tolist() == [0, 1, 2]
    kept = folder / "home" / "hub" / "checkpoints" / file.name
    assert [kept] == list(kept.parent.iterdir())
    file.unlink()
    assert hub.load_state_dict_from_url(file.as_uri())["w"].tolist() == [0, 1, 2]
    assert capsys.readouterr().err.count("Downloading") == 1


def test_another_checksum_is_refused_and_leaves_no_file(folder: Path):
    file = checkpoint(folder)
    other = file.rename(folder / "w-00000000.pt")
    with pytest.raises(RuntimeError, match="invalid hash value"):
        hub.load_state_dict_from_url(other.as_uri(), check_hash=True)
    assert list((folder / "home" / "hub" / "checkpoints").iterdir()) == []
    with pytest.raises(URLError):
        hub.load_state_dict_from_url((folder / "none.pt").as_uri())


def test_models_of_a_folder(folder: Path):
    text = 'dependencies = ["json"]\ndef model(n):\n    "A number."\n    return n + 1\n'
    (folder / "hubconf.py").write_text(text)
    assert hub.load(str(folder), "model", 2, source="local") == 3
    assert hub.list(str(folder), source="local") == ["model"]
    assert hub.help(str(folder), "model", source="local") == "A number."
    with pytest.raises(RuntimeError, match="Cannot find callable other in hubconf"):
        hub.load(str(folder), "other", source="local")
    with pytest.raises(NotImplementedInFlambeau, match="source='local'"):
        hub.load("owner/name", "model")


def test_set_dir(folder: Path):
    assert hub.get_dir() == str(folder / "home" / "hub")
    hub.set_dir("here")
    assert hub.get_dir() == "here"
