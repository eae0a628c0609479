"""Loops that collect: batched and hoisted forms give what the loops give, errors included."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flambeau as torch
from flambeau.jit.optimise import optimise
from flambeau.jit.optimise import settings as switches
from flambeau.jit.optimise.batched_loops import BatchedLoop
from flambeau.jit.optimise.recurrences import RecurrentLoop
from flambeau.jit.optimise.scans.scan import Scan
from flambeau.jit.run.program import graph_callable

# ruff: noqa: ANN001, ANN201

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def calls_in(graph):
    return [n.attributes["function"] for n in graph.walk() if n.kind == "flambeau::Call"]


def both(function, **other):
    """The optimised form of a function, its special calls, and the form that is not optimised."""
    scripted = torch.jit.script(function)
    graph = scripted._function.graph.copy()
    with switches.using(**other):
        optimise(graph)
    plain = graph_callable(scripted._function.graph.copy())
    return graph_callable(graph), calls_in(graph), plain


def gather(tensor, indices):
    output = []
    for i in range(tensor.size(0)):
        output += [tensor[i][indices[i]]]
    return torch.stack(output)


def appended(x, w):
    out = []
    for i in range(x.size(0)):
        out.append(torch.tanh(x[i] @ w) + i)
    return torch.stack(out, dim=1)


def over_rows(x, w):
    out = []
    for row in x:
        out.append(torch.softmax(row * w, 0).sum(0))
    return torch.stack(out)


def unbound(x, w):
    return torch.cat([t * w for t in x.unbind(0)], dim=0)


def comprehension(x, w):
    return torch.stack([torch.relu(t - w).mean() for t in x], 0)


def shifted(x, w):
    out = []
    for i in range(1, x.size(0)):
        out.append(x[i] - x[i - 1] * w)
    return torch.stack(out, -1)


def backwards(x, w):
    out = []
    for i in range(x.size(0)):
        out.append(x[x.size(0) - 1 - i] + w)
    return torch.stack(out)


def strided(x, w):
    out = []
    for i in range(0, x.size(0), 2):
        out.append(x[i].unsqueeze(0) * w)
    return torch.cat(out, 1)


def two_lists(x, w):
    first = []
    second = []
    for i in range(x.size(0)):
        y = x[i] * w
        first.append(y)
        second.append(y.exp())
    return torch.stack(first) + torch.stack(second)


def rows_as_they_are(x, w):
    out = []
    for i in range(x.size(0)):
        out.append(x[i])
    return torch.stack(out)


def norms(x, w):
    out = []
    for i in range(x.size(0)):
        a, b = x[i].view(-1, 2).transpose(0, 1).chunk(2, 0)
        out.append(torch.cat([a, b * w[0]], 1).reshape(-1))
    return torch.stack(out)


def from_rows(x, w):
    out = []
    for i in range(x.size(0)):
        row = x[i].flip([0]).cummax(0)[0]
        out.append(row.unfold(0, 2, 1).diagonal().topk(1)[0] + w.std())
    return torch.stack(out)


LOOPS = [appended, over_rows, unbound, comprehension, shifted, backwards, strided, two_lists,
         rows_as_they_are, norms, from_rows]  # fmt: skip


def shapes_for(function):
    return ((5, 4), (4, 3)) if function is appended else ((5, 4), (4,))


@pytest.mark.parametrize("function", LOOPS)
def test_loops_are_batched_and_agree(function):
    torch.manual_seed(0)
    fast, calls, plain = both(function)
    (loop,) = [call for call in calls if isinstance(call, BatchedLoop)]
    inputs = [torch.randn(*shape, requires_grad=True) for shape in shapes_for(function)]
    got, expected = fast(*inputs), plain(*inputs)
    assert loop.fits and loop.error is None, loop.error
    assert got.stride() == expected.stride()
    torch.testing.assert_close(got, expected)
    slope = torch.randn_like(expected)
    for ours, theirs in zip(
        torch.autograd.grad(got, inputs, slope, allow_unused=True),
        torch.autograd.grad(expected, inputs, slope, allow_unused=True), strict=True,
    ):  # fmt: skip
        assert (ours is None) == (theirs is None)
        if theirs is not None:
            torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("shape, chosen", [((6, 5), (6,)), ((6, 5, 3), (6,)), ((6, 5, 3), (6, 2)),
                                           ((4, 5, 3, 2), (4, 2, 7))])  # fmt: skip
def test_batch_gather(shape, chosen):
    fast, calls, plain = both(gather)
    tensor = torch.rand(*shape)
    indices = torch.randint(-shape[1], shape[1], chosen)
    assert torch.equal(fast(tensor, indices), plain(tensor, indices))
    assert torch.equal(fast(tensor, indices % shape[1]), plain(tensor, indices))
    assert calls[0].fits


@pytest.mark.parametrize("tensor, indices", [
    (torch.rand(6, 5), torch.full((6,), 7)), (torch.rand(6, 5), torch.zeros(4, dtype=torch.int64)),
    (torch.rand(0, 5), torch.zeros(0, dtype=torch.int64)), (torch.rand(6, 5), torch.rand(6)),
])  # fmt: skip
def test_errors_are_those_of_the_loop(tensor, indices):
    fast, calls, plain = both(gather)
    texts = []
    for function in (plain, fast):
        with pytest.raises(Exception) as caught:
            function(tensor, indices)
        texts.append((caught.type, str(caught.value)))
    assert texts[0] == texts[1]
    good = torch.rand(3, 4), torch.randint(0, 4, (3, 2))
    assert torch.equal(fast(*good), plain(*good))
    assert len(calls) == 1


def test_the_result_is_new_memory():
    fast, _, _ = both(rows_as_they_are)
    x = torch.rand(3, 4)
    fast(x, x).zero_()
    assert x.min() > 0


def writes(x, w):
    out = []
    for i in range(x.size(0)):
        x[i] += 1
        out.append(x[i])
    return torch.stack(out)


def written_before_the_join(x, w):
    out = []
    for i in range(x.size(0)):
        out.append(x[i])
    x.add_(1)
    return torch.stack(out)


def random(x, w):
    out = []
    for i in range(x.size(0)):
        out.append(torch.rand_like(x[i]))
    return torch.stack(out)


def early_exit(x, w):
    out = []
    for i in range(x.size(0)):
        if bool(x[i].sum() > 1e9):
            break
        out.append(x[i] * 2)
    return torch.stack(out)


def prints(x, w):
    out = []
    for i in range(x.size(0)):
        print(i)
        out.append(x[i] * 2)
    return torch.stack(out)


def list_used_otherwise(x, w):
    out = []
    for i in range(x.size(0)):
        out.append(x[i] * 2)
    out.append(w)
    return torch.stack(out)


def running_sum(x, w):
    out = []
    total = w
    for i in range(x.size(0)):
        total = total + x[i]
        out.append(total)
    return torch.stack(out)


@pytest.mark.parametrize("function", [writes, written_before_the_join, random, early_exit, prints,
                                      list_used_otherwise, running_sum])  # fmt: skip
def test_loops_that_cannot_be_batched_stay(function, capfd):
    fast, calls, plain = both(function)
    assert not [call for call in calls if isinstance(call, BatchedLoop)]
    torch.manual_seed(0)
    expected = plain(torch.ones(3, 4), torch.ones(4))
    torch.manual_seed(0)
    assert torch.equal(fast(torch.ones(3, 4), torch.ones(4)), expected)


def test_switched_off_loops_stay():
    _, calls, _ = both(gather, loop_batching=False, hoisting=False, subscripts=False)
    assert not calls


# ---- recurrences


def lstm(x, h, c, w_ih, w_hh, b_ih, b_hh):
    outputs = []
    for t in range(x.size(0)):
        gates = x[t] @ w_ih.t() + b_ih + h @ w_hh.t() + b_hh
        i, f, g, o = gates.chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        outputs.append(h)
    return torch.stack(outputs), h, c


def lstm_by_linear(x, h, c, w_ih, w_hh, b_ih, b_hh):
    outputs = []
    for t in range(x.size(0)):
        gates = torch.nn.functional.linear(h, w_hh, b_hh) + torch.matmul(x[t], w_ih.t())
        i, f, g, o = gates.chunk(4, -1)
        c = torch.tanh(g) * torch.sigmoid(i) + c * torch.sigmoid(f)
        h = torch.tanh(c) * torch.sigmoid(o)
        outputs += [h]
    return torch.stack(outputs, 1), c, h


def peephole(x, h, c, w_ih, w_hh, b_ih, b_hh):
    outputs = []
    for t in range(x.size(0)):
        gates = x[t] @ w_ih.t() + b_ih + h @ w_hh.t() + b_hh
        i, f, g, o = gates.chunk(4, 1)
        c = torch.sigmoid(f + c) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        outputs.append(h)
    return torch.stack(outputs), h, c


def exchanged(x, h, c, w_ih, w_hh, b_ih, b_hh):
    outputs = []
    for t in range(x.size(0)):
        gates = x[t] @ w_ih.t() + b_ih + h @ w_hh.t() + b_hh
        f, i, g, o = gates.chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        outputs.append(h)
    return torch.stack(outputs), h, c


@pytest.mark.parametrize("function", [lstm, lstm_by_linear, peephole, exchanged])
@pytest.mark.parametrize("scans", [True, False])
@pytest.mark.parametrize("fusion", [True, False])
def test_recurrent_loops_agree(function, scans, fusion):
    torch.manual_seed(0)
    steps, batch, units = 6, 3, 16
    shapes = [(steps, batch, 5), (batch, units), (batch, units), (4 * units, 5),
              (4 * units, units), (4 * units,), (4 * units,)]  # fmt: skip
    inputs = [(torch.randn(*shape) * 0.5).requires_grad_() for shape in shapes]
    with switches.using(scans=scans, fusion=fusion):
        fast, calls, plain = both(function)
        (loop,) = [call for call in calls if isinstance(call, RecurrentLoop)]
        assert any(isinstance(call, Scan) for call in calls_in(loop.rest)) == scans
        for _ in range(3):
            got = fast(*inputs)
    assert loop.fits and loop.error is None
    expected = plain(*inputs)
    slopes = [torch.randn_like(part) for part in expected]
    for ours, theirs in zip(got, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
        assert ours.stride() == theirs.stride()
    for ours, theirs in zip(
        torch.autograd.grad(got, inputs, slopes, allow_unused=True),
        torch.autograd.grad(expected, inputs, slopes, allow_unused=True), strict=True,
    ):  # fmt: skip
        assert (ours is None) == (theirs is None)
        if theirs is not None:
            torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("steps", [0, 1])
def test_recurrent_loops_without_rounds(steps):
    fast, _, plain = both(lstm)
    inputs = [torch.randn(steps, 2, 5), torch.randn(2, 16), torch.randn(2, 16), torch.randn(64, 5),
              torch.randn(64, 16), torch.randn(64), torch.randn(64)]  # fmt: skip
    if steps:
        for ours, theirs in zip(fast(*inputs), plain(*inputs), strict=True):
            assert torch.equal(ours, theirs)
        return
    for function in (fast, plain):
        with pytest.raises(RuntimeError, match="stack expects a non-empty TensorList"):
            function(*inputs)


# ---- random loops


STEPS = ("x[i] * w", "y.tanh()", "y + x[i]", "y.unsqueeze(0).sum(0)", "y * i", "torch.relu(y - w)",
         "torch.softmax(y, -1)", "y.view(2, -1).t().reshape(-1)", "y - y.mean()",
         "w - y")  # fmt: skip


@settings(max_examples=20, deadline=None)
@given(st.lists(st.sampled_from(STEPS), min_size=1, max_size=5), st.integers(0, 1),
       st.sampled_from(["stack", "cat"]), st.integers(2, 4))  # fmt: skip
def test_random_loops_agree(tmp_path_factory, steps, dim, join, rounds):
    lines = [f"        y = {step}" for step in steps]
    text = "\n".join([
        "import flambeau as torch", "def loop(x, w):", "    out = []",
        "    for i in range(x.size(0)):", "        y = x[i]", *lines, "        out.append(y)",
        f"    return torch.{join}(out, {dim if join == 'stack' else 0})", "",
    ])  # fmt: skip
    path = tmp_path_factory.mktemp("loops") / "loop.py"
    path.write_text(text)
    scope = {"__name__": "loop"}
    exec(compile(text, str(path), "exec"), scope)
    fast, calls, plain = both(scope["loop"])
    x, w = torch.randn(rounds, 4), torch.randn(4)
    got, expected = fast(x, w), plain(x, w)
    assert calls[0].fits, calls[0].error
    assert got.stride() == expected.stride()
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)


class Rows(torch.nn.Module):
    """A loop that reads attributes."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(4, 3))
        self.scale = 2.0

    def forward(self, x):
        out = []
        for i in range(x.size(0)):
            out.append(torch.tanh(x[i] @ self.weight) * self.scale)
        return torch.stack(out)


def test_loops_of_modules_are_batched():
    module, x = Rows(), torch.randn(5, 4)
    scripted = torch.jit.script(module)
    graph = scripted.forward._function.graph.copy()
    optimise(graph)
    (loop,) = calls_in(graph)
    torch.testing.assert_close(graph_callable(graph)(scripted, x), module(x))
    assert loop.fits and loop.error is None, loop.error
    torch.testing.assert_close(scripted(x), module(x))
