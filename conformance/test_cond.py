"""`torch.cond` against PyTorch: which function runs, gradients, and what it refuses."""

import pytest

import flambeau

torch = pytest.importorskip("torch")

PREDICATES = [True, 0, 1.5, "tensor(True)", "tensor([False])", "tensor([[2.5]])"]


def pred_of(library, pred):
    return eval(pred, {"tensor": library.tensor}) if isinstance(pred, str) else pred


@pytest.mark.parametrize("pred", PREDICATES)
def test_the_chosen_function_runs_and_has_gradients(pred):
    def run(library):
        x = library.tensor([0.5, -1.0], requires_grad=True)
        weight = library.tensor(3.0, requires_grad=True)
        operands = ({"x": x},)
        found = library.cond(
            pred_of(library, pred),
            lambda tree: (tree["x"] * weight, tree["x"].exp()),
            lambda tree: (tree["x"].sin(), tree["x"] - weight),
            operands,
        )
        sum(part.sum() for part in found).backward()
        return [part.tolist() for part in found], x.grad.tolist(), weight.grad.tolist()

    ours, theirs = run(flambeau), run(torch)
    for mine, expected in zip(ours, theirs, strict=True):
        assert torch.tensor(mine).allclose(torch.tensor(expected))


@pytest.mark.parametrize("case", range(6))
def test_refusals_have_pytorchs_words(case):
    def words(library):
        x, yes = library.ones(2), library.tensor(True)
        double = lambda x: x * 2  # noqa: E731
        arguments = [
            (library.tensor([True, False]), double, double, (x,)),
            ("a", double, double, (x,)),
            (yes, 3, double, (x,)),
            (yes, double, double, x),
            (yes, double, double, (x, 3)),
            (yes, double, double, {"x": x}),
        ][case]
        with pytest.raises(RuntimeError) as raised:
            library.cond(*arguments)
        return str(raised.value)

    assert words(flambeau) == words(torch)
