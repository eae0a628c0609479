"""Operators and arguments that no derivative is defined for; views that are not differentiable.

Each function is a scenario; `t` is the library.
"""

from __future__ import annotations

import warnings


def _learning(t, *shape):
    t.manual_seed(0)
    return (t.arange(shape[0] * shape[1]).double().reshape(shape).sin() + 2).requires_grad_()


def _history(results):
    """What is seen of results without derivative, and what their backward says."""
    tensors = [results] if hasattr(results, "grad_fn") else _flat(results)
    seen = []
    for tensor in tensors:
        node = tensor.grad_fn
        names = None if node is None else [type(n).__name__ for n, _ in node.next_functions]
        title = None if node is None else (node.name(), type(node).__name__)
        seen.append((tensor.requires_grad, tensor.is_leaf, title, names, _refusal(tensor)))
    return seen


def _flat(results):
    found = []
    for result in results:
        found += [result] if hasattr(result, "grad_fn") else list(result)
    return found


def _refusal(tensor):
    if not tensor.requires_grad:
        return None
    try:
        tensor.sum().backward()
    except RuntimeError as error:
        return str(error)
    return "taken"


def histograms(t):
    x = _learning(t, 3, 2)
    edges = t.tensor([0.0, 1.0, 3.0], dtype=t.float64)
    learning_edges = edges.clone().requires_grad_()
    weight = _learning(t, 1, 6).detach().reshape(3, 2).requires_grad_()
    results = [
        t.histogram(x, 3), t.histogram(x, edges), t.histogram(x.detach(), learning_edges),
        t.histogram(x.detach(), 3, weight=weight), t.histogram(x.detach(), 3),
        t.histogramdd(x, [2, 2]), t.histogramdd(x.detach(), [2, 2], weight=weight[:, 0]),
        t.histogramdd(x, [edges, learning_edges]),
    ]  # fmt: skip
    return [_history(result) for result in results], t.histc(x, 3).requires_grad


def counts(t):
    places = t.tensor([0, 1, 1])
    weight = _learning(t, 1, 3)[0]
    return _history(t.bincount(places, weight)), _history(t.bincount(places, weight.detach()))


def unique_elements(t):
    x = _learning(t, 3, 2)
    several = {"return_inverse": True, "return_counts": True}
    return [
        _history(result)
        for result in (
            t.unique(x), t.unique(x, **several), t.unique(x, dim=0), t.unique(x, dim=1, **several),
            t.unique_consecutive(x), t.unique_consecutive(x, **several),
            t.unique_consecutive(x, dim=0), x.unique(), x.detach().unique(),
        )
    ]  # fmt: skip


def unique_without_grad(t):
    x = _learning(t, 3, 2)
    with t.no_grad():
        return _history(t.unique(x)), _history(t.histogram(x, 2))


def indefinite_factors(t):
    a = _learning(t, 3, 3)
    a = (a + a.T).detach().requires_grad_()
    factors, pivots = t.linalg.ldl_factor(a)
    constant = t.linalg.ldl_factor(a.detach())
    b = _learning(t, 3, 3)
    return [
        _history((factors, pivots)), _history(t.linalg.ldl_factor_ex(a)),
        _history(t.linalg.ldl_solve(factors, pivots, b)),
        _history(t.linalg.ldl_solve(*constant, b)),
        _history(t.linalg.ldl_solve(*constant, b.detach())), _history(t.geqrf(a)),
    ]  # fmt: skip


def steps(t):
    x = _learning(t, 3, 2)
    return [
        _history(result)
        for result in (
            t.heaviside(x, x), t.heaviside(x.detach(), x), t.heaviside(x, x.detach()),
            t.floor_divide(x, 2.0), x // x, t.bernoulli(x, 0.5),
        )
    ]  # fmt: skip


def steps_in_place(t):
    x = _learning(t, 3, 2)
    target = t.zeros(3, 2, dtype=t.float64)
    part = x * 1
    part[1:].floor_divide_(2.0)
    return [
        _history((x * 1).heaviside_(x.detach())), _history(target.heaviside_(x)),
        _history((x * 1).floor_divide_(x)), part.grad_fn, _refusal(part),
    ]  # fmt: skip


def step_on_a_leaf(t):
    _learning(t, 3, 2).heaviside_(t.ones(3, 2, dtype=t.float64))


def some_arguments(t):
    x = _learning(t, 3, 2)
    other = x.detach()
    return [
        _history(result)
        for result in (
            t.igamma(x, x), t.igamma(x, other), t.igamma(other, x), t.igammac(x, other),
            t.special.zeta(x, other), t.special.zeta(other, x),
        )
    ]  # fmt: skip


def _refused(t, call):
    try:
        call()
    except RuntimeError as error:
        message = str(error)
    else:
        message = "taken"
    with t.no_grad():
        return message, call().requires_grad


def constants_of_losses(t):
    functional = t.nn.functional
    weight = _learning(t, 1, 3)[0]
    scores, probabilities = _learning(t, 4, 3), t.full((4, 3), 0.5, dtype=t.float64)
    classes = t.tensor([0, 1, 2, 1])
    images = scores.reshape(2, 2, 3, 1).transpose(1, 2)
    places = t.zeros(2, 2, 1, dtype=t.int64)
    binary = functional.binary_cross_entropy_with_logits
    seen = []
    for x, image in ((scores, images), (scores.detach(), images.detach())):
        seen += [
            _refused(t, lambda x=x: functional.nll_loss(x, classes, weight)),
            _refused(t, lambda x=x: functional.cross_entropy(x, classes, weight)),
            _refused(t, lambda image=image: functional.nll_loss(image, places, weight)),
            _refused(t, lambda image=image: functional.cross_entropy(image, places, weight)),
            _refused(t, lambda x=x: functional.multi_margin_loss(x, classes, weight=weight)),
            _refused(
                t, lambda: functional.binary_cross_entropy(probabilities, probabilities, weight)
            ),
            _refused(t, lambda x=x: binary(x, probabilities, weight)),
            _refused(t, lambda x=x: binary(x, probabilities, pos_weight=weight)),
            _refused(t, lambda x=x: functional.soft_margin_loss(x, scores)),
            _refused(t, lambda x=x: functional.cross_entropy(x, probabilities, weight)),
        ]
    return seen


def constants_of_layers(t):
    functional = t.nn.functional
    x, mean = _learning(t, 4, 3), _learning(t, 1, 3)[0]
    images, samples = _learning(t, 4, 4).reshape(1, 1, 4, 4), _learning(t, 1, 2).reshape(1, 1, 2)
    constant = mean.detach()
    tolerance = t.tensor(0.1, requires_grad=True)
    return [
        _refused(t, lambda: functional.batch_norm(x, mean, constant)),
        _refused(t, lambda: functional.batch_norm(x.detach(), constant, mean, training=True)),
        _refused(
            t, lambda: functional.instance_norm(x[..., None], mean, constant, use_input_stats=False)
        ),
        _refused(
            t,
            lambda: functional.fractional_max_pool2d(
                images, 2, output_size=(2, 2), _random_samples=samples - 2
            ),
        ),
        _refused(t, lambda: t.linalg.pinv(x, atol=tolerance)),
        _refused(t, lambda: t.linalg.pinv(x.detach(), rtol=tolerance)),
        t.linalg.matrix_rank(x, rtol=tolerance).requires_grad,
    ]  # fmt: skip


def reducing_scatter(t):
    x = _learning(t, 1, 3)[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        t.scatter(x * 1, 0, t.tensor([0, 1, 2]), 2.0, reduce="multiply").sum().backward()


def _alias(tensor, base):
    return (
        tensor.requires_grad, tensor.is_leaf, tensor.grad_fn, tensor._version,
        tensor._base is base, tensor._is_view(),
    )  # fmt: skip


def views_of_bytes(t):
    x = _learning(t, 2, 2)
    y = x * 1
    kinds = (t.int32, t.float64, t.complex128, t.uint8)
    return [
        (_alias(x.view(k), x), _alias(y.view(k), y), _alias(y.detach().view(k), y)) for k in kinds
    ]


def writes_through_bytes(t):
    x = _learning(t, 2, 2)
    y = x * 1
    view = y.view(t.int64)
    part = view[0]
    view.mul_(1)
    y.mul_(3)
    y.sum().backward()
    return _alias(view, y), _alias(part, view), y._version, x.grad


def write_of_what_learns_through_bytes(t):
    x = _learning(t, 2, 2)
    y = t.ones(2, 2, dtype=t.float64)
    view = y.view(t.float64)
    view.mul_(x)
    return _alias(view, y), view.grad_fn, y.requires_grad, y._version


def saved_and_written_through_bytes(t):
    x = _learning(t, 2, 2)
    y = x.exp()
    y.view(t.int64).zero_()
    y.sum().backward()


def bytes_learn_by_themselves(t):
    view = _learning(t, 2, 2).view(t.float64)
    view.mul_(2)
    view.requires_grad_()
    view.sum().backward()
    return view.grad, t.view_copy(_learning(t, 2, 2), t.int64).requires_grad


def integers_over_integers(t):
    found = []
    for one, two in (([3, 4], [2, 2]), ([3, 4], [2.0, 2.0]), ([True, False], [2, 2])):
        try:
            found.append(t.addcdiv(t.tensor([1.0, 2.0]), t.tensor(one), t.tensor(two)))
        except RuntimeError as error:
            found.append(str(error)[:40])
    return found


def asked_for_what_is_there_only(t):
    x = t.tensor([1.0, 2.0], requires_grad=True)
    y = t.tensor([2.5, 3.5], requires_grad=True)
    return t.autograd.grad(t.special.zeta(x + 1, y).sum(), [y])
