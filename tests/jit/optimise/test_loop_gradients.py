"""Which gradients a scripted loop has, what its backward misses, and whose memory its results are:
as its rounds have it, whatever the optimiser makes of them.
"""

from __future__ import annotations

from itertools import product

import pytest

import flambeau as torch
from flambeau.jit.optimise import faults, optimise, recurrences
from flambeau.jit.optimise import settings as switches
from flambeau.jit.optimise.scans import assembly, node, scan
from flambeau.jit.optimise.scans.form import ScanForm
from flambeau.jit.run.program import graph_callable
from tests.jit.optimise.random_cells import loaded, sharing
from tests.jit.optimise.test_scans import both
from tests.random_seeds import generator

# ruff: noqa: ANN001, ANN201

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
UNITS = 4
HEAD = """
def cell(x, h, c, w, u, b):
    out = []
    n = h.size(-1)
    d = h
    for t in range(x.size(0)):
"""
NAMES = "xhcwub"


def cell_of(body, results="torch.stack(out), h, c"):
    """The function of a loop's body, a line for each statement."""
    lines = [f"        {line.strip()}" for line in body.split(";")]
    return loaded("\n".join([HEAD.strip("\n"), *lines, f"    return {results}", ""]))


def tensors(learning, rounds=4, rows=3, vectors=False, turned=False):
    """x, h, c, w, u, b as double numbers, some of which learn."""
    torch.manual_seed(rounds)
    batch = () if vectors else (rows,)
    found = [torch.randn(rounds, *batch, UNITS), torch.randn(*batch, UNITS),
             torch.randn(*batch, UNITS), torch.randn(UNITS, 4 * UNITS) * 0.4,
             torch.randn(UNITS, 4 * UNITS) * 0.4, torch.randn(UNITS)]  # fmt: skip
    if turned:
        found[4] = found[4].t().contiguous().t()
    return [t.double().requires_grad_(name in learning)
            for name, t in zip(NAMES, found, strict=True)]  # fmt: skip


def gradients(results, inputs, given):
    """Those of some results, and those of these gradients."""
    learning = [r for r in results if r.requires_grad]
    chosen = [r for k, r in enumerate(learning) if given >> k & 1] or learning
    wanted = [t for t in inputs if t.requires_grad]
    if not chosen or not wanted:
        return [r.requires_grad for r in results]
    slopes = [torch.ones_like(r) * 0.3 for r in chosen]
    first = torch.autograd.grad(chosen, wanted, slopes, retain_graph=True, allow_unused=True)
    again = torch.autograd.grad(chosen, wanted, slopes, create_graph=True, allow_unused=True)
    squares = [(g * g).sum() for g in again if g is not None and g.requires_grad]
    total = sum(squares, torch.zeros(()))
    second = (None,) * len(wanted)
    if total.requires_grad:
        second = torch.autograd.grad(total, wanted, allow_unused=True)
    return [r.requires_grad for r in results], *first, *again, *second


def assert_gradients_agree(fast, plain, inputs, given):
    """The same gradients exist, and they are the same."""
    found = [gradients(function(*inputs), inputs, given) for function in (fast, plain)]
    assert found[0][0] == found[1][0]
    for ours, theirs in zip(*[f[1:] for f in found], strict=True):
        assert (ours is None) == (theirs is None)
        if theirs is not None:
            torch.testing.assert_close(ours, theirs)


CELLS = {
    "rnn": "h = torch.tanh(x[t] + h @ u[:, :n]); out.append(h)",
    "frozen bias": "h = torch.tanh(torch.nn.functional.linear(h, u[:, :n], b) + x[t]);"
                   "out.append(h)",
    "addmm": "c = torch.addmm(b, c, u[:, :n]); h = torch.sigmoid(c) * h; out.append(h + x[t])",
    "mm": "h = torch.tanh(torch.mm(h, u[:, :n].t()) + torch.mm(x[t], w[:, :n])); out.append(h)",
    "lstm": "i, f, g, o = (x[t] @ w + h @ u + b.repeat(4)).chunk(4, 1);"
            "c = f.sigmoid() * c + i.sigmoid() * g.tanh(); h = o.sigmoid() * c.tanh() * b;"
            "out.append(h)",
    "gru": "g = torch.sigmoid(x[t] @ w + h @ u); r = g[:, :n] * h;"
           "h = torch.lerp(torch.tanh(r @ u[:, n:2 * n] + b), h, g[:, n:2 * n]); out.append(h)",
    "handed on": "c = torch.tanh(d @ u[:, :n]); d = h; h = torch.tanh(x[t]); out.append(c)",
    "forgotten": "c = d * b; d = torch.tanh(h @ u[:, :n]); h = torch.tanh(x[t]); out.append(d)",
    "views computed ahead": "h = torch.addcmul(h, x[x.size(0) - 1 - t], b); out.append(h)",
    "saved without a gradient": "out.append(c); c = x[t].detach().tanh(); h = c @ u[:, :n].t()",
    "parts": "g = h @ u; h = torch.tanh(g[:, 2:2 + n] * g[:, 2:3]) + x[t] * b; out.append(g)",
}  # fmt: skip
SUBSETS = ["".join(n for n, has in zip(NAMES, bits, strict=True) if has)
           for bits in product((0, 1), repeat=len(NAMES))]  # fmt: skip
RESULTS = {"handed on": "torch.stack(out), h, c, d", "forgotten": "torch.stack(out), h, c, d"}


@pytest.mark.parametrize("name", CELLS)
def test_all_subsets_of_learning_arguments(name):
    """Gradients exist where operators give them, whichever of the results are given some. `rnn` is
    tried with all subsets, others with those that are drawn.
    """
    random = generator("subsets", name)
    fast, scan_, plain = both(cell_of(CELLS[name], RESULTS.get(name, "torch.stack(out), h, c")))
    chosen = [s for s in SUBSETS if "c" not in s] if name == "rnn" else random.sample(SUBSETS, 8)
    for learning in ["u", "hu", "h", *chosen]:
        inputs = tensors(learning, random.choice((2, 3, 5)), random.choice((1, 3)))
        assert_gradients_agree(fast, plain, inputs, random.randrange(16))
    assert scan_.forms
    made = [form for form in scan_.forms.values() if isinstance(form, ScanForm)]
    assert made or name == "parts"


VECTORS = ("h = torch.tanh(h @ u[:, :n] + x[t])",
           "h = torch.tanh(torch.mv(u[:, :n], h) * b + x[t])",
           "h = torch.tanh(torch.matmul(u[:, :n].t(), h)) - x[t]")  # fmt: skip


@pytest.mark.parametrize("line", VECTORS)
def test_vectors(line):
    fast, _, plain = both(cell_of(f"{line}; out.append(h)"))
    for learning, turned in product(("u", "xu", "h", "hub"), (False, True)):
        inputs = tensors(learning, vectors=True, turned=turned)
        assert_gradients_agree(fast, plain, inputs, 1)


def test_gradients_of_what_no_round_reaches():
    """After 4 rounds, `d` has nothing of `h` any more."""
    fast, scan_, plain = both(cell_of(CELLS["handed on"], "d, c, h"))
    for rounds, learning in product((2, 3, 4), ("h", "hu", "hx")):
        inputs = tensors(learning, rounds)
        for given in (1, 2, 4, 7):
            assert_gradients_agree(fast, plain, inputs, given)
    assert scan_.forms


SINGULAR = ("c = torch.sqrt(h * 0) + c * u[0, 0]; h = torch.tanh(h @ u[:, :n]) + x[t]",
            "c = torch.sqrt(x[t] - x[t].detach()); h = torch.tanh(h @ u[:, :n]) + x[t]",
            "c = torch.sqrt(x[t]); c = torch.clamp(c, -0.5, 0.5) * (t == 3); h = h * 0.5",
            "c = torch.relu(x[t] + d * 0).sqrt(); d = torch.tanh(d); h = h + x[t]")  # fmt: skip


@pytest.mark.parametrize("body", SINGULAR)
def test_no_gradient_is_no_zero(body):
    """What gets no gradient passes none on: a zero times an infinite slope would be NaN."""
    fast, _, plain = both(cell_of(f"{body}; out.append(h)"))
    for learning in ("xhu", "x", "hcu"):
        for given in (1, 2, 4, 3):
            inputs = tensors(learning)
            found = [f(*inputs) for f in (fast, plain)]
            chosen = [[r for k, r in enumerate(rs) if given >> k & 1 and r.requires_grad]
                      for rs in found]  # fmt: skip
            wanted = [t for t in inputs if t.requires_grad]
            ours, theirs = [torch.autograd.grad([r.sum() for r in rs], wanted, allow_unused=True)
                            if rs else () for rs in chosen]  # fmt: skip
            for one, other in zip(ours, theirs, strict=True):
                assert (one is None) == (other is None)
                if other is not None:
                    torch.testing.assert_close(one, other, equal_nan=True)


# ---- memory

LEAVING = {
    "the same twice": ("c = torch.tanh(d); h = torch.tanh(d) + 0 * x[t]", "h, c"),
    "computed ahead": ("c = torch.tanh(x[t] @ w[:, :n]); h = h + c", "h, c"),
    "the product itself": ("c = x[t] @ w[:, :n]; h = torch.tanh(h + c)", "h, c"),
    "a row": ("c = x[t]; h = torch.tanh(h @ u[:, :n])", "h, c"),
    "a part of a product": ("c = (x[t] @ w)[:, :n]; h = torch.tanh(h + c)", "h, c"),
    "handed on": ("d = c; c = torch.tanh(b * 1.0 + 0 * h); h = h * 0.5", "h, c, d"),
    "unchanged": ("h = h @ u[:, :n] + x[t]", "h, c, d"),
    "exchanged": ("e = h; h = c; c = e; d = torch.tanh(d @ u[:, :n])", "h, c, d"),
    "twice": ("h = torch.tanh(h + x[t])", "h, h"),
    "two names": ("h = torch.tanh(h + x[t]); c = h", "h, c"),
    "stacked twice": ("h = torch.tanh(h + x[t]); out.append(h)",
                      "torch.stack(out), torch.stack(out), h"),
}  # fmt: skip


@pytest.mark.parametrize("name", LEAVING)
@pytest.mark.parametrize("learning", ["", "xhcu"])
def test_results_can_be_written_to(name, learning):
    """Each result is the object, and the memory, that the loop would give; writing into one shows
    where it would show.
    """
    body, results = LEAVING[name]
    fast, _, plain = both(cell_of(body, results))
    seen = []
    for function in (fast, plain):
        inputs = [t * 1 for t in tensors(learning)]
        found = list(function(*inputs))
        everything = [*found, *inputs]
        shown = [sharing(everything), [(r._version, r._base is None, r.is_leaf) for r in found]]
        for result in found:
            result.add_(1)
            shown.append([t.detach().clone() for t in everything])
        seen.append((shown[:2], shown[2:]))
    assert seen[0][0] == seen[1][0]
    for ours, theirs in zip(seen[0][1], seen[1][1], strict=True):
        for one, other in zip(ours, theirs, strict=True):
            torch.testing.assert_close(one, other)


@pytest.mark.parametrize("name", CELLS)
def test_backward_misses_what_was_written_to(name):
    """After a write to a result or an argument, backward raises if operators would, and gives the
    same gradients if they would not.
    """
    fast, _, plain = both(cell_of(CELLS[name]))
    random = generator("written", name)
    for learning in ("xhcwub", *random.sample(SUBSETS, 3)):
        for place in range(9):
            outcomes = [_after_write(function, learning, place) for function in (fast, plain)]
            assert (outcomes[0] is None) == (outcomes[1] is None), (learning, place)
            for ours, theirs in zip(*[o or () for o in outcomes], strict=True):
                assert (ours is None) == (theirs is None)
                if theirs is not None:
                    torch.testing.assert_close(ours, theirs)


def _after_write(function, learning, place):
    inputs = tensors(learning)
    results = function(*inputs)
    with torch.no_grad():
        [*results, *inputs][place].mul_(2)
    wanted = [t for t in inputs if t.requires_grad]
    learning = [r for r in results if r.requires_grad]
    if not wanted or not learning:
        return []
    try:
        return torch.autograd.grad([r.sum() for r in learning], wanted, allow_unused=True)
    except RuntimeError as error:
        assert "modified by an inplace operation" in str(error)
        return None


# ---- lists of several shapes, numbers, rounds


def growing(x, h, c, w, u, b):
    out = []
    for t in range(x.size(0)):
        h = torch.cat([h, x[t] + h[:1]])
        out.append(h)
    return torch.cat(out), h


def doubling(x, h, c, w, u, b):
    out = []
    for t in range(x.size(0)):
        c = torch.cat([c, c * 0.5], 1)
        h = torch.tanh(h + x[t])
        out.append(h)
    return torch.stack(out), c


def counted(x, h, c, w, u, b):
    r = x.size(0)
    for t in range(r):
        h = torch.tanh(h * r + x[t])
    return h, c


def broadcast(x, h, c, w, u, b):
    h = h[:1]
    for t in range(x.size(0)):
        h = torch.tanh(h + x[t])
    return h, c


@pytest.mark.parametrize("function", [growing, doubling, counted, broadcast])
def test_loops_that_are_hardly_scans(function):
    fast, _, plain = both(function)
    for rounds in (3, 5, 2, 1, 4):
        inputs = tensors("xh", rounds)
        for ours, theirs in zip(fast(*inputs), plain(*inputs), strict=True):
            torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("numbers", [(0.0, -0.0), (1, True, 1.0), (float("nan"), 2.0)])
def test_numbers_that_are_equal_and_not_the_same(numbers):
    def scaled(x, h, k: float):
        for t in range(x.size(0)):
            h = torch.tanh(h) + x[t] / (h * k)
        return h

    graph = torch.jit.script(scaled)._function.graph.copy()
    plain = graph_callable(graph.copy())
    optimise(graph)
    fast = graph_callable(graph)
    x, h = torch.full((2, 3, 4), 2.0), torch.ones(3, 4)
    for number in numbers:
        torch.testing.assert_close(fast(x, h, float(number)), plain(x, h, float(number)),
                                   equal_nan=True)  # fmt: skip


# ---- faults


class Broken(Exception):
    pass


def broken(*given, **named):
    raise Broken


@pytest.mark.parametrize(("owner", "name"), [
    (assembly, "Launch"), (assembly.Assembly, "_form"), (ScanForm, "run"),
    (ScanForm, "run_backward"), (scan, "record"), (node, "_save"),
])  # fmt: skip
def test_faults_leave_the_work_to_the_loop(owner, name, monkeypatch):
    """Whatever fails in a scan, the loop runs, and it is counted."""
    monkeypatch.setattr(owner, name, broken)
    fast, scan_, plain = both(cell_of(CELLS["rnn"]))
    with switches.using(raise_faults=False):
        before = faults.counted["scans"]
        assert_gradients_agree(fast, plain, tensors("xhu"), 1)
        assert faults.counted["scans"] > before
    with switches.using(raise_faults=True), pytest.raises(Broken):
        assert_gradients_agree(fast, plain, tensors("xhu", rows=5), 1)


def test_faults_of_what_is_computed_ahead(monkeypatch):
    monkeypatch.setattr(recurrences.Ahead, "rows", broken)
    fast, _, plain = both(cell_of(CELLS["lstm"]))
    with switches.using(raise_faults=False):
        before = faults.counted["hoisting"]
        assert_gradients_agree(fast, plain, tensors("xhu"), 1)
        assert faults.counted["hoisting"] > before
    with switches.using(raise_faults=True), pytest.raises(Broken):
        fast(*tensors(""))


def test_errors_of_the_program_are_its_own():
    """They are no faults, and are what the loop raises."""
    fast, _, plain = both(cell_of("h = h @ u[:, :n] + (x[t] @ w)[:, :3]; out.append(h)"))
    before = dict(faults.counted)
    messages = []
    for function in (fast, plain):
        with pytest.raises(RuntimeError) as caught:
            function(*tensors("xu"))
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    assert dict(faults.counted) == before
