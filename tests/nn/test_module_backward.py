"""Full backward hooks: the gradients they see, what they may return, writes around them."""

import pytest

import flambeau as torch
from flambeau import nn


class Calls(nn.Module):
    """A module that calls a function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def hooked(function, answer=lambda *grads: None, kind="full_backward"):
    """Such a module with a hook, and the list of what the hook has seen."""
    module, seen = Calls(function), []

    def hook(module, *grads):
        seen.append(grads)
        return answer(*grads)

    getattr(module, f"register_{kind}_hook")(hook)
    return module, seen


def leaf():
    return torch.tensor([1.0, 2.0, 3.0], requires_grad=True)


def test_inputs_that_the_output_does_not_depend_on_get_zeros():
    x, y = leaf(), leaf()
    module, seen = hooked(lambda x, y, constant, number: y * 2)
    module(x, y, torch.ones(2), 3).sum().backward()
    into, out = seen[0]
    assert [None if grad is None else grad.tolist() for grad in into] == [
        [0, 0, 0], [2, 2, 2], [0, 0], None,
    ]  # fmt: skip
    assert out[0].tolist() == [1, 1, 1]
    assert x.grad.tolist() == [0, 0, 0]


def test_a_module_whose_output_nobody_uses_fires():
    x = leaf()
    inner, seen = hooked(torch.exp)
    outer, _ = hooked(lambda x: (inner(x), x * 2))
    outer(x)[1].sum().backward()
    assert [(into[0].tolist(), out) for into, out in seen] == [([0, 0, 0], (None,))]


@pytest.mark.parametrize("function", [lambda x: {"a": x * 2}, lambda x: [x * 2]])
def test_gradients_that_miss_the_output_pass_unseen(function):
    x = leaf()
    module, seen = hooked(function)
    with pytest.warns(UserWarning, match="module output should be a Tensor or a tuple"):
        out = module(x)
    (out["a"] if isinstance(out, dict) else out[0]).sum().backward()
    assert x.grad.tolist() == [2, 2, 2]
    assert not seen


def test_a_gradient_penalty_is_that_of_the_module_without_hooks():
    found = []
    for register in (True, False):
        x, w = leaf(), leaf()
        module = Calls(lambda x, w=w: (x * w).pow(3))
        if register:
            module.register_full_backward_hook(lambda *seen: None)
        y = module(x)
        (grad,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        (y.sum() + grad.pow(2).sum()).backward()
        found.append((x.grad.tolist(), w.grad.tolist()))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("kind", "answer", "message"),
    [
        ("full_backward", lambda into, out: (*into, None),
         "invalid number of grad_input, got 3, but expected 2"),
        ("full_backward", lambda into, out: into[0], "grad_input, got 3, but expected 2"),
        ("full_backward_pre", lambda out: (),
         "invalid number of grad_output, got 0, but expected 1"),
        ("full_backward_pre", lambda out: out[0] * 2, "grad_output, got 3, but expected 1"),
        ("full_backward", lambda into, out: (into[0].double(), None),
         r"has changed the type of value \(was torch.FloatTensor got torch.DoubleTensor\)"),
        ("full_backward", lambda into, out: (into[0][:1], None), "has changed the size of value"),
    ],
)  # fmt: skip
def test_gradients_that_do_not_fit_are_refused(kind, answer, message):
    x, y = leaf(), leaf()
    module, _ = hooked(torch.mul, answer, kind)
    with pytest.raises(RuntimeError, match=message):
        module(x, y).sum().backward()
    assert x.grad is None


def test_what_goes_in_and_comes_out_may_not_be_written_to():
    x = leaf()
    module, _ = hooked(lambda x: x * 2)
    message = "Output 0 of BackwardHookFunction is a view and is being modified inplace"
    with pytest.raises(RuntimeError, match=message):
        module(x).add_(1)
    within, _ = hooked(lambda x: x.add_(1))
    with pytest.raises(RuntimeError, match=message):
        within(x * 1)
    constant = torch.zeros(3)
    beside, _ = hooked(lambda x, y: x * y.add_(1))
    beside(x, constant)
    assert constant.tolist() == [1, 1, 1]


def test_a_module_is_free_once_its_graph_is():
    import gc
    import weakref

    gc.collect()
    gc.disable()
    try:
        module, _ = hooked(torch.exp)
        out = module(leaf())
        alive = weakref.ref(module)
        del module
        assert alive() is not None  # its hooks may still be called
        del out
        assert alive() is None
    finally:
        gc.enable()
