"""Tensors that share memory, which a .safetensors file cannot express."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from flambeau._runtime.cpu import address
from flambeau._tensor.tensor import Tensor, storage_of

ADVICE = "More information at https://huggingface.co/docs/safetensors/torch_shared_tensors"


def shared_groups(tensors: Mapping[str, Tensor]) -> list[list[str]]:
    """Names of tensors whose bytes overlap, group by group, sorted; single tensors too.

    Only tensors over one storage can overlap. Within it they are sorted by their first byte, and
    each one that begins before the last one's end belongs to its group.
    """
    by_storage: dict[tuple[int, int], list[tuple[int, int, str]]] = {}
    for name, tensor in tensors.items():
        storage = storage_of(tensor)
        if storage.nbytes():
            place = (storage.start, storage.nbytes())
            by_storage.setdefault(place, []).append((*_extent(tensor), name))
    groups: list[list[str]] = []
    for areas in by_storage.values():
        last_end = -1
        for start, end, name in sorted(areas):
            if start >= last_end:
                groups.append([])
            groups[-1].append(name)
            last_end = end
    return sorted(sorted(group) for group in groups)


def refuse_shared(tensors: Mapping[str, Tensor]) -> None:
    """RuntimeError, in the reference's words, if any two tensors overlap."""
    failing = [group for group in shared_groups(tensors) if len(group) > 1]
    if not failing:
        return
    shown = ", ".join("{" + ", ".join(map(repr, group)) + "}" for group in failing)
    indent = " " * 12
    raise RuntimeError(
        f"\n{indent}Some tensors share memory, this will lead to duplicate memory on disk and "
        f"potential differences when loading them again: [{shown}].\n"
        f"{indent}A potential way to correctly save your model is to use `save_model`.\n"
        f"{indent}{ADVICE}\n{indent}"
    )


def duplicates(
    tensors: Mapping[str, Tensor], preferred: Iterable[str] = ()
) -> dict[str, list[str]]:
    """For each group of tensors that overlap: the name to keep, and the names to leave out.

    The kept one covers the whole storage; among several, a preferred name wins, then the first in
    the alphabet. RuntimeError if none covers it.
    """
    result = {}
    for group in shared_groups(tensors):
        complete = [name for name in group if _covers_storage(tensors[name])]
        if not complete:
            raise RuntimeError(
                "Error while trying to find names to remove to save state dict, but found no "
                f"suitable name to keep for saving amongst: {set(group)}. None is covering the "
                "entire storage. Refusing to save/load the model since you could be storing much "
                f"more memory than needed. {ADVICE}"
            )
        kept = min(set(preferred) & set(complete) or complete)
        if len(group) > 1:
            result[kept] = [name for name in group if name != kept]
    return result


def _extent(tensor: Tensor) -> tuple[int, int]:
    """The addresses of the first byte and, as for a dense tensor, behind the last."""
    start = address(tensor._data)
    return start, start + tensor._data.nbytes


def _covers_storage(tensor: Tensor) -> bool:
    storage = storage_of(tensor)
    starts = address(tensor._data) == storage.start
    return starts and tensor._data.nbytes == storage.nbytes()
