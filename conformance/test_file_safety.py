"""Attacks and damage on PyTorch's own files: what torch writes, checked as strictly as our own."""

import io
import pickle
import random

import pytest
import torch

from flambeau.serialization import load


def files():
    """Checkpoints that torch has written, by name."""
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.randn(5, 4)).sum().backward()
    optimizer.step()
    base = torch.arange(10.0)
    values = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "views": [base, base[2:], base.reshape(2, 5).t()],
        "empty": torch.zeros(0, 3),
        "numbers": {"a": 1, "b": [2.5, None, "x"]},
        "complex": torch.randn(3, dtype=torch.complex64).conj(),
    }
    result = {}
    for name, value in values.items():
        sink = io.BytesIO()
        torch.save(value, sink)
        result[name] = sink.getvalue()
    return result


FILES = files()


@pytest.mark.parametrize("name", FILES)
def test_every_change_of_a_byte_in_a_file_of_torchs_is_found(name):
    content = FILES[name]
    load(io.BytesIO(content))
    generator = random.Random(name)
    places = range(len(content)) if len(content) < 2500 else generator.sample(
        range(len(content)), 600)  # fmt: skip
    for place in places:
        damaged = bytearray(content)
        damaged[place] ^= generator.randrange(1, 256)
        with pytest.raises((RuntimeError, pickle.UnpicklingError)):
            load(io.BytesIO(damaged))
            pytest.fail(f"byte {place} of {len(content)}")


ATTACKS_TORCH_REFUSES = """
    SETITEM on a list|SETITEM on a tuple|SETITEM on a storage|SETITEMS on a tensor
    SETITEM on a tensor|APPEND to a tensor|BUILD of a dict|REDUCE of a tensor
    fewer bytes than declared|offset over the end|stride over the end|size negative
    id of another kind|place unknown|os.system called|builtins.eval called|torch.hub.load called
""".replace("\n", "|").split("|")


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", [name.strip() for name in ATTACKS_TORCH_REFUSES if name.strip()])
def test_both_refuse(name):
    """Our attacks are real ones: PyTorch refuses these as well, with its own words."""
    from tests.serialization.attack_files import PICKLES, archive_of

    content = archive_of(PICKLES[name])
    with pytest.raises((pickle.UnpicklingError, RuntimeError)):
        torch.load(io.BytesIO(content), weights_only=True)
    with pytest.raises((pickle.UnpicklingError, RuntimeError)):
        load(io.BytesIO(content))


def test_torch_reads_what_the_strict_reader_accepts():
    """The honest building blocks of the attacks load in PyTorch as they do here."""
    from tests.serialization.attack_files import STORAGE, archive_of, tensor, whole

    found = torch.load(io.BytesIO(archive_of(whole(tensor()))))
    assert found.numpy().tobytes() == STORAGE


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_scripts_of_torchs_pass_the_strict_reader(tmp_path):
    """Archives of TorchScript hold compressed records, and nothing that the reader refuses."""
    from flambeau.serialization.archive import ArchiveReader

    path = tmp_path / "script.pt"
    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), str(path))
    reader = ArchiveReader(path.read_bytes())
    reader.verify_rest()
    assert any(not reader.is_stored(name) for name in reader.names())
