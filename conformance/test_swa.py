"""Averaged models, SWALR and update_bn: torch's numbers, files and words."""

from __future__ import annotations

import copy
import io
import pickle
import warnings
from typing import Any

import numpy as np
import pytest
import torch as reference

import flambeau

LIBRARIES = (flambeau, reference)
ROUNDS = 12


def model_of(library: Any, dtype: str = "float32", seed: int = 0) -> Any:
    """Layers with parameters, running statistics and a counter, with values from NumPy."""
    nn = library.nn
    model = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 2))
    model = model.to(getattr(library, dtype))
    change(library, model, np.random.default_rng(seed))
    return model


def change(library: Any, model: Any, rng: Any) -> None:
    """Random values for all parameters and for what a batch norm has seen."""
    with library.no_grad():
        for parameter in model.parameters():
            values = library.tensor(rng.normal(size=tuple(parameter.shape)))
            parameter.copy_(values)
        for name, buffer in model.named_buffers():
            if name.endswith("num_batches_tracked"):
                buffer.add_(7)
            else:
                buffer.copy_(library.tensor(rng.random(tuple(buffer.shape))))


def arrays(state: Any) -> dict[str, Any]:
    return {name: (str(value.dtype)[-7:], value.tolist()) for name, value in state.items()}


def ways(library: Any) -> dict[str, dict[str, Any]]:
    utils = library.optim.swa_utils
    return {
        "default": {},
        "swa": {"avg_fn": utils.get_swa_avg_fn()},
        "swa lists": {"multi_avg_fn": utils.get_swa_multi_avg_fn()},
        "ema": {"avg_fn": utils.get_ema_avg_fn(0.9)},
        "ema lists": {"multi_avg_fn": utils.get_ema_multi_avg_fn(0.9)},
        "ema lists, quick": {"multi_avg_fn": utils.get_ema_multi_avg_fn(0.3)},
        "own": {"avg_fn": lambda average, current, count: average * 0.5 + current * count},
        "default, buffers": {"use_buffers": True},
        "ema, buffers": {"avg_fn": utils.get_ema_avg_fn(0.9), "use_buffers": True},
        "ema lists, buffers": {
            "multi_avg_fn": utils.get_ema_multi_avg_fn(0.9), "use_buffers": True,
        },
    }  # fmt: skip


def averaged(library: Any, way: str, dtype: str) -> tuple[Any, Any]:
    model = model_of(library, dtype)
    return model, library.optim.swa_utils.AveragedModel(model, **ways(library)[way])


def updated(library: Any, model: Any, average: Any, seed: int, rounds: int) -> list[Any]:
    rng, found = np.random.default_rng(seed), []
    for _ in range(rounds):
        change(library, model, rng)
        average.update_parameters(model)
        found.append(arrays(average.state_dict()))
    return found


def assert_same(ours: Any, theirs: Any, rtol: float) -> None:
    """The same names in the same order, dtypes, and numbers."""
    assert list(ours) == list(theirs)
    for name, (dtype, values) in theirs.items():
        assert ours[name][0] == dtype, name
        np.testing.assert_allclose(ours[name][1], values, rtol=rtol, atol=rtol, err_msg=name)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("way", ways(reference))
def test_updates(way: str, dtype: str) -> None:
    results = []
    for library in LIBRARIES:
        model, average = averaged(library, way, dtype)
        results.append(updated(library, model, average, 1, ROUNDS))
    for ours, theirs in zip(*results, strict=True):
        assert_same(ours, theirs, TOLERANCE[dtype])


TOLERANCE = {"float32": 1e-6, "float64": 1e-14, "float16": 2e-3, "bfloat16": 2e-2}


def test_outputs() -> None:
    results = []
    for library in LIBRARIES:
        model, average = averaged(library, "default", "float64")
        updated(library, model, average, 2, 5)
        average.eval()
        inputs = library.tensor(np.random.default_rng(3).normal(size=(6, 4)))
        results.append(average(inputs).detach().numpy())
    np.testing.assert_allclose(*results, rtol=1e-12)


DIRECTIONS = [(reference, flambeau), (flambeau, reference)]


def by_name(libraries: tuple[Any, Any]) -> str:
    return " to ".join(library.__name__ for library in libraries)


def through_a_file(writer: Any, reader: Any, value: Any, weights_only: bool = True) -> Any:
    file = io.BytesIO()
    writer.save(value, file)
    file.seek(0)
    return reader.load(file, weights_only=weights_only)


@pytest.mark.parametrize("direction", DIRECTIONS, ids=by_name)
@pytest.mark.parametrize("way", ["default", "ema lists, buffers"])
def test_a_checkpoint_goes_on_in_the_other(way: str, direction: tuple[Any, Any]) -> None:
    writer, reader = direction
    model, average = averaged(writer, way, "float64")
    updated(writer, model, average, 4, 5)
    other_model, taken = averaged(reader, way, "float64")
    state = through_a_file(writer, reader, average.state_dict())
    assert str(taken.load_state_dict(state)) == "<All keys matched successfully>"
    other_model.load_state_dict(through_a_file(writer, reader, model.state_dict()))
    further = (updated(writer, model, average, 5, 3), updated(reader, other_model, taken, 5, 3))
    for ours, theirs in zip(*further, strict=True):
        assert_same(ours, theirs, 1e-14)


@pytest.mark.parametrize("direction", DIRECTIONS, ids=by_name)
def test_a_whole_model_in_a_file(direction: tuple[Any, Any]) -> None:
    writer, reader = direction
    model, average = averaged(writer, "default", "float64")
    updated(writer, model, average, 6, 4)
    taken = through_a_file(writer, reader, average, weights_only=False)
    assert type(taken) is reader.optim.swa_utils.AveragedModel
    assert_same(arrays(taken.state_dict()), arrays(average.state_dict()), 0)
    taken.update_parameters(model_of(reader, "float64", seed=9))
    average.update_parameters(model_of(writer, "float64", seed=9))
    assert_same(arrays(taken.state_dict()), arrays(average.state_dict()), 1e-14)


def test_copies() -> None:
    model, average = averaged(flambeau, "default", "float64")
    updated(flambeau, model, average, 7, 3)
    for twin in (copy.deepcopy(average), pickle.loads(pickle.dumps(average))):
        twin.update_parameters(model)
        assert int(twin.n_averaged) == 4
        assert int(average.n_averaged) == 3


@pytest.mark.parametrize("name", ["get_ema_avg_fn", "get_swa_avg_fn"])
@pytest.mark.parametrize("dtype", ["float32", "int64", "complex64"])
@pytest.mark.parametrize("count", [3, "tensor"])
def test_one_average(name: str, dtype: str, count: Any) -> None:
    results = []
    for library in LIBRARIES:
        average, current = pair_of(library, dtype)
        number = library.tensor(3) if count == "tensor" else count
        found = getattr(library.optim.swa_utils, name)()(average, current, number)
        results.append({"found": (str(found.dtype)[-7:], found.tolist())})
    assert_same(*results, 1e-6)


def pair_of(library: Any, dtype: str) -> list[Any]:
    rng = np.random.default_rng(8)
    return [library.tensor(rng.normal(size=(3, 2)) * 9).to(getattr(library, dtype))
            for _ in range(2)]  # fmt: skip


@pytest.mark.parametrize("name", ["get_ema_multi_avg_fn", "get_swa_multi_avg_fn"])
@pytest.mark.parametrize("dtype", ["float32", "int64", "complex64"])
@pytest.mark.parametrize("count", [3, "tensor"])
def test_lists(name: str, dtype: str, count: Any) -> None:
    """In place; means of whole numbers are refused, in torch's words."""
    results = []
    for library in LIBRARIES:
        first, second = pair_of(library, dtype)
        averages, currents = [first.clone(), first * 2], [second, second]
        number = library.tensor(3) if count == "tensor" else count
        try:
            getattr(library.optim.swa_utils, name)()(averages, currents, number)
        except RuntimeError as error:
            results.append({"error": ("", str(error))})
            continue
        results.append({"found": (str(averages[0].dtype)[-7:], [a.tolist() for a in averages])})
    if "error" in results[1]:
        assert results[0] == results[1]
    else:
        assert_same(*results, 1e-6)


def test_lists_hold_one_dtype() -> None:
    """A function for lists is called once for each dtype and device."""
    results = []
    for library in LIBRARIES:
        calls: list[Any] = []

        def note(averages: Any, currents: Any, count: Any, calls: Any = calls) -> None:
            shapes = [tuple(tensor.shape) for tensor in averages]
            calls.append((str(averages[0].dtype)[-7:], shapes, len(currents), int(count)))

        model = model_of(library)
        model[3].to(library.float64)
        average = library.optim.swa_utils.AveragedModel(model, multi_avg_fn=note)
        average.update_parameters(model)
        average.update_parameters(model)
        results.append(sorted(calls))
    assert results[0] == results[1]


# ---- batch norms


@pytest.mark.parametrize("kind", ["tensors", "lists"])
@pytest.mark.parametrize("training", [True, False])
def test_update_bn(kind: str, training: bool) -> None:
    results = []
    for library in LIBRARIES:
        model = model_of(library, "float64").train(training)
        model[1].momentum = 0.25
        rng = np.random.default_rng(11)
        batches = [library.tensor(rng.normal(size=(8, 4)) + 3) for _ in range(6)]
        loader = [[batch, None] for batch in batches] if kind == "lists" else batches
        library.optim.swa_utils.update_bn(loader, model, device="cpu")
        kept = model[1].momentum, model.training, model[1].training
        results.append((arrays(model.state_dict()), kept))
    assert_same(results[0][0], results[1][0], 1e-12)
    assert results[0][1] == results[1][1]


def test_models_without_batch_norms_are_not_run() -> None:
    for library in LIBRARIES:
        library.optim.swa_utils.update_bn(iter(()), library.nn.Linear(2, 2))
        library.optim.swa_utils.update_bn([None], library.nn.Linear(2, 2))


# ---- rates


def optimizer_of(library: Any, tensors: bool = False) -> Any:
    params = [library.ones(2, requires_grad=True), library.ones(1, requires_grad=True)]
    for parameter in params:
        parameter.grad = library.ones_like(parameter)
    rates = [library.tensor(rate) if tensors else rate for rate in (0.3, 0.7)]
    groups = [{"params": params[:1], "lr": rates[0]}, {"params": params[1:]}]
    return library.optim.Adam(groups, lr=rates[1])


RATES: list[dict[str, Any]] = [
    {"swa_lr": 0.05},
    {"swa_lr": [0.05, 0.1], "anneal_epochs": 7},
    {"swa_lr": 0.9, "anneal_strategy": "linear"},
    {"swa_lr": 0.01, "anneal_epochs": 0},
    {"swa_lr": 0.01, "anneal_epochs": 1, "anneal_strategy": "linear"},
    {"swa_lr": (0.02, 0.03), "anneal_epochs": 33},
]


def state_of(scheduler: Any, optimizer: Any) -> Any:
    rates = [float(group["lr"]) for group in optimizer.param_groups]
    state = {key: [float(rate) for rate in value] if key in ("base_lrs", "_last_lr") else value
             for key, value in scheduler.state_dict().items()}  # fmt: skip
    return rates, [float(rate) for rate in scheduler.get_last_lr()], list(state), state


@pytest.mark.parametrize("tensors", [False, True])
@pytest.mark.parametrize("options", RATES, ids=str)
def test_rates(options: dict[str, Any], tensors: bool) -> None:
    results = []
    for library in LIBRARIES:
        optimizer = optimizer_of(library, tensors)
        scheduler = library.optim.swa_utils.SWALR(optimizer, **options)
        found = [state_of(scheduler, optimizer)]
        for _ in range(60):
            optimizer.step()
            scheduler.step()
            found.append(state_of(scheduler, optimizer))
        results.append(found)
    assert results[0] == results[1]


def test_after_another_schedule() -> None:
    results = []
    for library in LIBRARIES:
        optimizer, found = optimizer_of(library), []
        first = library.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=40)
        second = library.optim.swa_utils.SWALR(optimizer, 0.05, anneal_epochs=6)
        for epoch in range(60):
            optimizer.step()
            (second if epoch > 20 else first).step()
            found.append(state_of(second, optimizer))
        results.append(found)
    assert results[0] == results[1]


@pytest.mark.parametrize("direction", DIRECTIONS, ids=by_name)
@pytest.mark.parametrize("options", RATES, ids=str)
def test_rates_go_on_in_the_other(options: dict[str, Any], direction: tuple[Any, Any]) -> None:
    writer, reader = direction
    optimizer = optimizer_of(writer)
    scheduler = writer.optim.swa_utils.SWALR(optimizer, **options)
    for _ in range(4):
        optimizer.step()
        scheduler.step()
    saved = {"optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict()}
    state = through_a_file(writer, reader, saved)
    taken = optimizer_of(reader)
    follower = reader.optim.swa_utils.SWALR(taken, **options)
    follower.load_state_dict(state["scheduler"])
    taken.load_state_dict(state["optimizer"])
    whole = through_a_file(writer, reader, scheduler, weights_only=False)
    assert type(whole) is reader.optim.swa_utils.SWALR
    for _ in range(50):
        for stepper in (optimizer, taken, whole.optimizer):
            stepper.step()
        for each in (scheduler, follower):
            each.step()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            whole.step()
        expected = state_of(scheduler, optimizer)
        assert state_of(follower, taken) == expected
        assert state_of(whole, whole.optimizer) == expected


# ---- words


def make_rates(library: Any, *arguments: Any, **options: Any) -> Any:
    return library.optim.swa_utils.SWALR(optimizer_of(library), *arguments, **options)


WORDS: dict[str, Any] = {
    "decay of 2": lambda t: t.optim.swa_utils.get_ema_avg_fn(2),
    "decay below 0": lambda t: t.optim.swa_utils.get_ema_multi_avg_fn(-0.5),
    "two functions": lambda t: t.optim.swa_utils.AveragedModel(
        t.nn.Linear(1, 1), avg_fn=max, multi_avg_fn=max
    ),
    "buffers that do not match": lambda t: t.optim.swa_utils.AveragedModel(
        t.nn.BatchNorm1d(2)
    ).update_parameters(t.nn.Linear(2, 2)),
    "shapes that do not match": lambda t: t.optim.swa_utils.AveragedModel(
        t.nn.Linear(2, 3)
    ).update_parameters(t.nn.Linear(4, 3)),
    "an unknown strategy": lambda t: make_rates(t, 0.1, anneal_strategy="square"),
    "epochs below 0": lambda t: make_rates(t, 0.1, anneal_epochs=-1),
    "half an epoch": lambda t: make_rates(t, 0.1, anneal_epochs=0.5),
    "many rates": lambda t: make_rates(t, [0.1] * 3),
    "rates asked for": lambda t: make_rates(t, 0.1).get_lr(),
}  # fmt: skip


@pytest.mark.parametrize("name", WORDS)
def test_words(name: str) -> None:
    results = []
    for library in LIBRARIES:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                result = str(type(WORDS[name](library)))
            except Exception as error:
                result = type(error).__name__, str(error)
        results.append((result, [str(item.message) for item in caught]))
    assert results[0] == results[1]
