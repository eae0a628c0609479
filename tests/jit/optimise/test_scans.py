"""Scans: loops with any cell as kernels give what the loops give, their gradients included."""

from __future__ import annotations

import pytest

pytest.importorskip("llvmlite")

import flambeau as torch
from flambeau.jit.optimise import optimise
from flambeau.jit.optimise.scans.form import ScanForm
from flambeau.jit.optimise.scans.scan import Scan
from flambeau.jit.run.program import graph_callable

# ruff: noqa: ANN001, ANN201

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
UNITS = 8


def scans_in(graph):
    """The scans of a graph, those within recurrent loops too."""
    found = []
    for node in graph.walk():
        call = node.attributes.get("function") if node.kind == "flambeau::Call" else None
        if isinstance(call, Scan):
            found.append(call)
        elif hasattr(call, "rest"):
            found += scans_in(call.rest)
    return found


def both(function):
    """The optimised form of a function, its scan or None, and the form that is not optimised."""
    graph = torch.jit.script(function)._function.graph.copy()
    plain = graph_callable(graph.copy())
    optimise(graph)
    scans = scans_in(graph)
    return graph_callable(graph), scans[0] if scans else None, plain


def arguments(rounds=5, rows=3, dtype=torch.float32, grads=True):
    """x, h, c [.., 8], matrices w and u [8, 32], weights p [8]."""
    torch.manual_seed(rounds * 10 + rows)
    tensors = [torch.randn(rounds, rows, UNITS), torch.randn(rows, UNITS),
               torch.randn(rows, UNITS), torch.randn(UNITS, 4 * UNITS) * 0.3,
               torch.randn(UNITS, 4 * UNITS) * 0.3, torch.randn(UNITS)]  # fmt: skip
    return [tensor.to(dtype).requires_grad_(grads) for tensor in tensors]


def assert_alike(fast, plain, inputs):
    """The same results and gradients, in the same memory layout."""
    got, expected = fast(*inputs), plain(*inputs)
    for ours, theirs in zip(got, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
        assert ours.stride() == theirs.stride()
        assert ours.requires_grad == theirs.requires_grad
    if not any(tensor.requires_grad for tensor in expected):
        return
    pairs = [pair for pair in zip(got, expected, strict=True) if pair[1].requires_grad]
    slopes = [torch.randn_like(theirs) for _, theirs in pairs]
    wanted = [tensor for tensor in inputs if tensor.requires_grad]
    for ours, theirs in zip(
        torch.autograd.grad([a for a, _ in pairs], wanted, slopes, allow_unused=True),
        torch.autograd.grad([b for _, b in pairs], wanted, slopes, allow_unused=True), strict=True,
    ):  # fmt: skip
        assert (ours is None) == (theirs is None)
        if theirs is not None:
            torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)


def made(scan):
    """The forms that a scan has made; all calls but those of one round found one."""
    assert not any(form is False for form in scan.forms.values()), scan.reason
    return [form for form in scan.forms.values() if isinstance(form, ScanForm)]


# ---- cells


def sliced(x, h, c, w, u, p):
    out = []
    for t in range(x.size(0)):
        gates = x[t] @ w + h @ u
        kept, new, rest = gates[:, :8].sigmoid(), gates[:, 8:16].tanh(), gates[:, 16:]
        c = kept * c + new * rest[:, 8:]
        h = torch.tanh(c) * p
        out.append(h)
    return torch.stack(out), c


def joined(x, h, c, w, u, p):
    out = []
    for t in range(x.size(0)):
        gates = torch.cat([x[t], h], 1) @ torch.cat([w, u], 0)
        a, b, d, e = gates.chunk(4, -1)
        c = c * torch.sigmoid(a) + b.tanh() * d.sigmoid()
        h = c.tanh() * e.sigmoid()
        out.append(h)
    return torch.stack(out, 1), h


def gru(x, h, c, w, u, p):
    out = []
    reset, update, new = u[:, :8], u[:, 8:16], u[:, 16:24]
    for t in range(x.size(0)):
        row = x[t] @ w
        r = torch.sigmoid(row[:, :8] + h @ reset)
        z = torch.sigmoid(row[:, 8:16] + torch.nn.functional.linear(h, update.t(), p))
        h = torch.lerp(torch.tanh(row[:, 16:24] + (r * h) @ new), h, z)
        out.append(h)
    return torch.cat(out), h


def last_only(x, h, c, w, u, p):
    last = c
    for t in range(x.size(0)):
        rows = (x[t] @ w + torch.addmm(p.repeat(4), h, u))[:, :8]
        last = torch.relu(rows)
        h = torch.where(rows > 0, rows * 0.5, h) - p
    return h + last, last


def delayed(x, h, c, w, u, p):
    out = []
    both_of = []
    scale = p.mean()
    for t in range(x.size(0)):
        new = torch.tanh(x[t] + c * scale)
        c = h
        h = new
        out.append(h)
        both_of.append(h)
    return torch.stack(out), torch.stack(both_of), h, c


def masked(x, h, c, w, u, p):
    out = []
    chosen = x.sum(2) > 0
    for t in range(x.size(0)):
        new = torch.tanh(x[t] + h @ u[:, :8])
        h = torch.where(chosen[t].unsqueeze(1), new, h)
        out.append(h * chosen[t].unsqueeze(1))
    return torch.stack(out), h


def vectors(x, h, c, w, u, p):
    out = []
    v, h, c, x = u[:, :8], h[0], c[0], x[:, 0]
    for t in range(x.size(0)):
        a, b = torch.cat([v @ h + x[t], c * p]).chunk(2, 0)
        c = a.sigmoid() * c + b
        h = torch.tanh(c + h @ v)
        out += [h]
    return torch.stack(out), c


def without_input(x, h, c, w, u, p):
    for _ in range(x.size(0)):
        h = torch.tanh(h @ u[:, :8] + p)
    return h, c


CELLS = [sliced, joined, gru, last_only, delayed, masked, vectors, without_input]


@pytest.mark.parametrize("function", CELLS)
def test_cells_are_scans_and_agree(function):
    fast, scan, plain = both(function)
    assert_alike(fast, plain, arguments())
    assert len(made(scan)) == 1
    assert_alike(fast, plain, arguments(9))  # the number of rounds is free
    assert len(made(scan)) == 1


@pytest.mark.parametrize("function", [gru, delayed])
def test_other_arguments(function):
    fast, scan, plain = both(function)
    for inputs in (arguments(grads=False), arguments(4, 1, torch.float64), arguments(2, 37)):
        assert_alike(fast, plain, inputs)
    assert len(made(scan)) == 3
    inputs = arguments(grads=False)
    inputs[5].requires_grad_()
    inputs[0] = inputs[0].transpose(0, 1).contiguous().transpose(0, 1)
    assert_alike(fast, plain, inputs)


@pytest.mark.parametrize("rounds", [0, 1])
def test_few_rounds(rounds):
    fast, scan, plain = both(last_only)
    assert_alike(fast, plain, arguments(rounds))
    assert not scan.forms


class Cell(torch.nn.Module):
    """A cell as PyTorch's own examples write it: the state is a tuple."""

    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.randn(4 * UNITS, UNITS) * 0.3)
        self.u = torch.nn.Parameter(torch.randn(4 * UNITS, UNITS) * 0.3)
        self.b = torch.nn.Parameter(torch.randn(4 * UNITS))

    def forward(self, x: torch.Tensor, state: tuple[torch.Tensor, torch.Tensor]):
        h, c = state
        gates = torch.mm(x, self.w.t()) + torch.mm(h, self.u.t()) + self.b
        i, f, g, o = gates.chunk(4, 1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        return h, (h, c)


class Layer(torch.nn.Module):
    """All steps of a cell, the last one first."""

    def __init__(self):
        super().__init__()
        self.cell = Cell()

    def forward(self, x: torch.Tensor, state: tuple[torch.Tensor, torch.Tensor]):
        rows = x.unbind(0)
        outputs = torch.jit.annotate(list[torch.Tensor], [])
        for i in range(len(rows)):
            out, state = self.cell(rows[-i - 1], state)
            outputs += [out]
        return torch.stack(outputs), state


def test_states_in_tuples():
    layer = Layer()
    scripted = torch.jit.script(layer)
    graph = scripted.forward._function.graph.copy()
    optimise(graph)
    (scan,) = scans_in(graph)
    x, h, c, *_ = arguments()
    got, (hidden, cell) = graph_callable(graph)(scripted, x, (h, c))
    expected, (want_hidden, want_cell) = layer(x, (h, c))
    wanted = [x, h, c, *layer.parameters()]
    for ours, theirs in ((got, expected), (hidden, want_hidden), (cell, want_cell)):
        torch.testing.assert_close(ours, theirs)
    for ours, theirs in zip(torch.autograd.grad((got.sum() + cell.prod()), wanted),
                            torch.autograd.grad((expected.sum() + want_cell.prod()), wanted),
                            strict=True):  # fmt: skip
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    assert len(made(scan)) == 1


# ---- what must not show


def test_results_are_memory_of_their_own():
    fast, scan, plain = both(delayed)
    inputs = arguments()
    first, second, h, c = fast(*inputs)
    with torch.no_grad():
        for tensor in (second, h, c):
            tensor.fill_(7.0)
    torch.testing.assert_close(first, plain(*inputs)[0])
    assert made(scan)


@pytest.mark.parametrize("written", range(4))
def test_results_that_were_written_to_are_missed(written):
    """Backward raises where operators have saved a result: tanh saves h, nothing a stack."""
    found = []
    for function in both(delayed)[::2]:
        inputs = arguments()
        results = function(*inputs)
        with torch.no_grad():
            results[written].fill_(7.0)
        try:
            found.append(torch.autograd.grad(results[0].sum(), inputs[0])[0])
        except RuntimeError as error:
            assert "modified by an inplace operation" in str(error)
            found.append(None)
    assert (found[0] is None) == (found[1] is None) == (written > 1)
    if written < 2:
        torch.testing.assert_close(*found)


def test_arguments_that_were_written_to_are_missed():
    fast, scan, _ = both(gru)
    inputs = arguments()
    result = fast(*inputs)[0].sum()
    with torch.no_grad():
        inputs[4].add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.backward()
    assert made(scan)


def test_gradients_of_gradients():
    fast, scan, plain = both(gru)
    inputs = arguments(3, 2, torch.float64)
    found = []
    for function in (fast, plain):
        first = torch.autograd.grad((function(*inputs)[0] ** 2).sum(), inputs, create_graph=True,
                                    allow_unused=True)  # fmt: skip
        total = sum((grad**3).sum() for grad in first if grad is not None)
        found.append([*first, *torch.autograd.grad(total, inputs, allow_unused=True)])
    for ours, theirs in zip(*found, strict=True):
        assert (ours is None) == (theirs is None)
        if ours is not None:
            torch.testing.assert_close(ours, theirs)
    assert made(scan)


def breaks(x, h, c, w, u, p):
    for t in range(x.size(0)):
        h = torch.tanh(h + x[t])
        if bool(h.sum() > 1e9):
            break
    return h, c


def writes(x, h, c, w, u, p):
    h = h * 1
    for t in range(x.size(0)):
        h.mul_(p).add_(x[t])
    return h, c


def normalised(x, h, c, w, u, p):
    for t in range(x.size(0)):
        h = torch.softmax(h + x[t], 1)
    return h, c


def other_matrices(x, h, c, w, u, p):
    for t in range(x.size(0)):
        h = torch.tanh(h @ u[:, :8] + h @ (u[:, 8:16] * t))
    return h, c


def growing(x, h, c, w, u, p):
    h = h[0]
    for t in range(x.size(0)):
        h = torch.tanh(h + x[t])
    return h, c


@pytest.mark.parametrize("function", [breaks, writes, normalised, other_matrices, growing])
def test_other_loops_run_as_they_stand(function):
    fast, scan, plain = both(function)
    assert_alike(fast, plain, arguments())
    assert scan is None or not [f for f in scan.forms.values() if isinstance(f, ScanForm)]
