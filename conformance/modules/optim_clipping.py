"""Clipping: what is refused, in which order, and what has been clipped by then."""

from __future__ import annotations

from typing import Any

INF, NAN = float("inf"), float("nan")


def _with_grads(torch: Any, *grads: Any) -> Any:
    params = []
    for grad in grads:
        parameter = torch.zeros(2) if grad is None else torch.zeros_like(grad)
        parameter.grad = None if grad is None else grad.clone()
        params.append(parameter)
    return params


def _kinds(torch: Any) -> Any:
    dense = torch.tensor([3.0, -4.0])
    return {
        "plain": (dense, torch.tensor([1.0])), "none": (None, dense), "all none": (None, None),
        "nan": (dense, torch.tensor([NAN])), "inf": (torch.tensor([INF]), dense),
        "types": (dense, dense.double(), dense.bfloat16()), "half": (dense.half(),),
        "complex first": (dense.to(torch.complex64), dense),
        "complex last": (dense, dense.to(torch.complex64), dense.double()),
        "empty": (torch.zeros(0), dense), "nothing": (),
    }  # fmt: skip


def _called(call: Any, params: Any, *values: Any, **options: Any) -> Any:
    try:
        found = call(params, *values, **options)
    except Exception as error:
        found = type(error).__name__, str(error)
    return found, [parameter.grad for parameter in params]


def by_value(torch: Any) -> Any:
    clip = torch.nn.utils.clip_grad_value_
    return [
        (name, value, foreach, _called(clip, params, value, foreach=foreach))
        for name, grads in _kinds(torch).items()
        for value in (1.0, 2, 0.0, -1.0, NAN, INF, "1", "x")
        for foreach in (None, True, False)
        for params in (_with_grads(torch, *grads),)
    ]


def by_value_from_an_iterator(torch: Any) -> Any:
    clip = torch.nn.utils.clip_grad_value_
    params = _with_grads(torch, torch.tensor([3.0]), None, torch.tensor([-3.0]))
    clip((p for p in params), 1.0)
    one = _with_grads(torch, torch.tensor([3.0]))[0]
    clip(one, 2.0)
    return [p.grad for p in params], one.grad, _called(lambda ps: clip((p for p in ps), 1.0), [])


def by_norm(torch: Any) -> Any:
    clip = torch.nn.utils.clip_grad_norm_
    return [
        (name, most, kind, strict, foreach,
         _called(clip, params, most, kind, strict, foreach))
        for name, grads in _kinds(torch).items()
        for most in (1.0, 0.0, INF, "1", "x")
        for kind in (2.0, 1, INF, "inf", 0, 0.5)
        for strict in (False, True)
        for foreach in (None, True, False)
        for params in (_with_grads(torch, *grads),)
    ]  # fmt: skip


def empty_iterators(torch: Any) -> Any:
    clip = torch.nn.utils.clip_grad_norm_
    return [clip(given, 1.0) for given in ((p for p in ()), [], ())]


def norms_of_lists(torch: Any) -> Any:
    total = torch.nn.utils.get_total_norm
    one = torch.tensor([3.0, 4.0])
    lists = ([], [one], [one, one.double()], [one, None], [None, one], one)
    seen = []
    for given in lists:
        try:
            seen.append(total(given))
        except Exception as error:
            seen.append((type(error).__name__, str(error)))
    return seen


def with_a_norm_that_is_known(torch: Any) -> Any:
    clip = torch.nn.utils.clip_grads_with_norm_
    norms = (torch.tensor(10.0), torch.tensor(NAN), torch.tensor([2.0, 4.0]), torch.tensor([2.0]))
    return [
        _called(clip, params, 1.0, norm, foreach)
        for norm in norms
        for foreach in (None, True, False)
        for params in (_with_grads(torch, torch.tensor([3.0, 4.0])),)
    ]
