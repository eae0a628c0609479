"""`torch._foreach_*`: every operator in every form, results, gradients and errors."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import flambeau
from conformance.side_by_side import compare

torch = pytest.importorskip("torch")

UNARY = sorted(
    name for name in dir(torch) if name.startswith("_foreach_") and not name.endswith("_")
)
IN_PLACE = sorted(name for name in dir(torch) if name.startswith("_foreach_") and name[-1] == "_")
FORMS = (
    "()", "(2)", "(2.5)", "([2, 0.5])", "(b)", "(s)", "(b, b)", "(b, 0.25)", "(b, [0.25, 0.5])",
    "(b, s)", "(b, c, 2)", "(b, c, [2, 3])", "(b, c, t)", "(b, alpha=2)", "(b, c, value=3)",
    "(s, alpha=3)", "(float('inf'))", "(True)", "(1j)", "(b[:1])", "([1])", "(t)", "('x')",
    "(b, 'x')", "(out=b)",
)  # fmt: skip


def lists(module: Any, learn: bool) -> dict[str, Any]:
    """Lists of matrices that the texts are about."""

    def matrices(*starts: float) -> list[Any]:
        made = [
            (module.arange(4, dtype=module.float32).reshape(2, 2) + start) / 7 for start in starts
        ]
        return [tensor.requires_grad_(learn) for tensor in made]

    return {"a": matrices(1, 2), "b": matrices(0.5, 3), "c": matrices(1.5, 1),
            "s": module.tensor(0.5), "t": module.tensor([0.5, 2.0])}  # fmt: skip


def outcome(call: Any) -> Any:
    """What a call gives, or its error; of several wrong arguments, the words are about one."""
    try:
        return call()
    except TypeError:
        return "TypeError"
    except Exception as error:  # noqa: BLE001
        return type(error).__name__, str(error).splitlines()[0]


@pytest.mark.parametrize("name", [*UNARY, *IN_PLACE])
def test_forms(name: str) -> None:
    """The same results or errors for every form of arguments."""

    def scenario(module: Any) -> Any:
        found = []
        for form in FORMS:
            given = lists(module, learn=False)
            call = eval(f"lambda f, a, b, c, s, t: f(a{', ' if form != '()' else ''}{form[1:]}")
            function = getattr(module, name)
            found.append([form, outcome(lambda: call(function, **given)), given["a"]])  # noqa: B023
        return found

    compare(scenario, rtol=1e-5)


@pytest.mark.parametrize("name", [*UNARY, *IN_PLACE])
def test_gradients(name: str) -> None:
    """The same gradients, where PyTorch has them."""
    if name in ("_foreach_powsum", "_foreach_zero_", "_foreach_copy_"):
        pytest.skip("PyTorch has no gradient")

    def scenario(module: Any) -> Any:
        found = []
        for form in ("()", "(2)", "([2, 0.5])", "(b)", "(b, b)", "(b, 0.25)", "(b, c, 2)"):
            given = lists(module, learn=True)
            leaves = [*given["a"], *given["b"], *given["c"]]
            given = {key: [x * 1 for x in value] if isinstance(value, list) else value
                     for key, value in given.items()}  # fmt: skip
            call = eval(f"lambda f, a, b, c, s, t: f(a{', ' if form != '()' else ''}{form[1:]}")
            try:
                results = call(getattr(module, name), **given)
                if name in ("_foreach_maximum_", "_foreach_minimum_") and form != "(b)":
                    raise RuntimeError("PyTorch has gradients for lists alone")
                sum(result.sum() for result in results).backward()
            except (RuntimeError, TypeError, AttributeError) as error:
                found.append(type(error).__name__)
                continue
            found.append([leaf.grad for leaf in leaves])
        return found

    compare(scenario, rtol=1e-4)


NODES = ("()", "(2)", "([2, 0.5])", "(b)", "(s)", "(b, 0.25)", "(b, [0.25, 0.5])", "(b, b)",
         "(b, c, 2)", "(b, c, [2, 3])", "(b, c, t)", "(b, alpha=2)")  # fmt: skip
LEARNING = ("abc", "a", "b", "c")
WITHOUT_GRADIENT = ("_foreach_powsum", "_foreach_zero_", "_foreach_copy_", "_foreach_maximum_",
                    "_foreach_minimum_")  # fmt: skip
"""What PyTorch has no gradient for, or for lists alone, and what flambeau has one for."""


@pytest.mark.parametrize("name", [*UNARY, *IN_PLACE])
@pytest.mark.parametrize("whole", [True, False], ids=["all learn", "some learn"])
def test_nodes(name: str, whole: bool) -> None:
    """The node of a list: its name, its edges and outputs, what it shows, hooks, freed values."""
    if name in WITHOUT_GRADIENT:
        pytest.skip("PyTorch has no gradient, but for one form")

    def scenario(module: Any) -> Any:
        return [
            [form, learning, _history(module, name, form, learning, whole)]
            for form, learning in itertools.product(NODES, LEARNING)
        ]

    compare(scenario, rtol=1e-4)


def _history(module: Any, name: str, form: str, learning: str, whole: bool) -> Any:
    given = lists(module, learn=False)
    for key in learning:
        for tensor in given[key][: None if whole else 1]:
            tensor.requires_grad_()
    leaves = [x for key in "abc" for x in given[key] if x.requires_grad]
    if name.endswith("_"):
        given |= {key: [x * 1 for x in given[key]] for key in "abc"}
    call = eval(f"lambda f, a, b, c, s, t: f(a{', ' if form != '()' else ''}{form[1:]}")
    try:
        results = call(getattr(module, name), **given)
    except (TypeError, RuntimeError) as error:
        return type(error).__name__
    learned = [result for result in results if result.requires_grad]
    nodes = list(dict.fromkeys(result.grad_fn for result in learned))
    seen: list[Any] = [[result.requires_grad, result.output_nr] for result in results]
    seen += [[node.name(), [[edge and edge.name(), number] for edge, number in node.next_functions]]
             for node in nodes]  # fmt: skip
    told: list[Any] = []
    for node in nodes:
        node.register_prehook(lambda grads: told.append(["before", list(grads)]))
        node.register_hook(lambda found, grads: told.append(["after", list(found)]))
    if any("NotImplemented" in node.name() for node in nodes) or not learned:
        return seen
    if name == "_foreach_addcdiv":  # PyTorch's formula is wrong for a list of several
        return seen
    for wanted, kept in ((leaves, True), (leaves[-1:], True), (leaves, False), (leaves, False)):
        total = sum(result.sum() for result in learned[-1:])
        seen.append(outcome(lambda: list(module.autograd.grad(
            total, wanted, retain_graph=kept, allow_unused=True))))  # fmt: skip  # noqa: B023
    return [*seen, told]


def test_sums_of_powers_have_no_gradient() -> None:
    """The results learn, and say in backward that there is no formula."""

    def scenario(module: Any) -> Any:
        leaf = module.tensor([1.0, 2.0], requires_grad=True)
        (result,) = module._foreach_powsum([leaf], 2)
        try:
            result.backward()
        except RuntimeError as error:
            return result, result.requires_grad, str(error)
        return result

    compare(scenario)


def test_lists_are_kept() -> None:
    """Forms in place give back the list that they got."""
    tensors = [flambeau.ones(2), flambeau.ones(3)]
    assert flambeau._foreach_add_(tensors, 1) is tensors


@pytest.mark.parametrize(
    "text",
    ["_foreach_add([], 1)", "_foreach_abs(1)", "_foreach_norm([torch.ones(0)], float('inf'))",
     "_foreach_max([torch.ones(0)])", "_foreach_add([torch.ones(2)], [torch.ones(3)])",
     "_foreach_neg([torch.ones(2).bool()])", "_foreach_sqrt_([torch.ones(2).int()])",
     "_foreach_add_([torch.ones(1).expand(3)], 1)", "_foreach_pow(2, [torch.ones(3) * 2])",
     "_foreach_copy_([torch.ones(2)], [torch.zeros(2).double()], non_blocking=True)",
     "_foreach_norm([torch.ones(2)], 2, torch.float64)", "_foreach_add([torch.ones(2)], [None])"],
)  # fmt: skip
def test_odd_lists(text: str) -> None:
    """Empty lists, odd types and sizes."""
    compare(lambda torch: outcome(lambda: eval(f"torch.{text}", {"torch": torch})))
