"""`with` blocks in programs: the same modes inside, and after whatever ends them, as PyTorch's."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest
import torch

import flambeau

pytestmark = pytest.mark.filterwarnings("ignore")
Program = Callable[[Any], Any]


def programs(torch: Any) -> dict[str, Program]:
    """The programs over one of the two libraries."""

    def plain(x):
        with torch.no_grad():
            y = x * 2
        return y, x * 2

    def nested(x):
        with torch.no_grad():
            with torch.no_grad():
                y = x * 2
            z = x * 3
        return y, z, x * 4

    def early(x):
        with torch.no_grad():
            if x.sum() > 0:
                return x * 2
        return x * 3

    def returned(x):
        with torch.no_grad():
            return x * 2

    def broken_off(x):
        for i in range(3):
            with torch.no_grad():
                x = x * 2
                if i == 1:
                    break
        return x, x * 3

    def continued(x):
        y = x
        for i in range(4):
            with torch.no_grad():
                y = y + i
                if i % 2 == 0:
                    continue
            y = y * x
        return y

    def within(x):
        with torch.no_grad() as nothing:
            for i in range(2):
                with torch.autocast("cpu"):
                    if i == 1:
                        return torch.mm(x, x)
        return x

    def fails(x):
        with torch.no_grad(), torch.autocast("cpu"):
            y = x.view(7)
        return y

    def raises(x):
        with torch.no_grad():
            if x.sum() > 0:
                raise ValueError("no")
        return x

    def bfloat16(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = torch.mm(x, x)
        return y, torch.mm(x, x)

    def of_cpu(x):
        with torch.cpu.amp.autocast():
            y = torch.mm(x, x)
        return y

    def disabled(x):
        with torch.amp.autocast(device_type="cpu"):
            with torch.autocast("cpu", enabled=False):
                y = torch.mm(x, x)
            z = torch.mm(x, x)
        return y, z

    def for_gpus(x):
        with torch.autocast("cuda"):
            y = torch.mm(x, x)
        return y

    def asked(x):
        with torch.no_grad():
            a = torch.is_grad_enabled()
        return a, torch.is_grad_enabled(), x

    def enabled(x):
        with torch.enable_grad():
            return x

    def inference(x):
        with torch.inference_mode():
            return x

    def chosen(x):
        with torch.set_grad_enabled(False):
            return x

    return {name: value for name, value in locals().items() if name != "torch"}


THEIRS, OURS = programs(torch), programs(flambeau)


def shown(value: Any) -> Any:
    """What is compared of a result."""
    if isinstance(value, tuple):
        return [shown(item) for item in value]
    if not hasattr(value, "dtype"):
        return value
    return value.requires_grad, str(value.dtype), value.tolist()


def outcome(library: Any, called: Program) -> Any:
    """What a call gives, and the modes after it; the second call runs optimised code."""
    found: list[Any] = []
    for _ in range(3):
        try:
            found.append(shown(called(library.ones(2, 2, requires_grad=True))))
        except (RuntimeError, library.jit.Error) as error:
            found.append(str(error))
        found += [library.is_grad_enabled(), library.is_autocast_cpu_enabled()]
    return found


REFUSED = ("enabled", "inference", "chosen")


@pytest.mark.parametrize("name", [name for name in THEIRS if name not in REFUSED])
def test_modes(name: str) -> None:
    """Results, errors, and that the modes are as before."""
    theirs, mine = torch.jit.script(THEIRS[name]), flambeau.jit.script(OURS[name])
    assert mine.code == theirs.code
    expected = outcome(torch, theirs)
    assert outcome(flambeau, mine) == expected
    assert expected[1:3] == [True, False]


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    """What torch has no class for."""
    said = []
    for library, function in ((torch, THEIRS[name]), (flambeau, OURS[name])):
        with pytest.raises(RuntimeError) as caught:
            library.jit.script(function)
        said.append(str(caught.value))
    assert said[1] == said[0]


NAMED = ("plain", "early", "broken_off", "fails", "bfloat16", "of_cpu", "disabled")


@pytest.mark.parametrize("name", NAMED)
def test_archives(name: str) -> None:
    """The same through archives of either, loaded by the other."""
    expected = outcome(torch, torch.jit.script(THEIRS[name]))
    for writer, reader, named in ((torch, flambeau, THEIRS), (flambeau, torch, OURS)):
        file = io.BytesIO()
        writer.jit.save(writer.jit.script(named[name]), file)
        file.seek(0)
        found = outcome(reader, reader.jit.load(file))
        if name != "fails":
            assert found == expected
        assert found[1::3] == expected[1::3] and found[2::3] == expected[2::3]
