"""Casts of weights that a region keeps, and types that meet in one call."""

from __future__ import annotations

from typing import Any

from conformance.modules.amp_backward import number


def _attempt(function: Any) -> Any:
    try:
        return str(function().dtype)
    except RuntimeError as error:
        return str(error)


def a_region_of_another_type_within(library: Any) -> Any:
    """The weight comes in the type that was kept."""
    weight, given = library.ones(2, 2, requires_grad=True), library.ones(2, 2)
    linear = library.nn.functional.linear
    found = []
    with library.autocast("cpu", dtype=library.bfloat16):
        found.append(_attempt(lambda: given @ weight))
        with library.autocast("cpu", dtype=library.float16):
            calls = (lambda: given @ weight, lambda: weight @ weight,
                     lambda: linear(given, weight), lambda: given @ given)  # fmt: skip
            found += [_attempt(call) for call in calls]
            library.clear_autocast_cache()
            found.append(_attempt(lambda: given @ weight))
        found.append(_attempt(lambda: given @ weight))
    return found


def nothing_is_kept_where_it_is_switched_off(library: Any) -> Any:
    weight, given = library.ones(2, 2, requires_grad=True), library.ones(2, 2)
    with library.autocast("cpu", cache_enabled=False):
        found = [_attempt(lambda: given @ weight)]
        with library.autocast("cpu", dtype=library.float16):
            found.append(_attempt(lambda: given @ weight))
    return found


def weights_that_change(library: Any) -> Any:
    layer, given = library.nn.Linear(2, 2), library.ones(2, 2)
    with library.no_grad():
        layer.weight.fill_(1.0)
        layer.bias.zero_()
    found = []
    with library.autocast("cpu"):
        found.append(layer(given))
        with library.no_grad():
            layer.weight.add_(1)
        found.append(layer(given))
        layer.weight.data = library.zeros(2, 2)
        found.append(layer(given))
        library.clear_autocast_cache()
        found.append(layer(given))
    with library.autocast("cpu"):
        return [*found, layer(given)]


def weights_whose_data_was_set(library: Any) -> Any:
    weight, given = library.ones(2, 2, requires_grad=True), library.ones(2, 2)
    weight.data = library.full((2, 2), 3.0)
    with library.autocast("cpu"):
        first = given @ weight
        with library.no_grad():
            weight.mul_(2)
        return first, given @ weight


def casts_without_recording(library: Any) -> Any:
    weight, given = library.ones(2, 2, requires_grad=True), library.ones(2, 2)
    with library.autocast("cpu"):
        with library.no_grad():
            first = (given @ weight).requires_grad
        result = given @ weight
        with library.no_grad():
            last = (given @ weight).requires_grad
    return first, last, library.autograd.grad(result.float().sum(), weight)


def joins_look_at_types_in_order(library: Any) -> Any:
    """The other half type is an error, but not after float32."""
    half, wide = library.ones(1).half(), library.ones(1)
    region, other = library.ones(1).bfloat16(), library.ones(1, dtype=library.float64)
    found = []
    with library.autocast("cpu"):
        for tensors in ([half, wide], [wide, half], [region, half], [region, wide, half],
                        [other, wide, half], [other, half], [region, other]):  # fmt: skip
            found.append(_attempt(lambda tensors=tensors: library.cat(tensors)))
            found.append(_attempt(lambda tensors=tensors: library.stack(tensors)))
    return found


def what_is_written_to_out_has_no_choice(library: Any) -> Any:
    left, right = library.ones(2, 2), library.ones(2, 2).bfloat16()
    found = []
    with library.autocast("cpu", dtype=library.float16):
        for tensors in ((left, left), (right, right)):
            for dtype in (library.float32, library.bfloat16, library.float16):
                out = library.empty(2, 2, dtype=dtype)
                found.append(_attempt(lambda t=tensors, out=out: library.matmul(*t, out=out)))
                found.append(_attempt(lambda t=tensors, out=out: library.mm(*t, out=out)))
    return found


def pseudoinverses_are_products(library: Any) -> Any:
    given = number(library, 2, 3)
    with library.autocast("cpu"):
        return _attempt(lambda: library.linalg.pinv(given)), _attempt(
            lambda: library.pinverse(given)
        )


def grids_are_products(library: Any) -> Any:
    maps = [number(library, 1, 2, 3).to(dtype) for dtype in (library.float16, library.float64)]
    grid = library.nn.functional.affine_grid
    with library.autocast("cpu"):
        return [str(grid(m, [1, 1, 2, 2], align_corners=True).dtype) for m in maps]


def types_that_do_not_go_together(library: Any) -> Any:
    """In regions float64 and integers stay what they are."""
    functional, wide = library.nn.functional, library.ones(2, 2, dtype=library.float64)
    given, whole = library.ones(2, 2), library.ones(2, 2, dtype=library.int64)
    image, kernel = library.ones(1, 1, 2, 2), library.ones(1, 1, 2, 2)
    calls = [
        lambda: given @ wide, lambda: whole @ given, lambda: functional.linear(wide, given),
        lambda: functional.linear(given, given, wide[0]), lambda: library.addmm(wide, given, given),
        lambda: library.addbmm(given, wide[None], given[None]),
        lambda: functional.bilinear(given, wide, library.ones(3, 2, 2)),
        lambda: functional.conv2d(image.double(), kernel),
        lambda: functional.conv2d(image, kernel.long()),
        lambda: functional.conv2d(image.double(), kernel.double(), library.ones(1)),
    ]  # fmt: skip
    with library.autocast("cpu"):
        return [_attempt(call) for call in calls]
