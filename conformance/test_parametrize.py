"""`parametrize`: registration, chains, removal, transfer, caching, errors, beside PyTorch's."""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import Any

import pytest

from conformance.side_by_side import attempt, compare


def steps(torch: Any) -> Any:
    """Parametrizations of many kinds, made for a library."""
    Module = torch.nn.Module

    class Symmetric(Module):
        def forward(self, x):
            return x.triu() + x.triu(1).mT

        def right_inverse(self, x):
            return x.triu()

    class Double(Module):
        def forward(self, x):
            return x * 2

        def right_inverse(self, x):
            return x / 2

    class OneWay(Module):
        def forward(self, x):
            return x.sin()

    class Undecided(OneWay):
        def right_inverse(self, x):
            raise NotImplementedError

    class RankOne(Module):
        def forward(self, x, y):
            return x.unsqueeze(-1) @ y.unsqueeze(-2)

        def right_inverse(self, z):
            return z[:, 0].clone(), z[0].clone()

    kinds = (Symmetric, Double, OneWay, Undecided, RankOne)
    return SimpleNamespace(
        **dict(zip(("symmetric", "double", "one_way", "undecided", "rank_one"), kinds, strict=True))
    )


def faulty(torch: Any, forward: Any, inverse: Any = None) -> Any:
    """A parametrization made of functions."""

    class Faulty(torch.nn.Module):
        pass

    Faulty.forward = lambda self, *x: forward(*x)
    if inverse is not None:
        Faulty.right_inverse = lambda self, x: inverse(x)
    return Faulty()


def first(*x: Any) -> Any:
    return x[0]


def state_of(module: Any) -> Any:
    return [
        type(module), dict(module.named_parameters()), dict(module.named_buffers()),
        list(module.state_dict()), str(module),
    ]  # fmt: skip


CHAINS = [["symmetric"], ["double"], ["one_way"], ["undecided"], ["rank_one"],
          ["double", "symmetric"], ["symmetric", "double", "one_way"], ["rank_one", "double"],
          ["rank_one", "symmetric"]]  # fmt: skip


@pytest.mark.parametrize("chain", CHAINS, ids="-".join)
@pytest.mark.parametrize("unsafe", [False, True])
@pytest.mark.parametrize("leave", [False, True])
def test_chains(chain: list[str], unsafe: bool, leave: bool):
    def scenario(torch: Any) -> Any:
        P = torch.nn.utils.parametrize
        module, kinds = torch.nn.Linear(3, 3), steps(torch)
        before = module.weight
        for name in chain:
            P.register_parametrization(module, "weight", getattr(kinds, name)(), unsafe=unsafe)
        results = [*state_of(module), module.weight, P.type_before_parametrizations(module)]
        table = module.parametrizations.weight
        results += [table.is_tensor, table.ntensors, table.unsafe, len(table)]
        results += [P.is_parametrized(module), P.is_parametrized(module, "weight")]
        results += [P.is_parametrized(module, "bias"), P.is_parametrized(torch.nn.ReLU())]
        (module(torch.randn(2, 3)) ** 2).sum().backward()
        results += [p.grad for p in module.parameters()]
        results.append(attempt(setattr, module, "weight", torch.randn(3, 3)))
        results.append(module.weight)
        results.append(attempt(P.remove_parametrizations, module, "weight", leave))
        results += [*state_of(module), module.weight]
        results.append(module.weight is before)
        return results

    compare(scenario)


def test_buffers_and_several_tensors():
    def scenario(torch: Any) -> Any:
        P, kinds = torch.nn.utils.parametrize, steps(torch)
        module = torch.nn.BatchNorm1d(3)
        P.register_parametrization(module, "running_mean", kinds.double())
        P.register_parametrization(module, "weight", kinds.one_way())
        P.register_parametrization(module, "bias", kinds.double())
        module(torch.randn(4, 3))
        results = [*state_of(module), module.running_mean]
        P.remove_parametrizations(module, "weight")
        results += [*state_of(module), module.weight]
        P.remove_parametrizations(module, "running_mean", leave_parametrized=False)
        P.remove_parametrizations(module, "bias")
        buffer = torch.nn.Module()
        buffer.register_buffer("b", torch.randn(2, 2))
        P.register_parametrization(buffer, "b", kinds.rank_one())
        results += [*state_of(module), *state_of(buffer)]
        P.remove_parametrizations(buffer, "b")
        return [*results, *state_of(buffer), hasattr(buffer, "parametrizations")]

    compare(scenario)


FAULTS: dict[str, tuple[Any, ...]] = {
    "shape": (lambda x: x[:1],),
    "dtype": (lambda x: x.double(),),
    "no tensor": (lambda x: [x],),
    "inverse number": (first, lambda x: 3),
    "inverse dtype": (first, lambda x: x.double()),
    "inverse of strings": (first, lambda x: (x, "a")),
    "inverse shape": (first, lambda x: x[:1]),
    "inverse error": (first, lambda x: x.nothing),
}


@pytest.mark.parametrize("unsafe", [False, True])
@pytest.mark.parametrize("already", [False, True])
@pytest.mark.parametrize("bad", FAULTS)
def test_refusals(bad: str, already: bool, unsafe: bool):
    def scenario(torch: Any) -> Any:
        P, kinds = torch.nn.utils.parametrize, steps(torch)
        module = torch.nn.Linear(3, 3)
        if already:
            P.register_parametrization(module, "weight", kinds.double())
        step = faulty(torch, *FAULTS[bad])
        result = attempt(P.register_parametrization, module, "weight", step, unsafe=unsafe)
        failed = not isinstance(result, torch.nn.Module)
        return [result if failed else state_of(module), *(state_of(module) if failed else [])]

    compare(scenario)


def test_more_errors():
    def scenario(torch: Any) -> Any:
        P, kinds = torch.nn.utils.parametrize, steps(torch)
        module = torch.nn.Linear(3, 3)
        results = [
            attempt(P.register_parametrization, module, "nothing", kinds.double()),
            attempt(P.register_parametrization, module, "in_features", kinds.double()),
            attempt(P.remove_parametrizations, module, "weight"),
            attempt(P.ParametrizationList, [], module.weight),
        ]
        P.register_parametrization(module, "weight", kinds.rank_one())
        table = module.parametrizations.weight
        rank_one = type(table[0])
        for value in (3, (torch.ones(3),), (torch.ones(3).double(), torch.ones(3)), ("a", "b")):
            rank_one.right_inverse = lambda self, z, value=value: value
            results.append(attempt(setattr, module, "weight", torch.ones(3, 3)))
        other = P.register_parametrization(torch.nn.Linear(2, 2), "weight", kinds.double())
        double = type(other.parametrizations.weight[0])
        for value in (3, torch.ones(2, 2).double()):
            double.right_inverse = lambda self, z, value=value: value
            results.append(attempt(setattr, other, "weight", torch.ones(2, 2)))
        parameter = torch.nn.Parameter(torch.ones(2, 2))
        results.append(attempt(setattr, other, "weight", parameter))
        results.append(attempt(other.register_parameter, "weight", parameter))
        results.append(attempt(delattr, other, "parametrizations"))
        return results

    compare(scenario)


@pytest.mark.parametrize("name", [None, "weight"])
def test_transfer(name: str | None):
    def scenario(torch: Any) -> Any:
        P, kinds = torch.nn.utils.parametrize, steps(torch)
        source = torch.nn.Linear(3, 3)
        P.register_parametrization(source, "weight", kinds.rank_one())
        P.register_parametrization(source, "weight", kinds.double())
        P.register_parametrization(source, "bias", kinds.one_way())
        results = []
        for target in (torch.nn.Linear(3, 3), torch.nn.Module()):
            got = P.transfer_parametrizations_and_params(source, target, name)
            results += [got is target, *state_of(target), target.weight]
            mine = source.parametrizations.weight.original0
            results.append(target.parametrizations.weight.original0 is mine)
        plain = torch.nn.Linear(3, 3)
        P.transfer_parametrizations_and_params(plain, source)
        return results

    compare(scenario)


def test_cache_and_modes():
    def scenario(torch: Any) -> Any:
        P, kinds = torch.nn.utils.parametrize, steps(torch)
        calls = []

        class Counting(torch.nn.Module):
            def forward(self, x):
                calls.append(self.training)
                return x * 3

        module = torch.nn.Linear(2, 2).eval()
        P.register_parametrization(module, "weight", Counting())
        twice = torch.nn.Sequential(module, module)
        x = torch.randn(2, 2)
        results = [twice(x), list(calls)]
        with P.cached():
            with P.cached():
                results += [twice(x), len(calls), module.weight is module.weight]
            results += [twice(x), len(calls)]
            twice(x).sum().backward()
        results += [module.parametrizations.weight.original.grad, len(calls)]
        twice.train()
        module.weight
        P.register_parametrization(module, "weight", kinds.one_way(), unsafe=True)
        return [*results, calls, module.weight]

    compare(scenario)


def test_in_an_optimizer_and_a_state():
    def scenario(torch: Any) -> Any:
        P, kinds = torch.nn.utils.parametrize, steps(torch)
        module = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 1))
        optimizer = torch.optim.Adam(module.parameters(), lr=0.1)
        P.register_parametrization(module[0], "weight", kinds.symmetric())
        x = torch.randn(8, 3)
        for _ in range(5):
            optimizer.zero_grad()
            (module(x) ** 2).sum().backward()
            optimizer.step()
        other = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 1))
        refused = attempt(other.load_state_dict, module.state_dict())
        P.register_parametrization(other[0], "weight", kinds.symmetric())
        loaded = other.load_state_dict(module.state_dict())
        return [*state_of(module), module[0].weight, refused, loaded, other(x)]

    compare(scenario)


def test_parametrized_originals():
    def scenario(torch: Any) -> Any:
        P, kinds = torch.nn.utils.parametrize, steps(torch)
        module = torch.nn.Linear(3, 3)
        P.register_parametrization(module, "weight", kinds.double())
        table = module.parametrizations.weight
        P.register_parametrization(table, "original", kinds.symmetric())
        (module.weight**2).sum().backward()
        results = [*state_of(module), module.weight, [p.grad for p in module.parameters()]]
        P.remove_parametrizations(table, "original", leave_parametrized=False)
        results += [type(table), *state_of(module)]
        P.remove_parametrizations(module, "weight", leave_parametrized=False)
        return [*results, *state_of(module)]

    compare(scenario)


def test_deepcopies_and_subclasses_with_slots():
    def scenario(torch: Any) -> Any:
        P, kinds = torch.nn.utils.parametrize, steps(torch)

        class Slotted(torch.nn.Linear):
            __slots__ = ("extra",)

        module = Slotted(2, 2)
        module.extra = torch.ones(2)
        P.register_parametrization(module, "weight", kinds.double())
        twin = copy.deepcopy(module)
        return [
            type(twin), twin.extra, twin.extra is module.extra, twin.weight, twin.bias,
            twin.parametrizations.weight is module.parametrizations.weight, state_of(twin),
        ]  # fmt: skip

    compare(scenario)
