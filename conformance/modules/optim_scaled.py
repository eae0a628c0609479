"""`grad_scale` and `found_inf`, as a GradScaler gives them to optimizers."""

from __future__ import annotations

from typing import Any

FUSED = (
    ("SGD", {}),
    ("SGD", {"weight_decay": 0.1, "maximize": True}),
    ("Adam", {"amsgrad": True}),
    ("AdamW", {}),
    ("Adagrad", {"lr_decay": 0.1}),
)


def _stepped(
    torch: Any, name: str, options: dict[str, Any], dtype: Any = None, **given: Any
) -> Any:
    """Two steps with the attributes given; one parameter has no gradient."""
    params = [torch.ones(3, dtype=dtype), torch.ones(2, 5, dtype=dtype), torch.ones(1, dtype=dtype)]
    optimizer = getattr(torch.optim, name)(params, lr=0.25, **options)
    for key, value in given.items():
        setattr(optimizer, key, value)
    seen = []
    for step in (1, 2):
        params[0].grad = torch.arange(3).to(params[0].dtype) * step
        params[1].grad = torch.arange(10).reshape(2, 5).to(params[0].dtype) - step
        seen += [_outcome(optimizer.step), params, [p.grad for p in params]]
    return seen, optimizer.state_dict()["state"]


def _outcome(call: Any) -> Any:
    try:
        return call()
    except Exception as error:
        return type(error).__name__, str(error)


def gradients_are_divided(torch: Any) -> Any:
    scales = (torch.tensor(4.0), torch.tensor([3.0]), torch.tensor(float("inf")))
    return [
        _stepped(torch, name, {**options, "fused": True}, grad_scale=scale)
        for name, options in FUSED
        for scale in scales
    ]


def with_momentum(torch: Any) -> Any:
    options = {"momentum": 0.9, "nesterov": True, "fused": True}
    return _stepped(torch, "SGD", options, grad_scale=torch.tensor(2.0),
                    found_inf=torch.tensor(0.0))  # fmt: skip


def in_double(torch: Any) -> Any:
    return [
        _stepped(torch, name, {**options, "fused": True}, torch.float64,
                 grad_scale=torch.tensor(3.0))
        for name, options in FUSED
    ]  # fmt: skip


def halves_are_divided_before_they_are_rounded(torch: Any) -> Any:
    seen = []
    for name in ("Adam", "Adagrad"):
        for dtype in (torch.bfloat16, torch.float16):
            seen.append(_stepped(torch, name, {"fused": True}, dtype, grad_scale=torch.tensor(3.0)))
    return seen


def infinite_gradients_leave_the_step_out(torch: Any) -> Any:
    return [
        _stepped(torch, name, {**options, "fused": True}, grad_scale=torch.tensor(4.0),
                 found_inf=torch.tensor(found))
        for name, options in FUSED
        for found in (0.0, 1.0)
    ]  # fmt: skip


def only_fused_steps_take_them(torch: Any) -> Any:
    return [
        _stepped(torch, name, {"fused": fused, "foreach": foreach}, grad_scale=torch.tensor(4.0),
                 found_inf=torch.tensor(1.0))
        for name in ("SGD", "Adam", "AdamW", "Adagrad")
        for fused, foreach in ((False, True), (False, False), (None, None))
    ]  # fmt: skip


def adafactor_wants_gradients_unscaled(torch: Any) -> Any:
    return _stepped(torch, "Adafactor", {}, grad_scale=torch.tensor(4.0))


def others_do_not_look(torch: Any) -> Any:
    return _stepped(torch, "RMSprop", {}, grad_scale=torch.tensor(4.0))


def a_group_may_become_fused(torch: Any) -> Any:
    weight = torch.ones(2)
    weight.grad = torch.full((2,), 4.0)
    optimizer = torch.optim.SGD([weight], lr=0.5)
    optimizer.param_groups[0]["fused"] = True
    optimizer.grad_scale = torch.tensor(2.0)
    optimizer.step()
    return weight, weight.grad


def scales_are_float32(torch: Any) -> Any:
    kinds = (torch.float64, torch.float16, torch.int64, torch.bool)
    return [
        _stepped(torch, "SGD", {"fused": True}, **{name: torch.ones((), dtype=kind)})
        for kind in kinds
        for name in ("grad_scale", "found_inf")
    ]


def who_says_to_take_them(torch: Any) -> Any:
    def says(optimizer: Any) -> Any:
        return getattr(optimizer, "_step_supports_amp_scaling", None)

    seen = []
    for name in ("SGD", "Adam", "AdamW", "Adagrad"):
        made = getattr(torch.optim, name)
        fused, plain = made([torch.ones(1)], fused=True), made([torch.ones(1)])
        seen += [says(fused), says(plain)]
        plain.load_state_dict(fused.state_dict())
        seen += [says(plain), plain.param_groups[0]["fused"]]
    return seen


def other_types_are_refused(torch: Any) -> Any:
    seen = []
    for name in ("SGD", "Adam", "Adagrad"):
        for dtypes in ((torch.complex64, torch.float32), (torch.float32, torch.complex64)):
            params = [torch.ones(2, dtype=dtype) for dtype in dtypes]
            optimizer = getattr(torch.optim, name)(params, fused=True)
            for parameter in params:
                parameter.grad = torch.ones_like(parameter)
            seen += [_outcome(optimizer.step), params, optimizer.state_dict()["state"]]
    return seen


def with_nothing_to_step(torch: Any) -> Any:
    seen = []
    for name in ("SGD", "Adam", "AdamW", "Adagrad"):
        for foreach in (None, False, True):
            optimizer = getattr(torch.optim, name)([torch.ones(1)], foreach=foreach)
            optimizer.found_inf = torch.tensor(1.0)
            seen.append(_outcome(optimizer.step))
    return seen
