"""Programs whose steps are few and large: the work counts, and what they have let go does not."""

from __future__ import annotations

import time
from typing import Any

import pytest

import flambeau as torch
from flambeau._core import settings
from flambeau.jit import Limits
from flambeau.jit.operators.work import ENDLESS, extent
from flambeau.jit.run import LimitExceeded
from tests.jit.archive import handmade
from tests.jit.archive.handmade import Raw, made

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

STEPS = 100_000
LONG = "x = [0]\nfor i in range({turns}):\n  x = torch.add(x, x)\n"
"""A list of 2 to the power of `turns` zeros."""
TEXT = 't = "ab"\nfor i in range(17):\n  t = torch.add(t, t)\n'
TABLE = "d = annotate(Dict[int, int], {{}})\nfor i in range(5000):\n  d[i] = i\n"
A = "a = torch.rand([{n}, {n}])\n"

WORK = {
    "reverse": (LONG, "torch.reverse(x)"),
    "index": (LONG + "torch.append(x, 1)\n", "r = torch.index(x, 1)"),
    "in": (LONG, "r = torch.__contains__(x, 1)"),
    "insert": (LONG, "torch.insert(x, 0, 1)"),
    "pop first": (LONG, "r = torch.pop(x, 0)"),
    "sum": (LONG, "r = torch.sum(x)"),
    "equal": (LONG + "y = torch.copy(x)\n", "r = torch.eq(x, y)"),
    "sort": (LONG, "torch.sort(x)"),
    "sorted": (LONG, "r = torch.sorted(x)"),
    "count": (LONG, "r = torch.count(x, 1)"),
    "copy": (LONG, "r = torch.copy(x)"),
    "slice": (LONG, "r = torch.slice(x, 0, 100000, 1)"),
    "str": (LONG, "r = torch.str(x)"),
    "keys": (TABLE, "r = torch.keys(d)"),
    "split": (TEXT, 'r = torch.split(t, "b")'),
    "replace": (TEXT, 'r = torch.replace(t, "b", "c")'),
    "find": (TEXT, 'r = torch.find(t, "c")'),
    "upper": (TEXT, "r = torch.upper(t)"),
    "join": ('k = ["a"]\nfor i in range(14):\n  k = torch.add(k, k)\n', 'r = torch.join("", k)'),
    "svd": (A, "r = torch.linalg_svdvals(a)"),
    "inverse": (A, "r = torch.inverse(a)"),
    "matrix_exp": (A, "r = torch.matrix_exp(a)"),
    "matmul": (A, "r = torch.matmul(a, a)"),
    "matrix_power": (A, "r = torch.matrix_power(a, 1000)"),
    "einsum": (A, 'r = torch.einsum("ij,jk,kl->il", [a, a, a])'),
    "cdist": (A, "r = torch.cdist(a, a)"),
    "conv2d": (
        "a = torch.rand([1, 8, 64, 64])\nw = torch.rand([8, 8, 15, 15])\n",
        "r = torch.conv2d(a, w)",
    ),
    "exp": ("x = torch.rand([300, 300])\n", "r = torch.exp_(x)"),
    "expanded": ("a = torch.expand(torch.rand([1]), [100000])\n", "r = torch.sum(a)"),
    "topk": ("a = torch.rand([10000])\n", "r, i = torch.topk(a, 3)"),
    "tensor": ("x = [0.]\nfor i in range(16):\n  x = torch.add(x, x)\n", "r = torch.tensor(x)"),
    "poisson": ("a = torch.full([1000], 1000.)\n", "r = torch.poisson(a)"),
    "argmax": ("a = torch.expand(torch.rand([1]), [100000])\n", "r = torch.argmax(a)"),
}  # fmt: skip


@pytest.mark.parametrize("name", WORK)
def test_large_steps_count_by_their_size(name: str) -> None:
    """Some ten thousand turns of each would take minutes."""
    before, turn = (part.format(turns=16, n=128) for part in WORK[name])
    body = f"{before}for j in range(30000):\n  {turn}\nreturn torch.len([x])"
    if " = " in turn:  # what nobody uses is not computed
        body = f"{before}{turn}\nfor j in range(30000):\n  {turn}\nreturn torch.len([r])"
    begin = time.process_time()
    with pytest.raises(LimitExceeded, match=f"more than {STEPS} steps"):
        handmade.run(body, limits=Limits(steps=STEPS))
    assert time.process_time() - begin < 20  # of work of 0.1 s


@pytest.mark.parametrize("question", ["max", "argmax", "any"])
def test_an_operator_that_takes_far_longer_than_is_left_is_not_begun(
    question: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody could stop it half-way: a minute and more, on one thread."""
    monkeypatch.setattr(settings, "get_num_threads", lambda: 1)
    body = f"a = torch.expand(torch.rand([1]), [30000000000])\nreturn torch.{question}(a)"
    begin = time.monotonic()
    with pytest.raises(LimitExceeded, match="more than 3 seconds"):
        handmade.run(body, limits=Limits(seconds=3))
    assert time.monotonic() - begin < 3


def _nested(depth: int, question: str) -> str:
    """A list that holds one list twice, and so on, downwards; what is asked of it as an `Any`."""
    lines = ["l0 = [1]"]
    lines += [f"l{level + 1} = [l{level}, l{level}]" for level in range(depth)]
    kind = "List[" * (depth + 1) + "int" + "]" * (depth + 1)
    lines += [f"x = annotate(Any, l{depth})", question.format(kind=kind), "return r"]
    return "\n".join(lines)


@pytest.mark.parametrize("kind", ["{kind}", "List[{kind}]", "Tuple[{kind}]", "Dict[str, {kind}]"])
def test_lists_that_hold_a_list_twice_are_looked_at_once(kind: str) -> None:
    """They hold more items than could be counted, and a few tens of lists."""
    body = _nested(60, f"if isinstance(x, {kind}):\n  r = 1\nelse:\n  r = 0")
    assert handmade.run(body) == (kind == "{kind}")
    assert handmade.run(body, limits=Limits(steps=10_000)) == (kind == "{kind}")


def test_isinstance_counts_what_it_looks_at() -> None:
    body = LONG.format(turns=16) + (
        "y = annotate(Any, x)\nn = 0\nfor j in range(30000):\n"
        "  if isinstance(y, List[int]):\n    n = torch.add(n, 1)\n  else:\n    pass\nreturn n"
    )
    with pytest.raises(LimitExceeded, match=f"more than {STEPS} steps"):
        handmade.run(body, limits=Limits(steps=STEPS))


def test_long_lists_cost_nothing_where_they_are_not_gone_through() -> None:
    body = LONG.format(turns=16) + (
        "n = 0\nfor j in range(3000):\n  torch.append(x, j)\n  n = torch.add(n, torch.len(x))\n"
        "  n = torch.add(n, x[j])\n  n = torch.add(n, torch.pop(x))\nreturn n"
    )
    assert handmade.run(body, limits=Limits(steps=STEPS)) > 0


def test_views_and_sizes_cost_nothing() -> None:
    body = (
        "a = torch.expand(torch.rand([1]), [1000000000])\nn = 0\n"
        "for j in range(2000):\n  b = torch.view(a, [-1, 10])\n"
        "  n = torch.add(n, torch.size(torch.t(b), 1))\nreturn n"
    )
    assert handmade.run(body, limits=Limits(steps=STEPS)) == 2000 * 10**8


def test_lists_that_hold_each_other_are_not_counted_for_ever() -> None:
    value: Any = ["x"]
    for _ in range(60):
        value = [value, value]
    assert extent([value]) == ENDLESS
    assert extent([[1] * 100, "abc", {"k": (1, 2)}]) < 1000


@pytest.mark.parametrize("levels", [3, 40])
def test_results_that_hold_each_other_are_not_copied_for_ever(levels: int) -> None:
    lines, type = ["a0 = [1, 1]"], "List[int]"
    for level in range(1, levels):
        lines.append(f"a{level} = [a{level - 1}, a{level - 1}]")
        type = f"List[{type}]"
    body = "\n".join([*lines, f"return a{levels - 1}"])
    limits = Limits(steps=STEPS)
    if levels == 3:
        assert handmade.run(body, limits=limits, result=type) == [[[1, 1], [1, 1]]] * 2
        return
    with pytest.raises(LimitExceeded, match="steps"):
        handmade.run(body, limits=limits, result=type)


# ---- time


def test_a_deadline() -> None:
    begin = time.monotonic()
    with pytest.raises(LimitExceeded, match=r"more than 0\.2 seconds"):
        handmade.run("n = 0\nfor i in range(1000000000):\n  n = torch.add(n, 1)\nreturn n",
                     limits=Limits(seconds=0.2))  # fmt: skip
    assert time.monotonic() - begin < 20


def test_the_deadline_begins_anew_with_every_call() -> None:
    content = handmade.archive(handmade.module("return 3"))
    module = handmade.load(content, limits=Limits(seconds=0.5))
    for _ in range(4):
        time.sleep(0.2)
        assert module() == 3


SETSTATE = """
class O:
  n : int
  def __setstate__(self: __torch__.O, s: int) -> NoneType:
    x = [0]
    for i in range(20):
      x = torch.add(x, x)
    while True:
      {turn}
    self.n = torch.len(x)
    return None
class M(Module):
  __parameters__ = []
  __buffers__ = []
  o : List[__torch__.O]
  def forward(self: __torch__.M) -> int:
    return 1
"""


@pytest.mark.parametrize("turn", ["torch.reverse(x)", "torch.sort(x)", "x[0] = torch.sum(x)"])
def test_loading_ends_without_limits(turn: str) -> None:
    """A list of a million, in an endless loop of `__setstate__`."""
    one = bytes(handmade.named("__torch__.O")) + b")\x81K\x01b"
    objects = made("__torch__.M", {"o": Raw(b"](" + one + b"e")})
    begin = time.process_time()
    with pytest.raises(LimitExceeded, match=r"more than \d+ (steps|seconds)"):
        handmade.load(handmade.archive(SETSTATE.format(turn=turn), objects))
    assert time.process_time() - begin < 60


def test_loading_has_a_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = Limits.for_loading(10**9).seconds
    assert usual is not None and 60 < usual < 1000
    monkeypatch.setattr(Limits, "for_loading", lambda size: Limits(seconds=0.2))
    one = bytes(handmade.named("__torch__.O")) + b")\x81K\x01b"
    objects = made("__torch__.M", {"o": Raw(b"](" + one + b"e")})
    with pytest.raises(LimitExceeded, match=r"more than 0\.2 seconds"):
        handmade.load(handmade.archive(SETSTATE.format(turn="torch.reverse(x)"), objects))


# ---- memory


@pytest.mark.parametrize(
    "turn",
    ["r = torch.sorted(x)", "r = torch.copy(x)", "r = torch.str(x)", "r = torch.rand([9000])"],
)
def test_what_was_let_go_is_not_counted(turn: str) -> None:
    body = (
        f"x = [0]\nfor i in range(13):\n  x = torch.add(x, x)\n{turn}\n"
        f"for j in range(400):\n  {turn}\nreturn torch.len([r])"
    )
    assert handmade.run(body, limits=Limits(memory=1 << 20)) == 1


@pytest.mark.parametrize(
    "turn", ["torch.append(k, torch.copy(x))", "k = torch.add(k, [torch.copy(x)])"]
)
def test_what_is_held_is_counted(turn: str) -> None:
    body = (
        "x = [0]\nfor i in range(13):\n  x = torch.add(x, x)\nk = annotate(List[List[int]], [])\n"
        f"for j in range(400):\n  {turn}\nreturn torch.len(k)"
    )
    with pytest.raises(LimitExceeded, match=f"more than {1 << 20} bytes of memory"):
        handmade.run(body, limits=Limits(memory=1 << 20))


def test_objects_that_hold_memory_are_counted_together() -> None:
    """Each `__setstate__` is within the limit, all together are not."""
    text = SETSTATE.replace("while True:\n      {turn}\n    self.n = torch.len(x)", "self.x = x")
    text = text.replace("  n : int\n", "  x : List[int]\n").replace("range(20)", "range(14)")
    one = bytes(handmade.named("__torch__.O")) + b")\x81K\x01b"
    for count, is_within in ((2, True), (30, False)):
        objects = made("__torch__.M", {"o": Raw(b"](" + one * count + b"e")})
        content = handmade.archive(text, objects)
        if is_within:
            handmade.load(content, limits=Limits(memory=1 << 21))
            continue
        with pytest.raises(LimitExceeded, match="bytes of memory"):
            handmade.load(content, limits=Limits(memory=1 << 21))


def test_tensors_that_a_program_holds_are_counted_by_their_storages() -> None:
    body = (
        "a = torch.rand([50000])\nk = annotate(List[Tensor], [])\n"
        "for j in range(300):\n  torch.append(k, torch.view(a, [-1]))\n"
        "  k[0] = torch.rand([20000])\n"
        "return torch.len(k)"
    )
    assert handmade.run(body, limits=Limits(memory=1 << 20)) == 300
    assert torch.ones(1).item() == 1
