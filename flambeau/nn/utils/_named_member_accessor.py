"""Tensors of a module by dotted name: read, written, deleted and exchanged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau.nn.module import Module

_MISSING: Any = object()


def _check_name(name: str) -> None:
    if "." in name:
        raise KeyError('tensor name can\'t contain "."')
    if not name:
        raise KeyError('tensor name can\'t be empty string ""')


def _check_tensor(value: Any, what: str = "") -> None:
    if not isinstance(value, Tensor) and value is not None and value is not _MISSING:
        raise TypeError(f"{what}{value} is not an instance of torch.Tensor")


def set_tensor(module: Module, name: str, tensor: Tensor | None) -> None:
    """Put a tensor in the place of a parameter, a buffer or an attribute."""
    swap_tensor(module, name, tensor, allow_missing=True)


def swap_tensor(
    module: Module, name: str, tensor: Tensor | None, allow_missing: bool = False
) -> Any:
    """Put a tensor in a place and return what was there; `_MISSING` stands for nothing."""
    if not isinstance(module, Module):
        raise TypeError(f"{module} is not an instance of torch.nn.Module")
    _check_tensor(tensor)
    _check_name(name)
    for table in (module._parameters, module._buffers):
        if name in table:
            before = table[name]
            if tensor is _MISSING:
                del table[name]
            else:
                # Past the checks of a module, which wants Parameters here.
                table[name] = tensor
            return before
    before = getattr(module, name, _MISSING)
    if before is _MISSING and not allow_missing:
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    _check_tensor(before, f"attribute `{name}`: ")
    if tensor is not _MISSING:
        setattr(module, name, tensor)
    elif before is not _MISSING:
        delattr(module, name)
    return before


class NamedMemberAccessor:
    """The tensors in a module and below it by their dotted names; modules found are remembered."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.memo: dict[str, Module] = {"": module}

    def get_submodule(self, name: str) -> Module:
        """The module of a dotted name."""
        if name in self.memo:
            return self.memo[name]
        path, _, last = name.rpartition(".")
        parent = self.get_submodule(path)
        found = getattr(parent, last, _MISSING)
        if found is _MISSING:
            raise AttributeError(f"{parent._get_name()} has no attribute `{last}`")
        if not isinstance(found, Module):
            raise TypeError(f"submodule `{name}`: {found} is not an instance of torch.nn.Module")
        self.memo[name] = found
        return found

    def _place(self, name: str) -> tuple[Module, str]:
        path, _, last = name.rpartition(".")
        return self.get_submodule(path), last

    def get_tensor(self, name: str) -> Tensor:
        """The tensor of a dotted name."""
        module, last = self._place(name)
        found = getattr(module, last, _MISSING)
        if found is _MISSING:
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        _check_tensor(found)
        return found  # type: ignore[no-any-return]

    def set_tensor(self, name: str, value: Tensor) -> None:
        """Put a tensor in the place of a dotted name."""
        set_tensor(*self._place(name), value)

    def del_tensor(self, name: str) -> None:
        """Delete the tensor of a dotted name."""
        module, last = self._place(name)
        try:
            delattr(module, last)
        except AttributeError as error:
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`") from error

    def swap_tensor(self, name: str, value: Tensor, allow_missing: bool = False) -> Any:
        """Put a tensor in a place and return what was there."""
        return swap_tensor(*self._place(name), value, allow_missing=allow_missing)

    def swap_tensors_dict(
        self, named_tensors: dict[str, Tensor], allow_missing: bool = False
    ) -> tuple[dict[str, Tensor], list[str]]:
        """Exchange many: (what was there, the names where nothing was). All, or on error none."""
        before: dict[str, Any] = {}
        try:
            for name, tensor in named_tensors.items():
                before[name] = self.swap_tensor(name, tensor, allow_missing=True)
            missing = [name for name, tensor in before.items() if tensor is _MISSING]
            if missing and not allow_missing:
                raise RuntimeError(f"Missing key(s): {', '.join(map(repr, missing))}.")
        except BaseException:
            for name, tensor in before.items():
                self.swap_tensor(name, tensor, allow_missing=True)
            raise
        return before, missing

    def named_tensors(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """All parameters, then all buffers, with their names."""
        yield from self.module.named_parameters(remove_duplicate=remove_duplicate)
        yield from self.module.named_buffers(remove_duplicate=remove_duplicate)

    def check_keys(self, keys: Iterable[str]) -> tuple[list[str], list[str]]:
        """(names that are missing in `keys`, keys that name no tensor), each sorted."""
        given = set(keys)
        valid = {name for name, _ in self.named_tensors(remove_duplicate=False)}
        return sorted(valid - given), sorted(given - valid)
