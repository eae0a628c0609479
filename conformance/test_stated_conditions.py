"""Conditions that model code states (`torch._check` & co.), and arguments judged by their types."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformance.side_by_side import compare
from conformance.test_odd_arguments import told


def conditions(t: Any) -> Any:
    def say() -> str:
        return "say so"

    names = ("_check", "_check_index", "_check_value", "_check_type", "_check_not_implemented")
    calls = [
        lambda name=name, given=given: getattr(t, name)(*given)
        for name in names
        for given in ((True,), (False,), (False, say), (False, "text"), (1,), (t.tensor(True),))
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return told([
            *calls,
            lambda: t._check_is_size(-1), lambda: t._check_is_size(2),
            lambda: t._check_is_size(3, max=2), lambda: t._check_is_size(2, say, max=2),
            lambda: t._check_with(ZeroDivisionError, False, say),
        ])  # fmt: skip


def conditions_of_tensors(t: Any) -> Any:
    mixed = t.tensor([True, False])
    return told([
        lambda: t._check_tensor_all(mixed, lambda: "not all"),
        lambda: t._check_tensor_all(mixed[:1]), lambda: t._check_tensor_all(mixed[:0]),
        lambda: t._check_tensor_all(mixed.int()),
        lambda: t._assert_async(t.tensor(0.0)), lambda: t._assert_async(t.tensor(3)),
        lambda: t._assert_async(t.tensor(0), "nothing there"),
        lambda: t._assert_async(t.ones(0)), lambda: t._assert_async(t.ones(2)),
    ])  # fmt: skip


def sizes(t: Any) -> Any:
    """Whole numbers of any kind become ints; nothing else is a size."""
    given = [
        t.ones(3), t.ones(3, dtype=t.int64), t.tensor([1, 2], dtype=t.int8), [1.0, 2.0],
        [t.tensor(2)], [t.tensor(2.0)], t.tensor(3), t.ones(2, 2), [None], "ab", 5, [],
        range(3), iter([1, 2]),
    ]  # fmt: skip
    found = told([lambda value=value: t.Size(value) for value in given])
    kinds = [[type(size).__name__ for size in made] for made in found if isinstance(made, t.Size)]
    return found, kinds


def numbers_between(t: Any) -> Any:
    """The earlier forms of `add` and `sub`, with a number in the place of a tensor."""
    x, z = t.ones(2), t.tensor(2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return told([
            lambda: t.add(x, z, 3), lambda: x.add(z, 3), lambda: t.add(x, 2, 3),
            lambda: t.add(3, 2, x), lambda: t.sub(x, z, 3), lambda: t.addcmul(x, z, x, 3),
            lambda: t.add(t.tensor(True), t.tensor(True), True),
        ])  # fmt: skip


def deviations_of_no_dims(t: Any) -> Any:
    """A tensor without dims is a tensor first: the errors of its elements, and its numbers."""
    below, two = t.tensor(-1.0), t.tensor(2.0)
    calls = [lambda m=m, s=s: t.normal(m, s) for m in (0.0, two, t.zeros(2)) for s in (below, -1.0)]
    t.manual_seed(3)
    drawn = [t.normal(m, s) for m in (0.0, two, t.zeros(2)) for s in (two, t.ones(2))]
    return told([calls[0], *calls[2:]]), drawn


def slices_of_nothing(t: Any) -> Any:
    w = t.ones(0, 1, 2, 0)
    return told(
        [
            lambda dim=dim, at=at: t.index_select(w, dim, t.tensor(at)).shape
            for dim in range(4)
            for at in ([0], [0, 1], [7], [-1], [0, -5, 9])
        ]
    ) + told([lambda: t.index_select(t.ones(2), 0, t.tensor([2]))])


def buffers(t: Any) -> Any:
    given = [[1, 2], 3, "abc", None, bytearray(4)]
    found = told([lambda value=value: t.frombuffer(value, dtype=t.uint8) for value in given])
    return found, told(
        [
            lambda: t.frombuffer(bytearray(4), dtype=t.uint8, count=2.0),
            lambda: t.frombuffer(bytearray(4), dtype=3),
        ]
    )


def endless_ranges(t: Any) -> Any:
    return told([
        lambda: t.arange(-(2**62), 2**62), lambda: t.arange(0, 1e30),
        lambda: t.arange(0, 1, 1e-30), lambda: t.arange(5, -1, -2), lambda: t.arange(3, 3),
    ])  # fmt: skip


def products_rounded_at_every_step(t: Any) -> Any:
    """`index_reduce` in types of 16 bits."""
    generator = np.random.default_rng(4)
    d, s = generator.uniform(-5, 5, (6, 5)), generator.uniform(-3, 3, (9, 5))
    index = t.from_numpy(generator.integers(0, 4, 9))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [
            t.tensor(d)
            .to(kind)
            .index_reduce(0, index, t.tensor(s).to(kind), reduce, include_self=own)
            .double()  # fmt: skip
            for kind in (t.float16, t.bfloat16)
            for reduce in ("prod", "mean", "amax", "amin")
            for own in (True, False)
        ]


def sparse_gradients_of_scalars(t: Any) -> Any:
    found = []
    for x, at in ((t.arange(4.0), t.tensor(2)), (t.tensor(1.0), t.zeros(2, dtype=t.int64)),
                  (t.tensor(1.0), t.tensor(0))):  # fmt: skip
        x.requires_grad_()
        y = t.gather(x, 0, at, sparse_grad=True)
        found += [g.to_dense() for g in t.autograd.grad((y * 3).sum(), x)]
    return found


def views_of_what_inference_made(t: Any) -> Any:
    with t.inference_mode():
        x = t.ones(1, 2, 3, requires_grad=True)
    views = [x.view(-1), x[0], x[:, 1], x[0, 1:], x.transpose(0, 1), x.expand(2, 2, 3), x.detach()]
    return [(v.requires_grad, v.is_inference(), v.is_leaf) for v in views]


def addresses_of_nothing(t: Any) -> Any:
    x = t.tensor([])
    parts = [x, t.view_as_complex(x.reshape(0, 2)), t.empty(0, 3).t()]
    return [(p.data_ptr(), p.untyped_storage().data_ptr()) for p in parts]


def negative_views(t: Any) -> Any:
    x = t.arange(3.0)
    view = x._neg_view()
    values = [view.resolve_neg(), t._neg_view(x).resolve_neg(), (view * 2)]
    return (
        values,
        view.is_neg(),
        view.data_ptr() == x.data_ptr(),
        hasattr(t, "copy"),
        hasattr(x, "copy"),
    )


@pytest.mark.parametrize("scenario", [
    conditions, conditions_of_tensors, sizes, numbers_between, deviations_of_no_dims,
    slices_of_nothing, buffers, endless_ranges, products_rounded_at_every_step,
    sparse_gradients_of_scalars, views_of_what_inference_made, addresses_of_nothing,
    negative_views,
], ids=lambda scenario: scenario.__name__)  # fmt: skip
def test_same_answers(scenario: Any) -> None:
    compare(scenario)


def writes_to_expanded(t: Any) -> Any:
    """Torch warns each time, not once."""
    mask, at = t.zeros(2, dtype=t.bool), t.tensor([0])
    counts = []
    writes = [
        lambda x: x.masked_fill_(mask, 0.0),
        lambda x: x.masked_fill_(mask, at[0] * 1.0),
        lambda x: x.index_fill_(0, at, 1),
        lambda x: x.index_put_((at,), t.ones(1)),
    ]
    for write in writes:
        for _ in range(2):
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                write(t.ones(1).expand(2))
            counts.append([str(w.message).partition(" (Triggered")[0] for w in seen])
    return counts


def test_writes_to_expanded_tensors_warn_each_time() -> None:
    compare(writes_to_expanded)


def saved_through_an_open_file(t: Any) -> Any:
    found = []
    for archive in (True, False):
        with tempfile.NamedTemporaryFile() as file:
            t.save([t.arange(3.0)], file, _use_new_zipfile_serialization=archive)
            found.append(t.load(Path(file.name), weights_only=True))
    return found


def test_a_file_is_whole_before_it_is_closed() -> None:
    compare(saved_through_an_open_file)
