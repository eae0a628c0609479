"""Functions of torch.nn.functional in scripts: what they compute, warn of and refuse, in both."""

from __future__ import annotations

import io
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from . import functional_calls
from .both import LIBRARIES, compiled

ROWS = functional_calls.rows()
TEXT = "def call_{index}({names}):\n    return {call}\n"


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with a function for each row."""
    parts = []
    for index, (call, inputs) in enumerate(ROWS):
        parts.append(TEXT.format(index=index, names=", ".join(map(name_of, inputs)), call=call))
    path = tmp_path_factory.mktemp("programs") / "functional_programs.py"
    path.write_text("\n\n".join(parts), "utf-8")
    return path


def values(inputs: dict[str, str]) -> list[np.ndarray]:
    """The inputs of a row."""
    draw = np.random.default_rng(0)
    found = []
    for name, text in inputs.items():
        shape = [int(size) for size in text.split()]
        if "<" in name:
            found.append(draw.integers(int(name.split("<")[1]), size=shape))
        elif name.startswith("p "):
            found.append(draw.uniform(0.01, 0.99, shape).astype(np.float32))
        else:
            found.append(draw.standard_normal(shape).astype(np.float32))
    return found


def name_of(text: str) -> str:
    """The name in `p x` or `x < 5`."""
    return text.removeprefix("p ").split("<")[0].strip()


for _, _inputs in ROWS:
    for _text in list(_inputs):
        assert name_of(_text).isidentifier(), _text


def outcome(function: Any, library: str, inputs: dict[str, str]) -> Any:
    """The results as arrays, or why there are none; and the warnings."""
    torch = LIBRARIES[library]
    tensors = [torch.from_numpy(np.array(value)) for value in values(inputs)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = flat(function(*tensors))
        except Exception as error:  # noqa: BLE001
            found = str(error).strip().splitlines()[-1]
    said = {re.sub(r" \(Triggered .*", "", str(w.message)) for w in caught}
    return found, {text for text in said if "TorchScript" not in text and "jit" not in text}


def flat(result: Any) -> list[np.ndarray]:
    """The tensors and numbers of nested tuples and lists."""
    if isinstance(result, (tuple, list)):
        return [leaf for part in result for leaf in flat(part)]
    return [np.asarray(result.numpy() if hasattr(result, "numpy") else result)]


def assert_same(ours: Any, theirs: Any) -> None:
    if isinstance(theirs, str) or isinstance(ours, str):
        assert ours == theirs
        return
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("index", range(len(ROWS)), ids=[call for call, _ in ROWS])
def test_call(index: int, programs: Path) -> None:
    """Our script does what torch's does, and so does its archive in torch."""
    _, inputs = ROWS[index]
    ours, theirs = (compiled(programs, f"call_{index}", lib) for lib in ("flambeau", "torch"))
    found, said = outcome(ours, "flambeau", inputs)
    wanted, meant = outcome(theirs, "torch", inputs)
    assert_same(found, wanted)
    assert said == meant
    archive = io.BytesIO()
    LIBRARIES["flambeau"].jit.save(ours, archive)
    archive.seek(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loaded = LIBRARIES["torch"].jit.load(archive)
    assert_same(outcome(loaded, "torch", inputs)[0], wanted)
