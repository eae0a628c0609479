"""`torch.func.functional_call` and its older form: values, gradients, buffers, ties, errors."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau
from conformance.side_by_side import attempt, compare
from conformance.test_nn_utils import LAYERS, call, first_of, layer_of


@pytest.mark.parametrize("kind", LAYERS)
def test_layers(kind: str):
    def scenario(torch: Any) -> Any:
        module = layer_of(torch, kind).double()
        given = {name: torch.randn_like(p).requires_grad_() for name, p in
                 module.named_parameters()}  # fmt: skip
        own = {name: p.detach().clone() for name, p in module.named_parameters()}

        class Caller(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.layer = module

            def forward(self) -> Any:
                return first_of(call(torch, kind, self.layer))

        prefixed = {f"layer.{name}": tensor for name, tensor in given.items()}
        output = torch.func.functional_call(Caller(), prefixed)
        (output**2).sum().backward()
        unchanged = [bool((p == own[name]).all()) for name, p in module.named_parameters()]
        kept = [type(p) for p in module.parameters()]
        grads = {name: tensor.grad for name, tensor in given.items()}
        return output, grads, unchanged, kept, [p.grad for p in module.parameters()]

    compare(scenario, rtol=1e-6, atol=1e-9)


def make_net(torch: Any) -> Any:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = torch.nn.Linear(3, 3)
            self.norm = torch.nn.BatchNorm1d(3)
            self.register_buffer("count", torch.zeros(1))
            self.plain = torch.ones(3)

        def forward(self, x, scale=1.0, *, shift=0.0):
            self.count = self.count + 1
            return self.norm(self.first(x)) * scale + shift + self.plain

    return Net()


def test_buffers_are_handed_back():
    def scenario(torch: Any) -> Any:
        net = make_net(torch)
        state = {name: tensor.detach().clone() for name, tensor in net.state_dict().items()}
        given = dict(state)
        x = torch.randn(4, 3)
        outputs = [
            torch.func.functional_call(net, given, x),
            torch.func.functional_call(net, given, (x, 2.0), {"shift": 3.0}),
            torch.func.functional_call(net, given, kwargs={"x": x, "scale": 0.5}),
        ]
        same = {name: given[name] is state[name] for name in given}
        return outputs, given, same, net.state_dict()

    compare(scenario)


def test_partial_several_and_new_names():
    def scenario(torch: Any) -> Any:
        net, call = make_net(torch), torch.func.functional_call
        x = torch.randn(4, 3)
        weight = {"first.weight": torch.eye(3)}
        return [
            call(net, weight, x),
            call(net, [weight, {"first.bias": torch.zeros(3)}], (x,)),
            call(net, ({"plain": torch.zeros(3)},), x),
            call(net, {}, x),
            call(net, [], x),
            net.plain,
            attempt(call, net, {"nothing": torch.ones(1)}, x), hasattr(net, "nothing"),
            attempt(call, net, {"first.nothing": torch.ones(1)}, x),
            attempt(call, net, {"nothing.weight": torch.ones(1)}, x),
            attempt(call, net, {"forward": torch.ones(1)}, x),
            attempt(call, net, {"plain.weight": torch.ones(1)}, x),
            attempt(call, net, {"first": torch.ones(1)}, x),
            attempt(call, net, {"": torch.ones(1)}, x),
            attempt(call, net, {"first.weight": 3}, x),
            attempt(call, net, {"first.bias": None}, x),
            attempt(call, net, weight, x, strict=True),
            attempt(call, net, {**net.state_dict(), "more": x}, x, strict=True),
            attempt(call, net, {**net.state_dict()}, x, strict=True),
            attempt(call, net, [weight, weight], x),
            attempt(call, net, [weight, 3], x),
            attempt(call, net, 3, x),
            attempt(call, net, weight, torch.randn(4, 2)),
            attempt(call, torch.nn.DataParallel(net), {"module.first.weight": x}, x),
            net.state_dict(),
        ]  # fmt: skip

    compare(scenario)


def test_tied_weights():
    def scenario(torch: Any) -> Any:
        class Tied(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.a = torch.nn.Linear(2, 2, bias=False)
                self.b = torch.nn.Linear(2, 2, bias=False)
                self.b.weight = self.a.weight
                self.register_buffer("c", torch.ones(2))
                self.register_buffer("d", self.c)

            def forward(self, x):
                return self.b(self.a(x)) + self.c * self.d

        net, call, x = Tied(), torch.func.functional_call, torch.randn(3, 2)
        one, two = torch.randn(2, 2), torch.randn(2, 2)
        older = torch.nn.utils.stateless.functional_call
        return [
            call(net, {"a.weight": one}, x),
            call(net, {"a.weight": one}, x, tie_weights=False),
            call(net, {"b.weight": one, "a.weight": one}, x),
            attempt(call, net, {"b.weight": one, "a.weight": two}, x),
            call(net, {"b.weight": one, "a.weight": two}, x, tie_weights=False),
            call(net, {"c": torch.zeros(2)}, x),
            call(net, {"a.weight": one, "c": torch.zeros(2)}, x, strict=True),
            attempt(call, net, {"a.weight": one}, x, tie_weights=False, strict=True),
            older(net, {"a.weight": one}, x),
            older(net, {"a.weight": one}, (x,), {}, tie_weights=False, strict=False),
            net(x),
        ]

    compare(scenario)


@pytest.mark.parametrize("form", ["weight_norm", "orthogonal", "prune"])
def test_with_reparametrized_layers(form: str):
    def scenario(torch: Any) -> Any:
        module = torch.nn.Linear(3, 2)
        if form == "prune":
            torch.nn.utils.prune.l1_unstructured(module, "weight", 2)
        else:
            getattr(torch.nn.utils.parametrizations, form)(module)
        given = {name: torch.randn_like(p) for name, p in module.named_parameters()}
        x = torch.randn(4, 3)
        results = [torch.func.functional_call(module, given, x), list(given)]
        value = {"weight": torch.nn.Parameter(torch.ones(2, 3))}
        results.append(attempt(torch.func.functional_call, module, value, x))
        return [*results, module(x), module.state_dict()]

    compare(scenario, rtol=1e-3)


def test_stacked_states():
    def scenario(torch: Any) -> Any:
        stack = torch.func.stack_module_state
        nets = [make_net(torch) for _ in range(3)]
        frozen = make_net(torch).requires_grad_(False)
        results = [stack(nets), stack(torch.nn.ModuleList(nets[:1])), stack([frozen])]
        return [
            *results,
            attempt(stack, []),
            attempt(stack, [nets[0], make_net(torch).eval()]),
            attempt(stack, [nets[0], torch.nn.ReLU()]),
            attempt(stack, [nets[0].train(), nets[1], torch.nn.Linear(1, 1)]),
            attempt(stack, [torch.nn.Linear(2, 2), torch.nn.Linear(2, 2).requires_grad_(False)]),
        ]

    compare(scenario)


def test_what_is_missing_says_so():
    with pytest.raises(NotImplementedError, match=r"torch\.func\.debug_unwrap is not implemented"):
        flambeau.func.debug_unwrap(flambeau.ones(2))
