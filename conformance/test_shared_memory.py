"""Shared memory beside PyTorch's: what is shared after what, and what is refused."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from conformance.side_by_side import attempt, compare


def test_what_moves() -> None:
    def scenario(t: Any) -> Any:
        base = t.arange(12.0).view(3, 4)
        views = [base[1:], base.t(), base.detach(), base.view(-1)[2:]]
        found = [base.is_shared(), views[0].share_memory_() is views[0], base.is_shared()]
        found += [view.is_shared() for view in views]
        base[1, 0] = 40
        made = (base.clone(), base + 1, copy.deepcopy(base), base[0], t.zeros(0).share_memory_())
        found += [x.is_shared() for x in made]
        return [*found, *views, base._version, base.untyped_storage().resizable()]

    compare(scenario)


def test_modules_and_optimizers() -> None:
    def scenario(t: Any) -> Any:
        model = t.nn.Sequential(t.nn.Linear(2, 2), t.nn.BatchNorm1d(2), t.nn.LSTM(2, 2))
        parameters = list(model.parameters())
        optimizer = t.optim.Adagrad(parameters)
        optimizer.share_memory()
        found = [model.share_memory() is model, list(model.parameters())[0] is parameters[0]]
        found += [p.is_shared() for p in (*model.parameters(), *model.buffers())]
        sums = [entry["sum"].is_shared() for entry in optimizer.state.values()]
        model[0](t.ones(3, 2)).sum().backward()
        optimizer.step()
        return [*found, *sums, model[0].weight.is_shared(), model[0].bias]

    compare(scenario)


@pytest.mark.filterwarnings("ignore")
def test_storages_files_and_refusals(tmp_path: Path) -> None:
    def scenario(t: Any) -> Any:
        name = str(tmp_path / t.__name__)
        first = t.from_file(name, shared=True, size=4)
        first.fill_(3.0)
        second = t.from_file(name, shared=False, size=4)
        second.fill_(9.0)
        found = [first, second, first.is_shared(), first.untyped_storage().filename == name]
        storages = [t.UntypedStorage.from_file(name, shared, 8) for shared in (True, False)]
        found += [(s.nbytes(), s.filename == name) for s in storages]
        found += [t.UntypedStorage._new_shared(8).is_shared(), second.share_memory_().is_shared()]
        sparse = t.eye(2).to_sparse()
        found += [attempt(sparse.is_shared), attempt(sparse.share_memory_)]
        return found

    compare(scenario)
