"""What of the library's own classes shows: the names of errors and types."""

from __future__ import annotations

import copy
import pickle
from functools import partial
from typing import Any

NAMES = ("Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "ASGD", "Muon", "NAdam",
         "RAdam", "RMSprop", "Rprop", "SGD", "SparseAdam", "LBFGS")  # fmt: skip


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
    for name in NAMES:
        optimizer = getattr(torch.optim, name)([torch.ones(2, 2)])
        optimizer.register_step_pre_hook(lambda *_: 5)
        message = str(_raised(partial(optimizer.step, lambda: torch.ones(()))))
        seen.append((message.partition(" at ")[0], type(optimizer).step.__qualname__))
    return seen


def options_that_old_checkpoints_lack(torch: Any) -> Any:
    """Loading, copying and unpickling fill in what was not there in the first releases."""
    seen = []
    for name in NAMES:
        made = getattr(torch.optim, name)
        for option in made([torch.ones(2, 2)]).defaults:
            optimizer = made([torch.ones(2, 2)])
            del optimizer.param_groups[0][option]
            group = copy.deepcopy(optimizer).param_groups[0]
            seen.append((name, option, option in group, group.get(option)))
            if option in group:
                optimizer.__setstate__(optimizer.__getstate__())
                seen.append(list(optimizer.param_groups[0]))
    return seen


def options_of_groups_that_come_later(torch: Any) -> Any:
    """After a state was taken over, `differentiable` is an option of all optimizers."""
    seen = []
    for name in NAMES:
        optimizer = getattr(torch.optim, name)([torch.ones(2, 2)])
        optimizer.load_state_dict(optimizer.state_dict())
        optimizer.add_param_group({"params": [torch.ones(3, 3)]})
        seen += [list(group) for group in optimizer.param_groups]
    return seen


def refusals_of_sparse_tensors(torch: Any) -> Any:
    sparse = torch.eye(2).to_sparse()
    calls = (partial(torch.clamp, sparse, 0, 1), partial(sparse.clone().clamp_, 0, 1),
             partial(torch.clamp, sparse, max=1))  # fmt: skip
    return [str(_raised(call)).partition(" backend.")[0] for call in calls]
