"""Every rule of batched loops, in every overload, beside the loop as it stands."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import flambeau as torch
from flambeau.jit.optimise import faults, sharing
from flambeau.jit.optimise import settings as switches
from flambeau.jit.optimise.batched_loops import BatchedLoop
from tests.jit.optimise import loop_programs
from tests.jit.optimise.test_loops import both

# ruff: noqa: ANN001, ANN201

pytestmark = pytest.mark.filterwarnings("ignore")
OVERLOADS = {schema.full_name: schema for schema in loop_programs.overloads()}


def tensors_of(arguments):
    return [tensor for value in arguments for tensor in sharing.tensors_in(value)]


def leaves_of(arguments):
    return [tensor for tensor in tensors_of(arguments) if tensor.requires_grad]


def answer(function, arguments, write):
    """What a program gives: its result with gradients, or its error."""
    try:
        result = function(*arguments)
    except Exception as error:
        return type(error), str(error)
    grads = None
    leaves = leaves_of(arguments)
    told = [result.clone().detach(), result.shape, result.dtype, result.stride(),
            result.requires_grad, result._base is None, result._version]  # fmt: skip
    if write:  # an operator may have been recorded; what it has saved is apart from the result
        with torch.no_grad():
            result.zero_()
    if result.requires_grad:
        slope = torch.linspace(0.3, 1.7, result.numel(), dtype=result.dtype).reshape(result.shape)
        try:
            grads = torch.autograd.grad(result, leaves, slope, allow_unused=True)
        except RuntimeError as error:
            grads = type(error), str(error)
    return [*told, grads]


def assert_same(got, expected):
    if isinstance(expected, tuple) or isinstance(got, tuple):
        assert got == expected
        return
    assert got[1:-1] == expected[1:-1]
    close(got[0], expected[0])
    if expected[-1] is None or isinstance(expected[-1][0], type):
        assert got[-1] == expected[-1]
        return
    for ours, theirs in zip(got[-1], expected[-1], strict=True):
        assert (ours is None) == (theirs is None)
        if theirs is not None:
            close(ours, theirs, is_gradient=True)


def close(ours, theirs, is_gradient=False):
    if theirs.is_sparse:
        assert ours.is_sparse
        ours, theirs = ours.to_dense(), theirs.to_dense()
    atol = 1e-5
    if is_gradient:  # 0 * inf in one round is nan; the sum of all rounds may be inf
        sizes = theirs[theirs.isfinite()].abs().tolist()
        atol *= max([1.0, *sizes])  # what nearly cancels is as exact as what it is left of
        both = ~(ours.isfinite() | theirs.isfinite())
        ours, theirs = ours.masked_fill(both, torch.nan), theirs.masked_fill(both, torch.nan)
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=atol, equal_nan=True)


def compiled(text, path):
    """A program's batched form, whether it has one, and the loop as it stands."""
    path.write_text(f"from typing import List\n{text}")
    scope = {"__name__": "loop", "torch": torch, "Tensor": torch.Tensor, "List": list}
    exec(compile(path.read_text(), str(path), "exec"), scope)
    return both(scope["loop"], fusion=False, subscripts=False)


def check(text, path, calls, write=False):
    """Compare all calls of a program in both forms; how many of them were batched."""
    try:
        fast, found, plain = compiled(text, path)
    except RuntimeError:
        return None  # no overload takes these arguments
    batched = 0
    before = faults.counted.total()
    for arguments in calls:
        expected = answer(plain, arguments, write)
        values = [tensor.detach().clone() for tensor in tensors_of(arguments)]
        with switches.using(raise_faults=True):
            got = answer(fast, arguments, write)
        assert_same(got, expected)
        for tensor, value in zip(tensors_of(arguments), values, strict=True):
            assert torch.equal(tensor, value) or tensor.isnan().any()
        loops = [call for call in found if isinstance(call, BatchedLoop)]
        batched += bool(loops) and loops[0].fits and not isinstance(expected, tuple)
    assert faults.counted.total() == before
    return batched


@pytest.mark.parametrize("name", OVERLOADS)
@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(seed=st.integers(0, 2**32))
def test_every_overload_agrees(tmp_path_factory, name, seed):
    drawn = loop_programs.Drawn(OVERLOADS[name], seed)
    calls = [drawn.arguments(torch, call) for call in range(4)]
    path = tmp_path_factory.mktemp("loops", numbered=True) / "loop.py"
    check(drawn.text, path, calls, write=seed % 2 == 0)


def loop_of(body, join="torch.stack(out)", more=""):
    """The text of a loop over rows whose rounds compute `r`."""
    lines = [loop_programs.HEAD, "    out: List[Tensor] = []", *more.splitlines(),
             "    for i in range(len(rows)):", *[f"        {line}" for line in body.split("; ")],
             "        out.append(r)", f"    return {join}", ""]  # fmt: skip
    return "\n".join(lines)


def arguments(rows=None, learns=False):
    x, y, q = torch.randn(3, 4), torch.randn(3, 4), torch.randn(2, 4)
    if learns:
        x.requires_grad_()
    rows = list(x.unbind(0)) if rows is None else rows
    return [x, y, torch.tensor([2, 0, 1]), torch.randn(4), q, rows, [1, 0, 2]]


# ---- what the rounds may differ in


UNLIKE = {
    "dtypes": [torch.full((2, 4), 2**24 + 1, dtype=dtype)
               for dtype in (torch.int64, torch.float32, torch.float64)],
    "strides": [torch.randn(2, 4), torch.randn(4, 2).t(), torch.randn(2, 4)],
    "sizes": [torch.randn(2, 4), torch.randn(1, 4), torch.randn(2, 1)],
    "ranks": [torch.randn(2, 4), torch.randn(4), torch.randn(1, 1, 4)],
    "gradients": [torch.randn(2, 4), torch.randn(2, 4, requires_grad=True), torch.randn(2, 4)],
    "memory": [torch.randn(2, 4)] * 3,
    "other numbers": [torch.randn(2, 4) for _ in range(3)],
}  # fmt: skip


@pytest.mark.parametrize("rows", UNLIKE.values(), ids=UNLIKE)
@pytest.mark.parametrize("body", ["r = rows[i] - 1", "r = rows[i].view(-1)", "r = rows[i].sum()",
                                  "r = rows[i].reshape(-1).mul(w[0])", "r = rows[i] + y[0]",
                                  "r = torch.ones(rows[i].size(0)) * rows[i].dim()"])  # fmt: skip
@pytest.mark.parametrize("join", ["torch.stack(out)", "torch.cat(out)"])
def test_rounds_may_be_unlike(tmp_path, rows, body, join):
    check(
        loop_of(body, join), tmp_path / "loop.py", [arguments(rows), arguments(), arguments(rows)]
    )


STEERED = ["r = x.new_zeros(i + 1)", "r = y[:, : i + 1].sum(0)", "r = x.expand(3, 4)[i:, 0]",
           "r = torch.cat([x[i]] * (i + 1))", "r = x[0].view([i + 1, -1])",
           "r = x[i].narrow(0, i, 1)",
           "r = x[numbers[i]] * numbers[i]", "r = x[i].sum(0, dtype=6 + i // 5)",
           "r = x[i] ** (i - 1)", "r = x[i] * float(i)", "r = x[i] if i > -1 else y[i]",
           "r = x[i] + (i > 1)", "r = x[i] * (i * 4611686018427387904)",
           "r = x[i - 3] / (i // 2 + 1)",
           "r = x[i] * (7 // (i - 3)) + (-7 % (i + 1))", "r = x[i] * (5 % (i - 1))",
           "r = torch.full_like(x[i], i)", "r = x[i].add(y[i], alpha=i)",
           "r = x[i][i]", "r = y[i] * x[i : i + 1].size(i)", "r = w * [x[i], y[i]][i].sum()",
           "r = x[i] * [1, 2, 3][i : i + 1][0]", "r = x[i] * len('abc'[i:])"]  # fmt: skip


@pytest.mark.parametrize("body", STEERED)
def test_numbers_of_rounds_are_those_of_python(tmp_path, body):
    assert check(loop_of(body), tmp_path / "loop.py", [arguments(), arguments()]) is not None


READ = ["r = x[i, : int(w.abs().sum()) % 4 + 1]", "r = x[i].view(-1, int(w[0] > 0) + 1)",
        "r = x[i][w > 0]", "r = x[i].masked_select(w > 0)", "r = x[i] * w.nonzero()",
        "r = torch.where(y[i] > 0, x[i], w)", "r = torch.where(w > 0, x[i], 0.0)",
        "r = x[i].masked_fill(y[i] > 0, -1e9).softmax(-1)", "r = x[i] * (x[i] > 0)"]  # fmt: skip


@pytest.mark.parametrize("body", READ)
def test_what_tensors_hold_may_decide_sizes(tmp_path, body):
    assert check(loop_of(body), tmp_path / "loop.py", [arguments() for _ in range(6)]) is not None


REFUSED = ["r = x[i].dot(y)", "r = x[i].mm(y)", "r = x.mv(y)", "r = x[i].unsqueeze(0).bmm(y)",
           "r = torch.addmm(w, x[i], y)", "r = y[i].expand(3)", "r = y[i].expand(-1, 2)",
           "r = q.t()[i:].view(-1)", "r = x.t()[:, i].view(2, 2)", "r = rows[i].view(-1).t().mm(y)",
           "r = q.t().unsqueeze(0).expand(3, 4, 2)[i].view(8)", "r = x[i].transpose(0, 1)",
           "r = x[i].squeeze(1)", "r = x[i].permute(1, 0)", "r = x[i].chunk(0)[0]",
           "r = x[i].softmax(1)", "r = x[i].gather(0, w)", "r = x[i].index_select(0, w)",
           "r = x.index_select(0, x[i])", "r = x.index_select(0, numbers_[i])", "r = x[i + 1]",
           "r = x[i][i + 3]", "r = rows[i + 1]", "r = rows[i - 4]", "r = x[j[i] + 1]"]  # fmt: skip


@pytest.mark.parametrize("body", REFUSED)
@pytest.mark.parametrize("join", ["torch.stack(out)", "torch.cat(out, 1)"])
def test_errors_are_those_of_the_loop(tmp_path, body, join):
    more = "    numbers_ = j.reshape(3, 1) - 1"
    assert (
        check(loop_of(body, join, more), tmp_path / "loop.py", [arguments(), arguments()])
        is not None
    )


# ---- what shares memory


SHARED = ["r = x[i]", "r = rows[i]", "r = w", "r = x[i].detach()", "r = x[i].contiguous()",
          "r = x[i].to(x.dtype)", "r = x[numbers[i]]", "r = x.t()[:, i]", "r = q[0].expand(4)",
          "r = x[i].view(2, 2).reshape(-1)", "r = x[i] + 0", "r = x[i].tanh()",
          "r = x[i].unsqueeze(0).squeeze(0)", "r = x[i].relu().exp()"]  # fmt: skip


@pytest.mark.parametrize("body", SHARED)
@pytest.mark.parametrize("learns", [False, True])
@pytest.mark.parametrize("join", ["torch.stack(out)", "torch.cat(out)", "torch.stack(out, 1)"])
def test_results_may_be_written_to(tmp_path, body, learns, join):
    calls = [arguments(learns=learns), arguments(learns=learns)]
    assert check(loop_of(body, join), tmp_path / "loop.py", calls, write=True) == len(calls)


def two_lists(x: torch.Tensor, dim: int):
    first = []
    second = []
    for i in range(x.size(0)):
        y = x[i].exp()
        first.append(y)
        second.append(y)
    return torch.stack(first), torch.stack(second, 0), torch.cat(second), torch.stack(first)


@pytest.mark.parametrize("learns", [False, True])
def test_results_do_not_share_memory(learns):
    fast, found, _ = both(two_lists)
    x = torch.randn(3, 4, requires_grad=learns)
    results = fast(x, 0)
    assert found[0].fits
    for k, result in enumerate(results):
        assert not sharing.shares_memory(result, x, *results[:k])
    with torch.no_grad():
        results[0].zero_()
    if learns:
        (grad,) = torch.autograd.grad(results[1].sum(), x)
        close(grad, x.exp())


def constants_and_attributes():
    class Held(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("table", torch.randn(3, 4))
            self.parts = [torch.randn(4) for _ in range(3)]

        def forward(self, x):
            out = []
            again = []
            for i in range(x.size(0)):
                out.append(self.table[i])
                again.append(self.parts[i])
            return torch.stack(out), torch.stack(again)

    return Held()


def test_results_do_not_share_memory_with_what_modules_hold():
    module = constants_and_attributes()
    scripted = torch.jit.script(module)
    kept = [tensor.clone() for tensor in (scripted.table, *scripted.parts)]
    for _ in range(2):
        for result in scripted(torch.randn(3, 1)):
            result.zero_()
    for tensor, before in zip((scripted.table, *scripted.parts), kept, strict=True):
        assert torch.equal(tensor, before)


def test_tensors_are_found_in_whatever_holds_them():
    inner = torch.nn.Linear(2, 2)
    tensors = [torch.randn(2) for _ in range(4)]
    value = [tensors[0], {"a": (tensors[1], [tensors[2]]), "b": 3}, (tensors[3], inner, None)]
    value.append(value)
    found = {id(tensor) for tensor in sharing.tensors_in(value)}
    assert found == {id(tensor) for tensor in (*tensors, inner.weight, inner.bias)}
    assert sharing.shares_memory(tensors[2][1:], value)
    assert not sharing.shares_memory(torch.randn(2), value)
    own = torch.randn(2)
    assert sharing.own_memory(own, value) is own
    for shared in (tensors[2], tensors[2][1:], inner.weight.detach(), own[:1], own.view(2, 1)):
        copy = sharing.own_memory(shared, value)
        assert copy is not shared and copy._base is None and torch.equal(copy, shared)


# ---- gradients


def test_gradients_reach_what_the_rounds_have_used():
    def collect(rows: list[torch.Tensor], w):
        out = []
        for i in range(len(rows)):
            out.append(rows[i] * w)
        return torch.stack(out)

    fast, found, _ = both(collect)
    x, w = torch.randn(3, 4, requires_grad=True), torch.randn(4)
    rows = list(x.unbind(0))
    grads = torch.autograd.grad(fast(rows, w).sum(), [*rows, x])
    assert found[0].fits
    for grad in grads[:3]:
        close(grad, w)
    close(grads[3], w.expand(3, 4))


SAVED = ["r = x[i] * w", "r = x[i] * y[i]", "r = x[numbers[i]] * w", "r = rows[i] * w",
         "r = x[i].exp() + y[i]", "r = rows[numbers[i]].tanh() * q[0]", "r = x[i] + w",
         "r = x[i].detach() * w", "r = x[i] @ q.t()", "r = x[i] * i", "r = x[i].pow(2).sum()",
         "r = x[i][j[i]] / w[0]", "r = x[i].clamp(-1, 1).norm(1, 0)", "r = x[i].max()",
         "r = torch.where(y[i] > 0, x[i], w)", "r = (x[i] * 1).mul(y[i] * 1)"]  # fmt: skip


@pytest.mark.parametrize("body", SAVED)
@pytest.mark.parametrize("target", [0, 1, 3, 4])
@pytest.mark.parametrize("learning", [(0,), (3,), (0, 1, 3, 4)])
def test_writes_before_backward_are_refused_as_by_the_loop(tmp_path, body, target, learning):
    fast, found, plain = compiled(loop_of(body), tmp_path / "loop.py")
    answers = []
    for function in (plain, fast, fast):
        given = arguments()
        for place in learning:
            given[place].requires_grad_()
        given = [v * 1 if isinstance(v, torch.Tensor) and v.requires_grad else v for v in given]
        given[5] = list(given[0].unbind(0))
        result = function(*given)
        with torch.no_grad():
            given[target].mul_(2)
        try:
            answers.append([result.sum().backward() if result.requires_grad else None])
        except RuntimeError as error:
            answers.append(str(error))
    assert found[0].fits
    assert answers[1:] == answers[:1] * 2


# ---- faults


def doubled(x, w):
    out = []
    for i in range(x.size(0)):
        out.append(x[i].mul(2))
    return torch.stack(out)


def broken(call, **given):
    raise KeyError("a rule that is wrong")


def test_a_fault_of_a_rule_leaves_the_work_to_the_loop():
    fast, (loop, *_), plain = both(doubled)
    (step,) = [step for step in loop.program.steps if step.kind == "aten::mul"]
    step.rule = broken
    x = torch.randn(3, 4)
    before = faults.counted["batched loop"]
    with switches.using(raise_faults=False):
        assert torch.equal(fast(x, x), plain(x, x))
    assert faults.counted["batched loop"] == before + 1
    with switches.using(raise_faults=True), pytest.raises(KeyError, match="a rule that is wrong"):
        fast(x, x)
    faults.counted["batched loop"] = before


def test_a_rule_that_gives_other_ranks_is_not_believed():
    fast, (loop, *_), plain = both(doubled)
    (step,) = [step for step in loop.program.steps if step.kind == "aten::mul"]
    right = step.rule
    for wrong in (lambda t: t.unsqueeze(1), lambda t: t.double(), lambda t: t[:, :1],
                  lambda t: t.requires_grad_()):  # fmt: skip

        def changed(call, wrong=wrong, **given):
            result = right(call, **given)
            result.tensor = wrong(result.tensor)
            return result

        step.rule = changed
        loop.program.known.clear()
        x = torch.randn(3, 4)
        got = fast(x, x)
        assert torch.equal(got, plain(x, x)) and got.dtype == x.dtype
        assert not loop.fits
