"""A linear map's node, taken apart for those who look, gives the gradients of the whole one."""

import pytest

import flambeau as torch

SHAPES = [(2,), (4, 2), (3, 4, 2), (0, 2)]


def parts(shape, bias, looked_at, frozen):
    torch.manual_seed(0)
    x = torch.randn(shape, requires_grad=frozen != "input")
    weight = torch.randn(3, 2, requires_grad=frozen != "weight")
    shift = torch.randn(3, requires_grad=frozen != "bias") if bias else None
    y = torch.nn.functional.linear(x, weight, shift)
    if looked_at:
        assert y.grad_fn.next_functions
    wanted = [part for part in (x, weight, shift) if part is not None and part.requires_grad]
    return wanted, (y * y).sum()


def numbers(grads):
    return [None if grad is None else grad.tolist() for grad in grads]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("frozen", ["", "input", "weight", "bias"])
def test_gradients_are_the_same(shape, bias, frozen):
    found = []
    for looked_at in (False, True):
        wanted, loss = parts(shape, bias, looked_at, frozen)
        alone = [torch.autograd.grad(loss, part, retain_graph=True)[0] for part in wanted]
        first = torch.autograd.grad(loss, wanted, create_graph=True)
        size = sum((grad * grad).sum() for grad in first)
        second = torch.autograd.grad(size, wanted, allow_unused=True)
        found.append(numbers([*alone, *first, *second]))
    assert found[0] == found[1]


def test_a_second_backward_is_refused():
    _, loss = parts((4, 2), True, True, "")
    loss.backward()
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()


def test_hooks_stand_between_the_parts():
    x = torch.ones(2, 4, 2, requires_grad=True)
    weight = torch.ones(3, 2, requires_grad=True)
    y = torch.nn.functional.linear(x, weight, torch.zeros(3))
    product = y.grad_fn.next_functions[0][0]
    transposed = product.next_functions[2][0]
    seen = []

    def hook(into, out):
        seen.append([None if grad is None else tuple(grad.shape) for grad in into])

    for node in (y.grad_fn, product, transposed):
        node.register_hook(hook)
    transposed.register_prehook(lambda grads: (grads[0] * 10,))
    y.sum().backward()
    assert seen == [[(8, 3)], [None, (8, 2), (2, 3)], [(3, 2)]]
    assert weight.grad.tolist() == [[80, 80]] * 3
    assert x.grad.tolist() == torch.full((2, 4, 2), 3.0).tolist()
