"""The rules of docs/optimiser.md, one test for each class of programs that broke one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import flambeau as torch
from flambeau._runtime import choice
from flambeau.jit.optimise.exact import exact
from flambeau.jit.optimise.fusion import group as groups

# ruff: noqa: ANN001, ANN201

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
ODD = (0.0, -0.0, float("nan"), -float("nan"), float("inf"), 1.0, True, 1, 0, False, 2**62, None)
needs_kernels = pytest.mark.skipif(not choice.available(), reason="no llvmlite, no kernels")


@pytest.fixture(autouse=True)
def _kernels_for_small_tensors(monkeypatch):
    monkeypatch.setattr(groups, "FEW", 0)


def scripted(text):
    """A function of a program's text, and the same with everything off."""
    found = torch.jit.CompilationUnit(text).f

    def plain(*values):
        with torch.jit.optimized_execution(False):
            return found(*values)

    return found, plain


def agree(text, *tensors, calls=3, learns=True, picked=None):
    """All calls give what the plain program gives: results, gradients and which of them exist."""
    found, plain = scripted(text)
    for _ in range(calls):
        outcomes = [outcome(run, tensors, learns, picked) for run in (found, plain)]
        for mine, theirs in zip(*outcomes, strict=True):
            assert (mine is None) == (theirs is None)
            if mine is not None:
                assert mine.stride() == theirs.stride()
                assert mine.requires_grad == theirs.requires_grad
                torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-4, equal_nan=True)


def outcome(run, tensors, learns, picked):
    """Results, then the gradients of the picked ones by all arguments."""
    given = [t.clone().requires_grad_(learns and t.is_floating_point()) for t in tensors]
    results = run(*given)
    results = results if isinstance(results, tuple) else (results,)
    leaves = [t for t in given if t.requires_grad]
    if not leaves:
        return results
    chosen = [r for k, r in enumerate(results) if picked is None or k in picked]
    weights = [torch.linspace(-1, 1, r.numel()).reshape(r.shape) for r in chosen]
    return [*results, *torch.autograd.grad(chosen, leaves, weights, allow_unused=True)]


# ---- one name, one thing


@given(st.integers(2, 4), st.integers(1, 4), st.integers(0, 3), st.integers(0, 3))
def test_parts_with_one_start_and_several_sizes(halves, pieces, first, second):
    """Parts of parts that begin alike and end elsewhere."""
    text = f"""
def f(x: Tensor):
    a = torch.chunk(x, {halves}, 1)
    b = torch.chunk(a[0], {pieces}, 1)
    c, d = b[{first % pieces}], a[{second % halves}]
    return torch.tanh(c) * torch.sigmoid(d[:, :1]) + torch.exp(-a[0] * a[0])[:, :1], c * 2, d * 3
"""
    agree(text, torch.randn(30, halves * pieces * 2))


# ---- expressions that do not cover their tensor


@pytest.mark.parametrize("form", [
    "k + h.sum()", "k * 2 + (h * 1).sum()", "(k - h.mean()) * k", "k + torch.mm(h, k.t()).sum()",
    "(h + k.sum(0, True)).sum(0)", "torch.layer_norm(h, [60]).sum() * k",
    "torch.softmax(h[:1].expand(60, 60) * 1.0 + 0.0 * k, -1).sum(0)",
])  # fmt: skip
@pytest.mark.parametrize("loss", ["{}", "({}).sum()", "({}).mean()"])
def test_sums_beside_what_they_are_made_of(form, loss):
    """Gradients of sums broadcast; they have the shape of what they are gradients of."""
    agree(f"def f(k: Tensor, h: Tensor):\n    return {loss.format(form)}\n",
          torch.randn(60, 60), torch.randn(60, 60))  # fmt: skip


# ---- which gradients exist


@pytest.mark.parametrize("picked", [(0,), (1,), (2,), (0, 2), (0, 1, 2)])
def test_results_that_get_no_gradient(picked):
    """An argument that only they lead to has none."""
    text = """
def f(a: Tensor, b: Tensor, c: Tensor):
    return torch.exp(a * 2), torch.exp(b * 2) * torch.tanh(a), torch.sigmoid(c) * 3
"""
    agree(text, *(torch.randn(20, 20) for _ in range(3)), picked=picked)


def test_results_without_gradient_that_are_infinite():
    """No gradient is not a gradient of 0: 0 * inf does not come up."""
    text = """
def f(a: Tensor):
    return torch.log(a) * 2, torch.tanh(a) * 3
"""
    agree(text, torch.zeros(20, 20), picked=(1,))


# ---- keys


@given(st.sampled_from(ODD), st.sampled_from(ODD))
def test_exact_keys(a, b):
    """Two values share a key only if no program can tell them apart."""
    same = type(a) is type(b) and repr(a) == repr(b)
    if isinstance(a, float) and a != a and b != b and isinstance(b, float):
        return  # nan and -nan print alike
    assert (exact(a) == exact(b)) == same
    assert (exact([a, 1]) == exact([b, 1])) == same


@given(st.lists(st.sampled_from([0.0, -0.0, float("nan"), 1.0, -1.0]), min_size=4, max_size=9))
def test_forms_for_odd_numbers(numbers):
    """A form that was made for 0.0 is not taken for -0.0."""
    found, plain = scripted("def f(x: Tensor, k: float):\n    return torch.exp(x) / k + x * 2\n")
    x = torch.randn(8, 8)
    for k in numbers:
        torch.testing.assert_close(found(x, k), plain(x, k), equal_nan=True)


# ---- masks


@pytest.mark.parametrize("form", [
    "torch.softmax(s.masked_fill(m, -1e9), -1)", "torch.softmax(s * (s > 0), -1)",
    "torch.softmax(s.masked_fill(m, float('-inf')), -1) * 2",
    "torch.log_softmax(torch.where(m, s, r), -1) * m.logical_not()",
    "torch.softmax(s + m, -1) * r", "(s * m - (s * m).mean(-1, True)) * r",
    "torch.layer_norm(torch.where(s > r, s, r * m), [64])",
    "torch.softmax(s, -1) * (m == n)", "torch.softmax(torch.where(m.logical_or(n), s, 0.5), -1)",
    "torch.where((s > 0).logical_and(n), s, r).sum(-1, True) * r",
])  # fmt: skip
@pytest.mark.parametrize("shape", [(64, 64), (64, 1), (1, 64)])
def test_masks_in_rows(form, shape):
    """Comparisons and arguments of bools where rows are reduced."""
    tensors = (torch.randn(64, 64), torch.randn(64, 64), torch.rand(shape) > 0.5,
               torch.rand(64, 64) > 0.5)  # fmt: skip
    agree(f"def f(s: Tensor, r: Tensor, m: Tensor, n: Tensor):\n    return {form}\n", *tensors)


@pytest.mark.parametrize("form", ["(m + n) * x", "(m * n) * x + x", "(m | n) * x",
                                  "(m & n) * 2 * x",
                                  "torch.where(m, x, m * 1.0)", "(m + n).sum() * x", "(m < n) * x",
                                  "torch.maximum(m, n) * x"])  # fmt: skip
def test_arithmetic_of_masks(form):
    """`m + n` is a mask again, and not 2."""
    tensors = (torch.randn(40, 40), torch.rand(40, 40) > 0.3, torch.rand(40, 40) > 0.3)
    agree(f"def f(x: Tensor, m: Tensor, n: Tensor):\n    return torch.tanh({form}) * 2\n", *tensors)


# ---- what is saved


FORMS = ("h / (1 + (h - d) * (h - d))", "torch.exp(h * d) + h", "torch.tanh(h + d) * 2",
         "torch.sigmoid(h) * d", "torch.layer_norm(h + d, [16]) * 3",
         "torch.softmax(h - d, -1) * h",
         "(h * 2 - d).abs() * h", "torch.where(h > d, h * 2, d)")  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("written", [0, 1])
def test_arguments_that_are_written_to_before_backward(form, written):
    """Backward refuses what the operators would refuse, and has the numbers from before else."""
    found, plain = scripted(f"def f(h: Tensor, d: Tensor):\n    return {form}\n")
    first, second = torch.randn(16, 16), torch.randn(16, 16)
    for _ in range(3):
        told = []
        for run in (found, plain):
            h, d = first.clone().requires_grad_(), second.clone()
            arguments = (h * 1, d * 1)
            result = run(*arguments)
            arguments[written].detach()[:, 0].zero_()
            told.append(slope(result, h))
        same(*told)


@pytest.mark.parametrize("form", ["torch.tanh(h * 2)", "torch.exp(h * 2)", "torch.sigmoid(h) * 3",
                                  "torch.softmax(h * 2, -1)", "torch.sin(h * 2)", "h * h * 2",
                                  "torch.relu(h * 2)", "torch.sqrt(torch.abs(h) + 1)"])  # fmt: skip
@pytest.mark.parametrize("write", ["result.mul_(3)", "result.detach()[0].zero_()",
                                   "result.view(-1).add_(1)"])  # fmt: skip
def test_results_that_are_written_to_before_backward(form, write):
    """The same for results: some operators save them."""
    found, plain = scripted(f"def f(h: Tensor):\n    return {form}\n")
    first = torch.randn(16, 16)
    for _ in range(3):
        told = []
        for run in (found, plain):
            h = first.clone().requires_grad_()
            result = run(h * 1)
            exec(write, {"result": result})
            told.append(slope(result, h))
        same(*told)


def slope(result, leaf):
    """A gradient, or the head of the error."""
    try:
        (found,) = torch.autograd.grad(result.sum(), leaf)
    except RuntimeError as error:
        return str(error)[:60]
    return found


def same(mine, theirs):
    assert type(mine) is type(theirs), (mine, theirs)
    if isinstance(mine, str):
        assert mine == theirs
    else:
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-4)


# ---- what leaves the graph


@pytest.mark.parametrize("results", ["a, b", "[a, b]", "a.view(-1), b.t()", "a[0], b, b.sum()",
                                     "(a, (b, a))"])  # fmt: skip
@pytest.mark.parametrize("writes", ["", "    c = h * 1\n    c.add_(1)\n"])
def test_equal_results_stay_two(results, writes):
    """What is computed twice and handed out twice is two tensors, with and without writes."""
    text = f"def f(h: Tensor):\n    a = torch.tanh(h)\n    b = torch.tanh(h)\n{writes}"
    found, _ = scripted(f"{text}    return {results}\n")
    one, other = found(torch.randn(4, 4))[:2]
    other = other[0] if isinstance(other, tuple) else other
    before = other.clone()
    one.zero_()
    assert torch.equal(other, before)


def test_rounds_that_make_the_same_stay_apart():
    """Each round of a loop makes a new tensor, also where one outside of it is equal."""
    text = """
def f(h: Tensor):
    out: List[Tensor] = []
    a = torch.tanh(h)
    for i in range(3):
        out.append(torch.tanh(h))
    return out, a.sum()
"""
    found, _ = scripted(text)
    out, _ = found(torch.randn(3))
    out[0].zero_()
    assert out[1].abs().sum() > 0


@pytest.mark.parametrize("rows", [1, 2, 12])
def test_sums_over_several_numbers_of_rows(rows):
    """Gradients of what broadcasts are sums over rows; those of two shapes are not one sum."""
    text = "def f(w: Tensor, x: Tensor, y: Tensor):\n    return x * w + 1, torch.tanh(y * w) * 2\n"
    agree(text, torch.randn(16), torch.randn(rows, 16), torch.randn(12, 16))
