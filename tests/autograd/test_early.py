"""Leaves with hooks are filled while the pass goes on, with the same gradients as at its end."""

from __future__ import annotations

import flambeau as torch


def chain(count: int = 3) -> tuple[list[torch.nn.Module], list[object]]:
    """Layers that note in which order their outputs' and their own gradients are there."""
    layers = [torch.nn.Linear(4, 4) for _ in range(count)]
    seen: list[object] = []
    x = torch.ones(2, 4)
    for number, layer in enumerate(layers):
        x = layer(x)
        x.register_hook(lambda grad, n=number: seen.append(f"output {n}"))
        layer.weight.register_post_accumulate_grad_hook(
            lambda leaf, n=number: seen.append(f"weight {n}")
        )
    x.sum().backward()
    return layers, seen


def test_hooks_run_while_the_pass_goes_on():
    _, seen = chain()
    assert seen == ["output 2", "weight 2", "output 1", "weight 1", "output 0", "weight 0"]


def test_a_leaf_that_is_used_several_times_waits_for_all():
    x = torch.tensor([2.0], requires_grad=True)
    seen = []
    x.register_post_accumulate_grad_hook(lambda leaf: seen.append(leaf.grad.clone()))
    first = x * 3
    second = first * x
    (second + x + x.exp().detach() * x).backward()
    assert len(seen) == 1
    assert torch.allclose(seen[0], 12 + 1 + torch.tensor([2.0]).exp())


def test_a_leaf_that_somebody_sends_nothing_is_filled_at_the_end():
    class Nothing(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return None

    x = torch.ones(2, requires_grad=True)
    seen = []
    x.register_post_accumulate_grad_hook(lambda leaf: seen.append(leaf.grad.tolist()))
    (Nothing.apply(x * 5).sum() + (x * 3).sum()).backward()
    assert seen == [[3.0, 3.0]]


def test_gradients_are_given_back_before_the_pass_ends():
    """The optimizer steps in backward: at most one gradient is there at a time."""
    layers = [torch.nn.Linear(4, 4, bias=False) for _ in range(4)]
    most = []

    def step(leaf):
        most.append(sum(layer.weight.grad is not None for layer in layers))
        leaf.grad = None

    x = torch.ones(2, 4)
    for layer in layers:
        layer.weight.register_post_accumulate_grad_hook(step)
        x = layer(x)
    x.sum().backward()
    assert most == [1] * 4


def test_a_fresh_gradient_is_taken_over_without_a_copy():
    x = torch.ones(3, requires_grad=True)
    made = []

    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            result = grad * 2
            made.append(result.data_ptr())
            return result

    x.register_hook(lambda grad: None)
    Scale.apply(x).sum().backward()
    assert [x.grad.data_ptr()] == made


def test_several_outputs_and_roots():
    x = torch.arange(6.0, requires_grad=True)
    seen = []
    x.register_post_accumulate_grad_hook(lambda leaf: seen.append(leaf.grad.tolist()))
    low, high = x.split(3)
    torch.autograd.backward([low.sum(), (high * 2).sum(), x.sum()])
    assert seen == [[2.0] * 3 + [3.0] * 3]
