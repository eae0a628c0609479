"""Groups: fused results, gradients and second gradients are those of the operators."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("llvmlite")

import flambeau as torch
from flambeau.jit.ir.graph import Graph
from flambeau.jit.optimise.fusion import group as groups
from flambeau.jit.optimise.fusion.group import Group, key_of
from flambeau.jit.optimise.fusion.symbols import size_written_out

UNARY = ("tanh", "sigmoid", "relu", "exp", "sin", "neg", "abs")
BINARY = ("add", "sub", "mul", "maximum")


def group_of(function):
    """A group that runs a Python function in the place of a graph, as kernels if it can."""
    group = Group(Graph())
    group.few = False
    group.operators = function
    return group


def form_of(group):
    """The form that the last call took; None if it took none."""
    return list(group.forms.values())[-1] or None


def several(result):
    return result if isinstance(result, tuple) else (result,)


def check(function, tensors, fused=True):
    """The group gives the same as the function: results, gradients, gradients of gradients."""
    for wanted in (False, True):
        inputs = [t.detach().requires_grad_(wanted and t.is_floating_point()) for t in tensors]
        group = group_of(function)
        for _ in range(3):
            got = several(group(*inputs))
        assert (form_of(group) is not None) == fused, getattr(group, "reason", None)
        expected = several(function(*inputs))
        for mine, theirs in zip(got, expected, strict=True):
            assert mine.dtype == theirs.dtype
            assert mine.stride() == theirs.stride()
            torch.testing.assert_close(mine, theirs, rtol=2e-4, atol=2e-5, equal_nan=True)
            assert mine.requires_grad == theirs.requires_grad
    check_gradients(got, expected, [t for t in inputs if t.requires_grad])


def check_gradients(got, expected, inputs):
    pairs = [(m, t) for m, t in zip(got, expected, strict=True) if t.requires_grad]
    slopes = [torch.randn_like(theirs).requires_grad_() for _, theirs in pairs]
    ours, theirs = (
        torch.autograd.grad([pair[k] for pair in pairs], inputs, slopes, create_graph=True,
                            allow_unused=True) for k in (0, 1)
    )  # fmt: skip
    compare(ours, theirs)
    second = []
    for grads in (ours, theirs):
        roots = [g.sum() for g in grads if g is not None]
        second.append(torch.autograd.grad(roots, [*inputs, *slopes], allow_unused=True))
    compare(*second)


def compare(ours, theirs):
    for mine, other in zip(ours, theirs, strict=True):
        assert (mine is None) == (other is None)
        if mine is not None:
            torch.testing.assert_close(mine, other, rtol=2e-3, atol=2e-4)


def plain_backward(function, tensors):
    """Gradients by the backward kernels, without a graph of their own."""
    inputs = [t.detach().requires_grad_() for t in tensors]
    group = group_of(function)
    for _ in range(2):
        group(*inputs)
    results = []
    for call in (group, function):
        outputs = several(call(*inputs))
        torch.manual_seed(3)
        slopes = [torch.randn(*out.shape, dtype=out.dtype) for out in outputs]
        results.append(torch.autograd.grad(outputs, inputs, slopes, allow_unused=True))
    assert form_of(group) is not None, group.reason
    compare(*results)


def norm_chain(x, y, weight, bias):
    z = torch.tanh(x * y + x) * torch.sigmoid(y)
    z = torch.relu(z - 0.5)
    return torch.nn.functional.layer_norm(z, (z.size(-1),), weight, bias)


def lstm_gates(x, h, bias, cell):
    gates = x + bias + h
    enter, forget, candidate, leave = gates.chunk(4, 1)
    now = torch.sigmoid(forget) * cell + torch.sigmoid(enter) * torch.tanh(candidate)
    return torch.sigmoid(leave) * torch.tanh(now), now


def scaled_softmax(x, y):
    return torch.softmax(x * y, -1) * 2


def rms(x, weight):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * weight


def chosen(x, y):
    return torch.where(x > 0, x * y, 0.5 - y) + torch.clamp(y, -1, 1)


CASES = {
    "norm": (norm_chain, [(6, 32), (6, 32), (32,), (32,)]),
    "norm of three dims": (norm_chain, [(2, 3, 16), (2, 3, 16), (16,), (16,)]),
    "gates": (lstm_gates, [(4, 32), (4, 32), (32,), (4, 8)]),
    "softmax": (scaled_softmax, [(5, 19), (5, 19)]),
    "rms": (rms, [(5, 40), (40,)]),
    "where": (chosen, [(7, 3), (7, 3)]),
    "broadcast": (chosen, [(7, 1, 3), (2, 1)]),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_groups_agree_with_their_operators(name, dtype):
    torch.manual_seed(0)
    function, shapes = CASES[name]
    tensors = [torch.randn(*shape, dtype=dtype) for shape in shapes]
    check(function, tensors)
    plain_backward(function, tensors)


def test_a_layer_norm_chain_is_one_kernel_each_way():
    tensors = [torch.randn(8, 64, requires_grad=True) for _ in range(2)]
    tensors += [torch.randn(64, requires_grad=True) for _ in range(2)]
    group = group_of(norm_chain)
    for _ in range(2):
        group(*tensors)
    form = form_of(group)
    assert [len(form.forward), len(form.backward)] == [1, 1]


@st.composite
def programs(draw):
    """Random chains: a list of (operator, operands), each operand an earlier value."""
    count = draw(st.integers(2, 4))
    steps = []
    for k in range(draw(st.integers(2, 7))):
        if draw(st.booleans()):
            steps.append((draw(st.sampled_from(UNARY)), (draw(st.integers(0, count + k - 1)),)))
        else:
            pair = (draw(st.integers(0, count + k - 1)), draw(st.integers(0, count + k - 1)))
            steps.append((draw(st.sampled_from(BINARY)), pair))
    return count, steps


def program_function(steps):
    def run(*values):
        known = list(values)
        for name, operands in steps:
            known.append(getattr(torch, name)(*[known[k] for k in operands]))
        return torch.tanh(known[-1])  # of moderate size, and depending on nothing else

    return run


@settings(max_examples=25, deadline=None)
@given(programs(), st.sampled_from([(3, 5), (1, 5), (4, 1, 6)]), st.data())
def test_random_chains_agree(program, shape, data):
    torch.manual_seed(1)
    count, steps = program
    tensors = []
    for _ in range(count):
        sizes = [data.draw(st.sampled_from([n, 1])) for n in shape]
        tensor = torch.randn(*sizes) * 0.5
        if data.draw(st.booleans()) and len(sizes) == 2:
            tensor = torch.randn(sizes[1], sizes[0]).t()
        tensors.append(tensor)
    function = program_function(steps)
    group = group_of(function)
    for _ in range(3):
        got = group(*tensors)
    expected = function(*tensors)
    assert got.stride() == expected.stride()
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)
    inputs = [t.detach().requires_grad_() for t in tensors]
    for _ in range(2):
        group(*inputs)
    slope = torch.randn(*expected.shape)
    ours = torch.autograd.grad(group(*inputs), inputs, slope, allow_unused=True)
    theirs = torch.autograd.grad(function(*inputs), inputs, slope, allow_unused=True)
    compare(ours, theirs)


@pytest.mark.parametrize("make", [
    lambda: torch.randn(4, 4, dtype=torch.float16), lambda: torch.randn(4, 4, dtype=torch.bfloat16),
    lambda: torch.randint(0, 5, (4, 4)), lambda: torch.randn(0, 4),
])  # fmt: skip
def test_other_types_and_empty_tensors_run_by_operators(make):
    x = make()
    group = group_of(lambda a: a * 2 + a)
    for _ in range(3):
        assert torch.equal(group(x), x * 2 + x)
    assert form_of(group) is None


def test_mixed_types_are_promoted_as_ever():
    x, y = torch.randn(4, 4), torch.randn(4, 4, dtype=torch.float64)
    group = group_of(lambda a, b: a * b + a)
    for _ in range(3):
        result = group(x, y)
    assert result.dtype == torch.float64
    assert torch.equal(result, x * y + x)


def test_a_result_that_is_an_argument_or_a_view_is_not_copied():
    x = torch.randn(4, 4)
    group = group_of(lambda a: (a * 2 + 1, a, a[0]))
    for _ in range(3):
        _, same, row = group(x)
    assert same is x
    assert row._base is x


def test_inference_mode_runs_the_kernels():
    tensors = [torch.randn(*shape) for shape in CASES["norm"][1]]
    group = group_of(norm_chain)
    with torch.inference_mode():
        for _ in range(3):
            result = group(*tensors)
    assert form_of(group) is not None
    assert result.is_inference()
    torch.testing.assert_close(result, norm_chain(*tensors), rtol=2e-4, atol=2e-5)


def test_inference_tensors_are_not_saved():
    with torch.inference_mode():
        y = torch.randn(4, 4)
    x = torch.randn(4, 4, requires_grad=True)
    group = group_of(lambda a, b: torch.tanh(a * b) * b)
    for _ in range(3):
        with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
            group(x, y)


def test_classes_that_take_operators_over_do_not_stop_kernels_for_plain_tensors():
    class Named(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            return super().__torch_function__(function, types, args, kwargs)

    x = torch.randn(4, 4, requires_grad=True)
    group = group_of(lambda a: torch.tanh(a) * a)
    for _ in range(3):
        result = group(x)
    assert form_of(group) is not None
    result.sum().backward()


def test_numbers_are_part_of_the_key():
    x = torch.randn(4, 4)
    group = group_of(lambda a, k: a * k + k)
    for number in (2.0, 3.0, 2, 3.0):
        for _ in range(3):
            assert torch.equal(group(x, number), x * number + number)
    assert key_of([x, 2]) != key_of([x, 2.0])


def test_written_inputs_are_found_by_backward():
    x = torch.randn(4, 4, requires_grad=True)
    y = torch.randn(4, 4)
    group = group_of(lambda a, b: torch.tanh(a * b) * b)
    for _ in range(3):
        result = group(x, y)
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.sum().backward()


def test_backward_twice_needs_retain_graph():
    x = torch.randn(4, 4, requires_grad=True)
    group = group_of(lambda a: torch.tanh(a) * a)
    for _ in range(3):
        result = group(x).sum()
    result.backward(retain_graph=True)
    result.backward()
    with pytest.raises(RuntimeError, match="second time"):
        result.backward()


def test_errors_are_those_of_the_operators():
    group = group_of(lambda a, b: a * b + a)
    for _ in range(3):
        with pytest.raises(RuntimeError, match="must match the size of tensor b"):
            group(torch.randn(3, 4), torch.randn(3, 5))


def test_shared_parts_are_counted_each_time():
    def doubling(a):
        for _ in range(40):
            a = a * a
        return a

    x = torch.rand(4, 4)
    group = group_of(doubling)
    for _ in range(3):
        assert torch.equal(group(x), doubling(x))
    from flambeau._compiler.expr import parameter

    expression = parameter("x")
    for _ in range(40):
        expression = expression * expression
    assert size_written_out(expression) == 2**41 - 1


def test_gradients_of_leaves_do_not_share_memory():
    leaves = [torch.randn(4, 4, requires_grad=True) for _ in range(3)]
    group = group_of(lambda a, b, c: torch.tanh(a + b) + c)
    for _ in range(3):
        for leaf in leaves:
            leaf.grad = None
        slope = torch.ones(4, 4)
        group(*leaves).backward(slope)
        first, second, third = (leaf.grad.clone() for leaf in leaves)
        leaves[0].grad.add_(1)
        leaves[2].grad.add_(1)
        assert torch.equal(leaves[1].grad, second)
        assert torch.equal(slope, torch.ones(4, 4))
        assert torch.equal(first, second)
        assert torch.equal(third, slope)


def test_few_operators_on_small_tensors_run_one_by_one():
    group = group_of(lambda x, y: torch.relu(x * y))
    group.few = True
    for size, fused in ((groups.SMALL, False), (groups.SMALL + 1, True)):
        for _ in range(3):
            group(torch.ones(1), torch.ones(size))
        assert any(isinstance(form, groups.Form) for form in group.forms.values()) == fused


def test_the_weight_of_lerp_may_be_a_number():
    for weight in (0.3, 0.7):
        check(lambda x, y, w=weight: torch.lerp(torch.tanh(x), y, w), [torch.randn(3, 5)] * 2)
