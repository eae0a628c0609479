"""Calls with sizes that are symbols: the layouts of their results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau._ops.table.namespace import ops
from flambeau._subclasses import symbolic_results
from flambeau._tensor.symbolic_arrays import Layout, layout_of
from flambeau._tensor.symbolic_numbers import expression_of, is_symbolic
from flambeau._tensor.tensor import Tensor
from flambeau.utils._pytree import tree_flatten, tree_map


def layout_in(fake: Any) -> Layout:
    """The layout of a fake tensor, with symbols where it has some."""
    found = layout_of(fake._data)
    if found is not None:
        return found
    return Layout(tuple(fake._data.shape), tuple(fake.stride()), fake.storage_offset())


def is_laid_out(fake: Any, layout: Layout) -> bool:
    """Whether a fake tensor has a layout, by its expressions."""
    found = layout_of(fake._data)
    read = symbolic_results.expressions_in
    return found is not None and read(found) == read(layout)


def _laid_out(fake: Any, layout: Layout, value: Callable[[Any], int]) -> Any:
    """A tensor on "meta" with numbers for the symbols of a layout."""
    sizes, steps = [[value(expression_of(n)) for n in part] for part in layout[:2]]
    offset = value(expression_of(layout.offset))
    reach = sum([(n - 1) * step for n, step in zip(sizes, steps, strict=True)])
    count = offset + (reach + 1 if 0 not in sizes else 0)
    whole: Any = ops.empty(count, dtype=fake.dtype, device="meta")
    return whole.as_strided(sizes, steps, offset)


def layouts(env: Any, func: Any, on_meta: Callable[..., Any], given: Any, fakes: list[Any],
            written: Any, after: Any) -> list[Layout | None]:  # fmt: skip
    """The layouts of a call's results and of what it writes to, one for each leaf of `after`: what
    came of it in this run. `on_meta` runs it."""
    places = {id(fake): number for number, fake in enumerate(fakes)}
    parts = [layout_in(fake) for fake in fakes]

    def run(value: Callable[[Any], Any]) -> Any:
        metas = [_laid_out(fake, part, value) for fake, part in zip(fakes, parts, strict=True)]

        def replaced(leaf: Any) -> Any:
            if isinstance(leaf, Tensor):
                return metas[places[id(leaf)]] if id(leaf) in places else leaf
            return value(leaf.node.expr) if is_symbolic(leaf) else leaf

        args, kwargs = tree_map(replaced, given)
        result = on_meta(func, args, kwargs)
        return result, [metas[places[id(fake)]] for fake in written]

    leaves, spec = tree_flatten(given)
    numbers = [leaf for leaf in leaves if type(leaf) is int or is_symbolic(leaf)]
    key = _key(env, func, leaves, spec, parts, places)
    kinds, _ = symbolic_results.described(after)
    if key not in env.derived:
        call = symbolic_results.Repeated(env, run, parts, numbers)
        env.derived[key] = call.expressions(after)
    return symbolic_results.layouts(env, kinds, env.derived[key])


def _key(env: Any, func: Any, leaves: Any, spec: Any, parts: Any, places: Any) -> Any:
    """What decides on the layouts of a call's results."""
    texts: list[Any] = []
    for leaf in leaves:
        if isinstance(leaf, Tensor):
            texts.append((places.get(id(leaf), -1), leaf.dtype))
        else:
            texts.append(env.replace(leaf.node.expr) if is_symbolic(leaf) else repr(leaf))
    sizes = tuple([tuple(map(env.replace, symbolic_results.expressions_in(part)))
                   for part in parts])  # fmt: skip
    return str(func), tuple(texts), str(spec), sizes
