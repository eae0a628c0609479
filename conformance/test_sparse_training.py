"""Sparse gradients of embeddings, and the optimizers that take them, beside PyTorch's."""

from __future__ import annotations

import io
from typing import Any

import pytest
import torch as reference

import flambeau
from conformance.test_sparse import LIBRARIES, assert_same, compare, outcome, plain

pytestmark = pytest.mark.filterwarnings("ignore:Sparse invariant checks are implicitly disabled")

INDICES = {
    "several": [[1, 3], [3, 0]], "one": 2, "none": [], "a row": [5, 5, 5, 1],
}  # fmt: skip


def table(library: Any) -> Any:
    """A table of 6 rows of 2."""
    return (library.arange(12.0).view(6, 2) / 4).requires_grad_()


LOOK_UPS = [
    (name, padding_idx)
    for name in INDICES
    for padding_idx in (None, 3, -6)
    if name != "one" or padding_idx is None  # PyTorch cannot leave out a single index
]


@pytest.mark.parametrize(("name", "padding_idx"), LOOK_UPS)
@pytest.mark.parametrize("kind", ["int64", "int32"])
def test_embedding(name: str, padding_idx: int | None, kind: str) -> None:
    def gradient(library: Any, loss: Any) -> Any:
        weight = table(library)
        rows = library.tensor(INDICES[name], dtype=getattr(library, kind))
        found = library.nn.functional.embedding(rows, weight, padding_idx, sparse=True)
        loss(found).backward()
        return [weight.grad, weight.grad.is_leaf, repr(weight.grad)]

    for loss in (lambda x: (x * x).sum(), lambda x: x.sum()):
        ours, theirs = (outcome(gradient, library, loss) for library in LIBRARIES)
        assert_same(ours, theirs)


BAGS = [
    {}, {"padding_idx": 3}, {"include_last_offset": True}, {"scale_grad_by_freq": True},
    {"mode": "sum"}, {"mode": "sum", "padding_idx": 0}, {"mode": "max"},
    {"mode": "sum", "scale_grad_by_freq": True}, {"mode": "sum", "weighted": True},
]  # fmt: skip


@pytest.mark.parametrize("options", BAGS, ids=str)
def test_embedding_bag(options: dict[str, Any]) -> None:
    def gradient(library: Any) -> Any:
        kwargs = dict(options)
        weights = None
        if kwargs.pop("weighted", False):
            weights = library.tensor([0.5, 2.0, 3.0, 1.0, 1.0]).requires_grad_()
        weight = table(library)
        found = library.nn.functional.embedding_bag(
            library.tensor([1, 3, 3, 0, 2]), weight, library.tensor([0, 2, 2, 5]),
            per_sample_weights=weights, sparse=True, **kwargs,
        )  # fmt: skip
        (found * found).sum().backward()
        return [weight.grad, None if weights is None else weights.grad]

    compare(gradient, rtol=1e-6)


def test_modules() -> None:
    def gradient(library: Any) -> Any:
        library.manual_seed(0)
        embedding = library.nn.Embedding(10, 3, padding_idx=2, sparse=True)
        bag = library.nn.EmbeddingBag(10, 3, mode="mean", sparse=True)
        rows = library.tensor([[1, 2, 9], [2, 4, 4]])
        (embedding(rows).sum(1) * bag(rows)).sum().backward()
        return [embedding.weight.grad, bag.weight.grad]

    compare(gradient, rtol=1e-6)


@pytest.mark.parametrize("kinds", ["ss", "st", "ts", "sd", "ds", "sds", "ssss", "uu", "uuuu", "su"])
def test_accumulation(kinds: str) -> None:
    """s, t: sparse with rows in two orders; u: with expanded gradients; d: dense."""

    def gradients(library: Any) -> Any:
        weight, found, same = table(library), [], []
        for kind in kinds:
            rows = library.tensor([[1, 3], [3, 0]] if kind != "t" else [[3, 1], [0, 3]])
            before = weight.grad
            out = library.nn.functional.embedding(rows, weight, sparse=kind in "stu")
            (out if kind == "u" else out * out).sum().backward()
            found.append(weight.grad.clone())
            same.append(weight.grad is before)
        return [found, same, weight.grad._version]

    compare(gradients, rtol=1e-6)


def test_several_uses_in_one_graph() -> None:
    def gradients(library: Any) -> Any:
        first, second, mixed = (table(library) for _ in range(3))
        rows = library.tensor([[1, 3], [3, 0]])
        look_up = library.nn.functional.embedding
        product = look_up(rows, first, sparse=True) * look_up(rows.flip(0), first, sparse=True)
        product.sum().backward()
        (look_up(rows, second, sparse=True) * second[0]).sum().backward()
        (mixed[1] * look_up(rows, mixed, sparse=True)).sum().backward()
        scaled = table(library)
        (look_up(rows, -(scaled * 2), sparse=True) ** 2).sum().backward()
        return [first.grad, second.grad, mixed.grad, scaled.grad]

    compare(gradients, rtol=1e-6)


def test_hooks_and_higher_gradients() -> None:
    def run(library: Any) -> Any:
        weight, seen = table(library), []
        weight.register_hook(lambda grad: seen.append(str(grad.layout)) or grad * 2)
        weight.register_post_accumulate_grad_hook(lambda w: seen.append(str(w.grad.layout)))
        rows = library.tensor([1, 3, 3])
        (library.nn.functional.embedding(rows, weight, sparse=True) ** 2).sum().backward()
        first = weight.grad.clone()
        other = table(library)
        out = (library.nn.functional.embedding(rows, other, sparse=True) ** 3).sum()
        (grad,) = library.autograd.grad(out, other, create_graph=True)
        (grad.to_dense() ** 2).sum().backward()
        return [seen, first, grad, other.grad]

    compare(run, rtol=1e-6)


@pytest.mark.parametrize("norm_type", [1.0, 2.0, float("inf")])
def test_clipping_is_refused_as_in_torch(norm_type: float) -> None:
    def clip(library: Any) -> Any:
        weight = table(library)
        rows = library.tensor([1, 3, 3])
        library.nn.functional.embedding(rows, weight, sparse=True).sum().backward()
        return library.nn.utils.clip_grad_norm_([weight], 1.0, norm_type)

    compare(clip)


@pytest.mark.parametrize("bad", [False, True])
def test_gradient_scaling(bad: bool) -> None:
    def run(library: Any) -> Any:
        weight = table(library)
        optimizer = library.optim.SGD([weight], lr=0.1)
        scaler = library.amp.GradScaler("cpu", init_scale=8.0)
        rows = library.nn.functional.embedding(library.tensor([1, 3, 3]), weight, sparse=True)
        scaler.scale((rows * (float("inf") if bad else 2.0)).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        return [weight, weight.grad, scaler.get_scale()]

    compare(run, rtol=1e-6)


# ---- optimizers

STEPS = [
    ("SGD", {"lr": 0.1}), ("SGD", {"lr": 0.1, "maximize": True}), ("SGD", {"momentum": 0.9}),
    ("SGD", {"momentum": 0.9, "nesterov": True}), ("SGD", {"momentum": 0.9, "dampening": 0.5}),
    ("SGD", {"weight_decay": 0.1}), ("SGD", {"fused": True}), ("SGD", {"foreach": True}),
    ("Adagrad", {}), ("Adagrad", {"lr_decay": 0.1, "initial_accumulator_value": 0.5}),
    ("Adagrad", {"maximize": True}), ("Adagrad", {"weight_decay": 0.1}),
    ("Adagrad", {"fused": True}),
    ("SparseAdam", {}), ("SparseAdam", {"lr": 0.1, "betas": (0.5, 0.7), "eps": 1e-3}),
    ("SparseAdam", {"maximize": True}), ("Adam", {}), ("Adam", {"fused": True}), ("AdamW", {}),
    ("Adamax", {}), ("Adadelta", {}), ("ASGD", {}), ("NAdam", {}), ("RAdam", {}), ("RMSprop", {}),
    ("Rprop", {}), ("Adafactor", {}), ("Muon", {}),
]  # fmt: skip


def trained(library: Any, name: str, options: dict[str, Any], steps: int, state: Any = None,
            start: Any = None) -> Any:  # fmt: skip
    """Tables after some steps, and the optimizer."""
    params = [library.nn.Parameter(table(library).detach()) for _ in range(2)]
    if start is not None:
        for param, value in zip(params, start, strict=True):
            param.data.copy_(library.tensor(value))
    optimizer = getattr(library.optim, name)(params, **options)
    if state is not None:
        optimizer.load_state_dict(state)
    for step in range(steps):
        optimizer.zero_grad()
        for param in params:
            rows = library.tensor([[1, 3, 3], [step % 6, 0, 5]])
            (library.nn.functional.embedding(rows, param, sparse=True) ** 2).sum().backward()
        optimizer.step()
    return params, optimizer


@pytest.mark.parametrize(("name", "options"), STEPS, ids=str)
def test_optimizer_steps(name: str, options: dict[str, Any]) -> None:
    def run(library: Any) -> Any:
        params, optimizer = trained(library, name, options, 6)
        state = optimizer.state_dict()
        kept = [[key, *map(list, entry.items())] for key, entry in state["state"].items()]
        return [params, kept, sorted(state["param_groups"][0].items(), key=lambda x: x[0])]

    compare(run, rtol=1e-5)


def test_dense_gradients_are_refused_by_sparse_adam() -> None:
    def run(library: Any) -> Any:
        param = library.nn.Parameter(table(library).detach())
        (param**2).sum().backward()
        library.optim.SparseAdam([param]).step()

    compare(run)


def test_set_to_zero() -> None:
    def run(library: Any) -> Any:
        params, optimizer = trained(library, "SGD", {"lr": 0.1}, 1)
        optimizer.zero_grad(set_to_none=False)
        return [param.grad for param in params]

    compare(run)


@pytest.mark.parametrize("name", ["SparseAdam", "Adagrad", "SGD"])
def test_state_goes_from_one_to_the_other(name: str) -> None:
    options: dict[str, Any] = {"momentum": 0.5} if name == "SGD" else {}
    for writer, reader in (LIBRARIES, LIBRARIES[::-1]):
        params, optimizer = trained(writer, name, options, 3)
        file = io.BytesIO()
        writer.save(optimizer.state_dict(), file)
        start = [param.detach().numpy().copy() for param in params]
        results = []
        for library in (writer, reader):
            file.seek(0)
            ended = trained(library, name, options, 3, library.load(file), start)
            kept = list(ended[1].state_dict()["state"][0].items())
            results.append([plain(ended[0]), plain(kept)])
        assert_same(*results, rtol=1e-5)


def entry() -> Any:
    """SparseAdam's row of PyTorch's OptimizerInfo database."""
    from torch.testing._internal.common_optimizers import optim_db

    return next(info for info in optim_db if info.optim_cls is reference.optim.SparseAdam)


class Translation:
    """Options and parameters of the database in flambeau's tensors, each tensor once."""

    def __init__(self) -> None:
        self.known: dict[int, Any] = {}

    def __call__(self, value: Any) -> Any:
        if isinstance(value, reference.Tensor):
            return self.known.setdefault(id(value), self.tensor(value))
        if isinstance(value, dict):
            return {key: self(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(self(item) for item in value)
        return value

    def tensor(self, value: Any) -> Any:
        if value.is_sparse:
            return flambeau.zeros(*value.shape, layout=flambeau.sparse_coo)
        made = flambeau.tensor(value.detach().numpy())
        return made.requires_grad_(value.requires_grad)


def test_the_inputs_of_the_optimizer_database() -> None:
    inputs = entry().optim_inputs_func("cpu")
    assert len(inputs) >= 4
    for sample in inputs:
        ours = trained(flambeau, "SparseAdam", Translation()(sample.kwargs), 5)
        theirs = trained(reference, "SparseAdam", sample.kwargs, 5)
        assert_same(plain(ours[0]), plain(theirs[0]), rtol=1e-5)
        states = [[list(e.items()) for e in o.state_dict()["state"].values()]
                  for _, o in (ours, theirs)]  # fmt: skip
        assert_same(*map(plain, states), rtol=1e-5)


def test_the_error_inputs_of_the_optimizer_database() -> None:
    def attempt(library: Any, sample: Any, change: Any) -> Any:
        params, kwargs = change(sample.params), change(sample.kwargs)
        if params is None:
            params = [library.nn.Parameter(library.ones(2, 3))]
        library.optim.SparseAdam(params, **kwargs)

    samples = entry().optim_error_inputs_func("cpu", reference.float32)
    assert len(samples) >= 4
    for sample in samples:
        expected = pytest.warns if issubclass(sample.error_type, Warning) else pytest.raises
        with expected(sample.error_type, match=sample.error_regex):
            attempt(flambeau, sample.optimizer_error_input, Translation())
        if expected is pytest.warns:
            continue
        ours = outcome(attempt, flambeau, sample.optimizer_error_input, Translation())
        theirs = outcome(attempt, reference, sample.optimizer_error_input, lambda value: value)
        assert ours == theirs
