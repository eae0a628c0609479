"""Memory that processes share: moved with all its views, seen by children, sent by queues."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
import tempfile
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

import pytest

import flambeau as torch
import flambeau.multiprocessing as mp

METHODS = [m for m in ("fork", "spawn") if m in multiprocessing.get_all_start_methods()]


def test_views_of_every_kind_move_along() -> None:
    base = torch.arange(12.0).view(3, 4)
    rows, turned, bare, alias = base[1:], base.t(), base.detach(), base.view(-1)[2:]
    assert not base.is_shared()
    assert rows.share_memory_() is rows
    for x in (base, rows, turned, bare, alias, base.untyped_storage(), base[0]):
        assert x.is_shared()
    base[1, 0] = 40
    assert [rows[0, 0], turned[0, 1], bare[1, 0], alias[2]] == [40] * 4
    place = base.data_ptr()
    assert base.share_memory_().data_ptr() == place
    assert rows.data_ptr() == place + 16


def test_copies_do_not_share() -> None:
    x = torch.ones(3).share_memory_()
    copies = (x.clone(), x + 1, copy.deepcopy(x), pickle.loads(pickle.dumps(x)))
    assert not any(c.is_shared() for c in copies)


def test_what_is_empty_offset_or_learns() -> None:
    assert torch.ones(0).share_memory_().is_shared()
    x = torch.ones(2, requires_grad=True).share_memory_()
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3, 3]
    assert x.is_leaf
    assert torch.arange(5)[1:3].share_memory_().tolist() == [1, 2]


def test_a_graph_that_has_saved_the_memory_still_works() -> None:
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    y = x * x
    x.share_memory_()
    y.sum().backward()
    assert x.grad.tolist() == [4, 6]


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_storages() -> None:
    storage = torch.ones(2).untyped_storage()
    assert storage.share_memory_() is storage
    assert storage.is_shared()
    assert torch.UntypedStorage._new_shared(8).nbytes() == 8
    assert torch.TypedStorage([1.0], dtype=torch.float32).share_memory_().is_shared()


def write_weights(model: Any, number: Any) -> None:
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(7.0)
    number[1] += 1


@pytest.mark.parametrize("method", METHODS)
def test_children_write_to_shared_modules(method: str) -> None:
    model, number = torch.nn.Linear(2, 2).share_memory(), torch.zeros(2).share_memory_()
    child = mp.get_context(method).Process(target=write_weights, args=(model, number))
    child.start()
    child.join()
    assert child.exitcode == 0
    assert model.weight.tolist() == [[7, 7], [7, 7]]
    assert number.tolist() == [0, 1]
    torch.optim.SGD(model.parameters(), lr=1.0).step()
    assert model.weight.is_shared()


def answer(questions: Any, answers: Any) -> None:
    whole, part, weight = (questions.get() for _ in range(3))
    whole.fill_(5)
    same = part.data_ptr() == whole.data_ptr() + 8
    answers.put((whole.is_shared(), same, type(weight).__name__, weight.requires_grad))
    answers.put(torch.arange(4).view(2, 2).t())
    questions.get()


@pytest.mark.parametrize("method", METHODS)
def test_queues_hand_on_memory(method: str) -> None:
    context: Any = mp.get_context(method)
    questions, answers = context.Queue(), context.Queue()
    child = context.Process(target=answer, args=(questions, answers))
    child.start()
    whole = torch.ones(4, dtype=torch.float64).share_memory_()
    for each in (whole, whole[1:3], torch.nn.Parameter(torch.ones(2))):
        questions.put(each)
    assert answers.get(timeout=60) == (True, True, "Parameter", True)
    assert whole.tolist() == [5] * 4
    turned = answers.get(timeout=60)
    assert turned.tolist() == [[0, 2], [1, 3]]
    assert turned.stride() == (1, 2)
    questions.put(None)
    child.join()


def test_what_has_a_history_is_not_sent() -> None:
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor"):
        ForkingPickler.dumps(torch.ones(2, requires_grad=True) * 2)


def raises(index: int) -> None:
    if index == 1:
        raise ValueError("in the second")


def leaves(index: int) -> None:
    raise SystemExit(3)


def test_spawn_says_who_failed_and_how() -> None:
    with pytest.raises(mp.ProcessRaisedException, match="Process 1 terminated .*") as caught:
        mp.start_processes(raises, nprocs=2, start_method=METHODS[0])
    assert caught.value.error_index == 1
    assert "ValueError: in the second" in str(caught.value)
    with pytest.raises(mp.ProcessExitedException, match="process 0 terminated with exit code 3"):
        mp.start_processes(leaves, start_method=METHODS[0])
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.msg, again.pid) == (caught.value.msg, caught.value.pid)


def test_spawn_leaves_no_file_behind_when_a_process_cannot_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises((pickle.PicklingError, AttributeError, TypeError)):
        mp.spawn(lambda index: index)
    assert list(tmp_path.iterdir()) == []


def test_strategies() -> None:
    assert mp.get_sharing_strategy() in mp.get_all_sharing_strategies()
    with pytest.raises(AssertionError, match="invalid sharing strategy 'mail'"):
        mp.set_sharing_strategy("mail")
