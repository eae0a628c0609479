"""`nn.utils.prune`: masks from the same seed, chains, global pruning, removal and errors."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import pytest

from conformance.side_by_side import attempt, compare
from conformance.test_nn_utils import LAYERS, call, first_of, layer_of, weight_of

# Prunings as (function, arguments after the module and the name).
PRUNINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "identity": ("identity", {}),
    "random": ("random_unstructured", {"amount": 0.3}),
    "random 2": ("random_unstructured", {"amount": 2}),
    "l1": ("l1_unstructured", {"amount": 0.4}),
    "l1 0": ("l1_unstructured", {"amount": 0}),
    "slices": ("random_structured", {"amount": 0.5, "dim": 0}),
    "slices -1": ("random_structured", {"amount": 1, "dim": -1}),
    "l2 slices": ("ln_structured", {"amount": 0.5, "n": 2, "dim": 0}),
    "l1 slices": ("ln_structured", {"amount": 1, "n": 1, "dim": 1}),
    "inf slices": ("ln_structured", {"amount": 0.3, "n": float("inf"), "dim": -1}),
    "fro slices": ("ln_structured", {"amount": 0.4, "n": "fro", "dim": 0}),
}


def prune(torch: Any, module: Any, weight: str, kind: str) -> Any:
    name, options = PRUNINGS[kind]
    return getattr(torch.nn.utils.prune, name)(module, weight, **options)


def run(torch: Any, layer: str, module: Any, weight: str) -> list[Any]:
    output = first_of(call(torch, layer, module))
    (output * output).sum().backward()
    return [output, getattr(module, weight), module.state_dict(),
            {name: p.grad for name, p in module.named_parameters()}]  # fmt: skip


@pytest.mark.parametrize("kind", PRUNINGS)
@pytest.mark.parametrize("layer", [name for name in LAYERS if name not in ("LayerNorm", "Square")])
def test_one_pruning(layer: str, kind: str):
    def scenario(torch: Any) -> Any:
        P = torch.nn.utils.prune
        module, weight = layer_of(torch, layer), weight_of(layer)
        made = prune(torch, module, weight, kind)
        results = [made is module, P.is_pruned(module), *run(torch, layer, module, weight)]
        hook = next(iter(module._forward_pre_hooks.values()))
        results += [type(hook), hook.PRUNING_TYPE]
        results.append(P.remove(module, weight) is module)
        results += [P.is_pruned(module), list(module.state_dict()), getattr(module, weight)]
        results.append(attempt(P.remove, module, weight))
        return [*results, first_of(call(torch, layer, module))]

    compare(scenario, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("first", "second"), list(itertools.product(PRUNINGS, PRUNINGS)))
def test_two_prunings(first: str, second: str):
    def scenario(torch: Any) -> Any:
        module = torch.nn.Conv2d(4, 6, 3)
        results = [prune(torch, module, "weight", first)]
        results.append(attempt(prune, torch, module, "weight", second))
        results.append(attempt(prune, torch, module, "weight", "l1"))
        hooks = list(module._forward_pre_hooks.values())
        results += [[type(hook), len(hook), [type(step) for step in hook], type(hook[-1])]
                    for hook in hooks]  # fmt: skip
        return [*results, module.state_dict(), module(torch.randn(1, 4, 5, 5)).sum()]

    compare(scenario, rtol=1e-4, atol=1e-5)


def test_masks_and_scores():
    def scenario(torch: Any) -> Any:
        P = torch.nn.utils.prune
        module = torch.nn.Linear(4, 3)
        scores = torch.randn(3, 4)
        P.l1_unstructured(module, "weight", 5, importance_scores=scores)
        P.ln_structured(module, "weight", 1, 2, 0, importance_scores=scores * 2)
        P.custom_from_mask(module, "bias", torch.tensor([1, 0, 1]))
        P.custom_from_mask(module, "weight", torch.rand(3, 4) > 0.2)
        results = [module.state_dict(), module(torch.randn(2, 4))]
        tensor = torch.randn(3, 4)
        methods = [
            *(P.L1Unstructured(3), P.RandomUnstructured(0.5), P.RandomStructured(0.5, 1)),
            *(P.LnStructured(1, 2, -2), P.Identity(), P.CustomFromMask(scores > 0)),
        ]
        for method in methods:
            results.append(method.prune(tensor))
            results.append(attempt(method.prune, tensor, importance_scores=scores[0]))
            results.append(attempt(method.prune, tensor, (scores > 0).float(), scores))
            results.append(attempt(method.compute_mask, scores, torch.ones(3, 4)))
        return results

    compare(scenario)


@pytest.mark.parametrize("method", ["L1Unstructured", "RandomUnstructured"])
@pytest.mark.parametrize("amount", [0.4, 7])
@pytest.mark.parametrize("with_scores", [False, True])
def test_global(method: str, amount: float, with_scores: bool):
    def scenario(torch: Any) -> Any:
        P = torch.nn.utils.prune
        net = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 4))
        pairs = [(net[0], "weight"), (net[2], "weight"), (net[2], "bias")]
        scores = {pairs[1]: torch.randn(4, 3)} if with_scores else None
        results = []
        for _ in range(2):
            P.global_unstructured(pairs, getattr(P, method), scores, amount=amount)
            results.append(net.state_dict())
        twin = copy.deepcopy(net.state_dict())
        for module, name in pairs:
            P.remove(module, name)
        return [*results, net.state_dict(), twin]

    compare(scenario)


def test_errors():
    def scenario(torch: Any) -> Any:
        P = torch.nn.utils.prune
        module = torch.nn.Linear(4, 3)

        class Strange(P.BasePruningMethod):
            PRUNING_TYPE = "strange"

            def compute_mask(self, t, default_mask):
                return default_mask

        class WithoutDim(Strange):
            PRUNING_TYPE = "structured"

        def other(name: str) -> Any:
            method = P.L1Unstructured(1)
            method._tensor_name = name
            return method

        pairs = [(module, "weight")]
        structured = attempt(P.global_unstructured, pairs, P.RandomStructured, amount=1)
        results = [
            *[attempt(P.L1Unstructured, amount) for amount in (-1, 1.5, -0.1, "a", None, 1j)],
            attempt(P.l1_unstructured, module, "weight", 13),
            attempt(P.random_unstructured, module, "weight", 13),
            attempt(P.random_structured, module, "weight", 4, 0),
            attempt(P.random_structured, module, "weight", 1, 2),
            attempt(P.random_structured, module, "bias", 1, 0),
            attempt(P.ln_structured, module, "bias", 1, 2, 0),
            attempt(P.ln_structured, module, "weight", 1, 2, 5),
            attempt(P.l1_unstructured, module, "nothing", 1),
            attempt(P.l1_unstructured, module, "weight", 1, torch.ones(3)),
            attempt(P.custom_from_mask, module, "weight", torch.ones(3)),
            list(module.state_dict()), len(module._forward_pre_hooks),
            attempt(P.remove, module, "weight"),
            attempt(P.global_unstructured, 3, P.L1Unstructured, amount=1),
            attempt(P.global_unstructured, pairs, P.L1Unstructured, 3, amount=1),
            structured.kind, structured.text.split(" Found ")[0],
            attempt(P.global_unstructured, pairs, P.L1Unstructured, amount=99),
            attempt(P.BasePruningMethod),
        ]  # fmt: skip
        container = P.PruningContainer(other("weight"))
        results += [len(container), type(container[0])]
        results.append(attempt(container.add_pruning_method, 3))
        wrong = attempt(container.add_pruning_method, other("bias"))
        results += [wrong.kind, wrong.text.split(" to PruningContainer ")[0]]
        Strange.apply(module, "weight")
        results.append(attempt(Strange.apply, module, "weight"))
        module = torch.nn.Linear(4, 3)
        WithoutDim.apply(module, "weight")
        results.append(attempt(WithoutDim.apply, module, "weight"))
        module = torch.nn.Linear(4, 3)
        P.identity(module, "weight")
        results.append(attempt(P.ln_structured, module, "weight", 1, 2, -3))
        return results

    compare(scenario)


def test_pruned_training():
    def scenario(torch: Any) -> Any:
        P = torch.nn.utils.prune
        net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
        P.l1_unstructured(net[0], "weight", 0.5)
        P.ln_structured(net[2], "weight", 0.25, 2, dim=1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        x = torch.randn(8, 4)
        losses = []
        for _ in range(10):
            optimizer.zero_grad()
            loss = (net(x) ** 2).sum()
            loss.backward()
            optimizer.step()
            losses.append(loss)
        fresh = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
        P.identity(fresh[0], "weight")
        P.identity(fresh[2], "weight")
        fresh.load_state_dict(net.state_dict())
        return losses, net.state_dict(), fresh(x)

    compare(scenario, rtol=1e-3)
