"""What of the library's own classes shows: the names of errors and types."""

from __future__ import annotations

import pickle
from functools import partial
from typing import Any


def _raised(call: Any) -> Exception:
    try:
        call()
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def errors_of_sparse_tensors(torch: Any) -> Any:
    sparse = torch.eye(2).to_sparse()
    calls = (
        lambda: torch.add(sparse, torch.eye(2)),
        lambda: torch.linalg.svd(sparse),
        lambda: torch.nn.functional.gelu(sparse),
    )
    errors = [_raised(call) for call in calls]
    again = pickle.loads(pickle.dumps(errors[0]))  # noqa: S301
    return [type(error).__name__ for error in (*errors, again)], str(errors[0])


def sparse_tensors_are_tensors_by_name(torch: Any) -> Any:
    sparse = torch.eye(2).to_sparse()
    copy = pickle.loads(pickle.dumps(sparse))  # noqa: S301
    names = [type(value).__name__ for value in (sparse, copy, sparse.detach(), -sparse)]
    return names, type(sparse).__qualname__, copy.to_dense()


def optimizers_name_themselves(torch: Any) -> Any:
    seen = []
    names = ("Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "ASGD", "Muon", "NAdam",
             "RAdam", "RMSprop", "Rprop", "SGD", "SparseAdam", "LBFGS")  # fmt: skip
    for name in names:
        optimizer = getattr(torch.optim, name)([torch.ones(2, 2)])
        optimizer.register_step_pre_hook(lambda *_: 5)
        message = str(_raised(partial(optimizer.step, lambda: torch.ones(()))))
        seen.append((message.partition(" at ")[0], type(optimizer).step.__qualname__))
    return seen
