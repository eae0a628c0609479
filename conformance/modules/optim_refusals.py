"""A step that is refused leaves parameters, state and counters as PyTorch leaves them."""

from __future__ import annotations

import warnings
from typing import Any

NAMES = ("Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop",
         "Rprop", "SGD", "Adafactor", "Muon", "SparseAdam")  # fmt: skip
MOMENTA = {"SGD": {"momentum": 0.9}, "RMSprop": {"momentum": 0.5, "centered": True}}


def _outcome(call: Any, *values: Any, **options: Any) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of sparse tensors, once per process
            return call(*values, **options)
    except Exception as error:
        return type(error).__name__, str(error).split("\n")[0]


def _made(torch: Any, name: str, count: int = 3, **options: Any) -> Any:
    params = [torch.full((2, 2), float(number + 1)) for number in range(count)]
    return params, getattr(torch.optim, name)(params, **{**MOMENTA.get(name, {}), **options})


def _seen(params: Any, optimizer: Any) -> Any:
    state = optimizer.state_dict()["state"]
    dense = {
        number: {key: value.to_dense() if key == "momentum_buffer" else value
                 for key, value in kept.items()}
        for number, kept in state.items()
    }  # fmt: skip
    return [p.detach() for p in params], dense


def _filled(params: Any, torch: Any) -> None:
    for parameter in params:
        parameter.grad = torch.full_like(parameter, 0.5)


def layouts(torch: Any) -> Any:
    """The second gradient is of the layout that the optimizer is not for."""
    seen = []
    for name in NAMES:
        params, optimizer = _made(torch, name)
        for number, parameter in enumerate(params):
            grad = torch.full((2, 2), 0.5)
            is_sparse = (number == 1) != (name == "SparseAdam")
            parameter.grad = grad.to_sparse() if is_sparse else grad
        seen += [_outcome(optimizer.step), _seen(params, optimizer)]
    return seen


def sparse_with_weight_decay(torch: Any) -> Any:
    seen = []
    for name in ("SGD", "Adagrad"):
        for foreach in (None, False):
            params, optimizer = _made(torch, name, weight_decay=0.1, foreach=foreach)
            _filled(params, torch)
            params[1].grad = params[1].grad.to_sparse()
            seen += [_outcome(optimizer.step), _seen(params, optimizer)]
    return seen


def complex_parameters(torch: Any) -> Any:
    seen = []
    for name in ("Adafactor", "Muon"):
        params, optimizer = _made(torch, name)
        params[1].data = params[1].data.to(torch.complex64)
        _filled(params, torch)
        seen += [_outcome(optimizer.step), [p.real for p in params[::2]]]
        seen.append(list(optimizer.state_dict()["state"]))
    return seen


def kinds(torch: Any) -> Any:
    """Steps for graphs, and gradients through steps over lists."""
    asked = ({"capturable": True}, {"differentiable": True},
             {"capturable": True, "differentiable": True})  # fmt: skip
    seen = []
    for name in NAMES[:11]:
        for options in asked:
            for foreach in (None, False, True):
                made = _outcome(_made, torch, name, foreach=foreach, **options)
                if isinstance(made[0], str):
                    seen.append((made[0], made[1].partition("(")[0]))
                    continue
                params, optimizer = made
                seen.append(_outcome(optimizer.step))
                _filled(params, torch)
                seen += [_outcome(optimizer.step), _seen(params, optimizer)]
    return seen


def rates_for_lists(torch: Any) -> Any:
    params, optimizer = _made(torch, "Adam", foreach=True)
    optimizer.param_groups[0]["lr"] = torch.tensor(0.1)
    _filled(params, torch)
    return _outcome(optimizer.step), _seen(params, optimizer)


def other_types(torch: Any) -> Any:
    """A parameter is given memory of another type after its first step."""
    seen = []
    for name in NAMES[:13]:
        for dtype in (torch.float64, torch.bfloat16):
            params, optimizer = _made(torch, name)
            _filled(params, torch)
            optimizer.step()
            params[1].data = params[1].data.to(dtype)
            params[1].grad = None
            _filled(params, torch)
            seen += [_outcome(optimizer.step), [p.dtype == dtype for p in params]]
            kept = optimizer.state_dict()["state"].values()
            seen.append([float(state["step"]) for state in kept if "step" in state])
    return seen


def other_shapes(torch: Any) -> Any:
    seen = []
    for name in NAMES[:11]:
        for shape in ((4,), (3, 2), (1, 2, 2)):
            params, optimizer = _made(torch, name)
            _filled(params, torch)
            optimizer.step()
            params[1].data = torch.ones(shape)
            params[1].grad = None
            _filled(params, torch)
            seen.append(_outcome(optimizer.step)[0] is not None)
            seen.append([list(p.shape) for p in params])
    return seen


def options_that_were_deleted(torch: Any) -> Any:
    seen = []
    for name in NAMES:
        for option in ("lr", "maximize", "weight_decay"):
            params, optimizer = _made(torch, name)
            if option not in optimizer.param_groups[0] or name in ("Rprop", "SparseAdam"):
                continue
            del optimizer.param_groups[0][option]
            _filled(params, torch)
            seen += [_outcome(optimizer.step), params, len(optimizer.state)]
    return seen


def state_that_was_deleted(torch: Any) -> Any:
    seen = []
    for name in NAMES[:11]:
        params, optimizer = _made(torch, name)
        _filled(params, torch)
        optimizer.step()
        for key in list(optimizer.state[params[1]]):
            kept = optimizer.state[params[1]].pop(key)
            if optimizer.state[params[1]]:
                seen += [_outcome(optimizer.step), _seen(params, optimizer)[0]]
            optimizer.state[params[1]][key] = kept
    return seen


def options_that_need_more_state(torch: Any) -> Any:
    """Switched on they miss it, switched off they leave it alone."""
    seen = []
    for name, option, on in (("Adam", "amsgrad", True), ("RMSprop", "momentum", 0.9),
                             ("RMSprop", "centered", True)):  # fmt: skip
        for first in (True, False):
            parameter = torch.full((2,), 3.0)
            chosen = {option: on if first else 0}
            optimizer = getattr(torch.optim, name)([parameter], lr=0.1, **chosen)
            for step in (1, 2, 3):
                parameter.grad = torch.tensor([1.0, -2.0]) / step
                optimizer.step()
            optimizer.param_groups[0][option] = 0 if first else on
            parameter.grad = torch.tensor([0.1, 0.1])
            seen += [_outcome(optimizer.step), parameter, optimizer.state_dict()["state"]]
    return seen


def closures_that_raise(torch: Any) -> Any:
    seen = []
    for name in (*NAMES, "LBFGS"):
        params, optimizer = _made(torch, name)
        _filled(params, torch)
        seen += [_outcome(optimizer.step, lambda: 1 / 0), torch.is_grad_enabled()]
        seen.append(params)
    return seen


def fused_groups_with_gradients(torch: Any) -> Any:
    """A group may ask for what the whole optimizer may not."""
    seen = []
    for name in ("Adam", "AdamW", "Adagrad"):
        for asked in ({"differentiable": True}, {"differentiable": True, "foreach": True}):
            parameter = torch.ones(2)
            groups = [{"params": [parameter], **asked}]
            optimizer = getattr(torch.optim, name)(groups, fused=True)
            seen.append(_outcome(optimizer.step))
            _filled([parameter], torch)
            seen += [_outcome(optimizer.step), parameter]
    return seen


def nothing_is_divided_before_state_is_looked_at(torch: Any) -> Any:
    parameter = torch.ones(2)
    optimizer = torch.optim.Adam([parameter], fused=True)
    _filled([parameter], torch)
    optimizer.step()
    del optimizer.state[parameter]["exp_avg_sq"]
    optimizer.grad_scale = torch.tensor(2.0)
    return _outcome(optimizer.step), parameter, parameter.grad
