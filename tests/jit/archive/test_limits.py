"""Limits of archives: of what loading does, of what running does, and that they really hold."""

import io
import subprocess
import sys
from pathlib import Path

import pytest

import flambeau
from flambeau.jit import Limits
from flambeau.jit.run import LimitExceeded
from tests.jit.archive import handmade
from tests.jit.archive.handmade import Raw, made

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

ENDLESS = """
class O:
  n : int
  def __setstate__(self: __torch__.O, s: int) -> NoneType:
    self.n = 0
    {loop}
      self.n = torch.add(self.n, 1)
    return None
class M(Module):
  __parameters__ = []
  __buffers__ = []
  o : List[__torch__.O]
  def forward(self: __torch__.M) -> int:
    n = 0
    for i in range(5000):
      n = torch.add(n, (self.o[0]).n)
    return n
"""


def archive_of_objects(loop, count=1):
    """An archive that makes objects whose `__setstate__` loops."""
    objects = b"](" + b"".join(bytes(handmade.named("__torch__.O")) + b")\x81K\x01b"
                               for _ in range(count)) + b"e"  # fmt: skip
    return handmade.archive(ENDLESS.format(loop=loop), made("__torch__.M", {"o": Raw(objects)}))


def test_endless_setstate():
    with pytest.raises(LimitExceeded, match="more than 500 steps"):
        handmade.load(archive_of_objects("while True:"), limits=Limits(steps=500))


def test_loading_is_bounded_without_limits(monkeypatch):
    usual = Limits.for_loading(1000)
    assert usual.steps is not None
    assert usual.memory is not None
    assert usual.depth is not None
    assert usual.code is not None
    monkeypatch.setattr(Limits, "for_loading", lambda size: Limits(steps=500))
    with pytest.raises(LimitExceeded, match="more than 500 steps"):
        handmade.load(archive_of_objects("while True:"))


def test_objects_of_an_archive_count_together():
    limits = Limits(steps=250)
    one, three = (archive_of_objects("for i in range(100):", count) for count in (1, 3))
    assert handmade.load(one, limits=limits).o[0].n == 100
    with pytest.raises(LimitExceeded, match="more than 250 steps"):
        handmade.load(three, limits=limits)


def test_limits_of_loading_do_not_hold_for_running(monkeypatch):
    monkeypatch.setattr(Limits, "for_loading", lambda size: Limits(steps=1000))
    module = handmade.load(archive_of_objects("for i in range(100):"))
    assert module() == 500_000
    with pytest.raises(LimitExceeded):
        handmade.load(archive_of_objects("for i in range(100):"), limits=Limits(steps=1000))()


def test_length_of_code():
    content = handmade.archive(handmade.module("return 3"))
    length = len(handmade.module("return 3"))
    assert handmade.load(content, limits=Limits(code=length))() == 3
    with pytest.raises(LimitExceeded, match=f"more than {length - 1} characters of code"):
        handmade.load(content, limits=Limits(code=length - 1))


@pytest.mark.parametrize("element", ["{0}", "-{0}", "{0}.5", '"w{0}"', "[{0}, {0}]", "(é{0}, 1)"])
def test_long_lists(element):
    """Each element takes the same time, however many there are; in texts beyond ASCII, too."""
    count = 500
    listed = ", ".join(element.replace("é", '"é", ').format(i) for i in range(count))
    text = handmade.module(f"x = [{listed}]\nreturn torch.len(x)")
    assert handmade.load(handmade.archive(text))() == count


GREEDY_BODIES = {
    "one tensor": "x = torch.zeros([n])\nreturn torch.len(x)",
    "many tensors": """
        x = annotate(List[Tensor], [])
        for i in range(n):
          _0 = torch.append(x, torch.zeros([1000]))
        return torch.len(x)
        """,
    "a text": """
        x = "a"
        while torch.lt(torch.len(x), n):
          x = torch.add(x, x)
        return torch.len(x)
        """,
    "a list": """
        x = [1]
        while torch.lt(torch.len(x), n):
          torch.extend(x, x)
        return torch.len(x)
        """,
}


GREEDY = """
import resource, sys
from flambeau.jit import Limits
from tests.jit.archive import handmade
from tests.jit.archive.test_limits import GREEDY_BODIES

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

limits = Limits(memory=8 << 20, steps=1 << 20)
for name, body in GREEDY_BODIES.items():
    text = handmade.module(body, arguments="n: int")
    module = handmade.load(handmade.archive(text), limits=limits)
    assert module(3) in (3, 4)
    before = peak()
    try:
        module(1 << 28)
    except RuntimeError as error:
        assert "more than 8388608 bytes of memory" in str(error), error
    else:
        raise AssertionError(f"{name}: it ran")
    print(peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss has other units elsewhere")
def test_a_process_stays_small():
    """The most memory that the process ever had, by the operating system's count."""
    command = [sys.executable, "-W", "ignore", "-c", GREEDY]
    root = Path(__file__).parents[3]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.split() if int(line) * 1024 > 64 << 20] == []


def test_limits_do_not_change_what_is_written():
    module = handmade.load(handmade.archive(handmade.module("return 3")), limits=Limits(steps=99))
    sink = io.BytesIO()
    flambeau.jit.save(module, sink)
    assert handmade.load(sink.getvalue())() == 3
