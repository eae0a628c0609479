"""Meshes of processes: all processes of a program, or some, as an array with named dims.

A dim of a mesh has a group for each of its lines: with the shape (2, 4), each process is in one of
four groups of two, and in one of two groups of four. Distributed tensors, tensor parallelism and
`fully_shard` are told by a mesh who has which part.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flambeau._tensor.tensor import Tensor, wrap
from flambeau.distributed import world
from flambeau.distributed.group import ProcessGroup

__all__ = ["DeviceMesh", "init_device_mesh"]

NEEDS_DIM = "Optional kwarg `mesh_dim` needs to be specified when device_mesh.ndim > 1."
ALL_GROUPS = (
    "If you want to get the list of all the ProcessGroups in the DeviceMesh,"
    "please use `get_all_groups()` instead."
)


class DeviceMesh:
    """Processes as an array, whose dims may have names.

    All processes of the program make it together, those outside of it included. There is a group of
    all processes afterwards: if there was none, it is made from the environment.

    Args:
        device_type: "cpu".
        mesh: the ranks, as an array or nested lists; each once.
        mesh_dim_names: a name for each dim.

    Raises:
        ValueError: a rank is in it twice.
        RuntimeError: there are no such processes.
        NotImplementedError: dims shall have another backend (`backend_override`).
    """

    __module__ = "torch.distributed.device_mesh"

    def __init__(self, device_type: str, mesh: Any = None, *,
                 mesh_dim_names: tuple[str, ...] | None = None, backend_override: Any = None,
                 _init_backend: bool = True) -> None:  # fmt: skip
        _refuse_other_backends(backend_override)
        if not world.is_initialized():
            world.init_process_group()
        ranks = _as_ranks(mesh)
        self._begin(device_type, ranks, mesh_dim_names, _contiguous(ranks.shape))
        if _init_backend:
            self._groups.extend(_groups_of_dims(ranks))

    def _begin(self, device_type: str, ranks: np.ndarray, names: Sequence[str] | None,
               stride: tuple[int, ...], root: DeviceMesh | None = None) -> None:  # fmt: skip
        self.device_type, self._ranks = device_type, ranks
        self.mesh_dim_names = tuple(names) if names else None
        self._stride, self._root = stride, root
        self._groups: list[ProcessGroup] = []
        self._flattened: dict[str, DeviceMesh] = {}
        place = np.argwhere(ranks == world.get_rank())
        self._coordinate = tuple(place[0].tolist()) if len(place) else None

    # ---- what it is

    @property
    def mesh(self) -> Tensor:
        """The ranks, as an int32 tensor."""
        return wrap(self._ranks.copy())

    @property
    def ndim(self) -> int:
        """How many dims there are."""
        return self._ranks.ndim

    @property
    def shape(self) -> tuple[int, ...]:
        """How many processes there are along each dim."""
        return tuple(self._ranks.shape)

    def size(self, mesh_dim: int | None = None) -> int:
        """How many processes there are, in all or along a dim."""
        return self._ranks.size if mesh_dim is None else self._ranks.shape[mesh_dim]

    def get_rank(self) -> int:
        """This process's rank in the program."""
        return world.get_rank()

    def get_coordinate(self) -> tuple[int, ...] | None:
        """Where this process is; None if it is not in the mesh."""
        return self._coordinate

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """This process's place along a dim; with one dim it need not be named.

        Raises:
            RuntimeError: the dim is not named. KeyError: there is none of this name.
        """
        if mesh_dim is None and self.ndim > 1:
            raise RuntimeError(f"Found the DeviceMesh have {self._ranks.ndim} dimensions",
                               NEEDS_DIM)  # fmt: skip
        return self.get_group(mesh_dim).rank()

    def get_group(self, mesh_dim: int | str | None = None) -> ProcessGroup:
        """The group of this process along a dim; with one dim it need not be named.

        Raises:
            RuntimeError: the dim is not named. KeyError: there is none of this name.
        """
        if mesh_dim is None:
            if self.ndim > 1:
                raise RuntimeError(f"Found the DeviceMesh have {self._ranks.ndim} dimensions",
                                   NEEDS_DIM, ALL_GROUPS)  # fmt: skip
            mesh_dim = 0
        if isinstance(mesh_dim, int):
            return self._groups[mesh_dim]
        flat = self._whole()._flattened.get(mesh_dim)
        if flat is not None and mesh_dim not in (self.mesh_dim_names or ()):
            return flat._groups[0]
        return self._groups[self._dim_of(mesh_dim)]

    def _dim_of(self, name: str) -> int:
        names = self.mesh_dim_names
        if not names or name not in names:
            raise KeyError(f"Mesh dimension '{name}' does not exist.",
                           f"Available mesh dimensions are: mesh_dim_names={names}")  # fmt: skip
        return names.index(name)

    def get_all_groups(self) -> list[ProcessGroup]:
        """The group of this process along each dim."""
        return [self.get_group(dim) for dim in range(self.ndim)]

    def _whole(self) -> DeviceMesh:
        return self._root or self

    def _get_root_mesh(self) -> DeviceMesh:
        """The mesh that this one was cut from, or itself."""
        return self._whole()

    def _key(self) -> Any:
        return (self._ranks.tobytes(), self.shape, self.device_type, self.mesh_dim_names)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceMesh) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        sizes = list(map(str, self.shape))
        if self.mesh_dim_names:
            sizes = [f"{n}={s}" for n, s in zip(self.mesh_dim_names, sizes, strict=True)]
            shape = f"({', '.join(sizes)})"
        else:
            shape = str(self.shape)
        steps = zip(self.shape, self._stride, strict=True)
        stride = tuple([() if size == 1 else step for size, step in steps])
        return f"DeviceMesh({shape}, '{self.device_type}', stride={stride})"

    def __enter__(self) -> DeviceMesh:
        ACTIVE.append(self)
        return self

    def __exit__(self, *exc: object) -> None:
        ACTIVE.pop()

    # ---- others that are made of it

    def __getitem__(self, mesh_dim_names: str | tuple[str, ...]) -> DeviceMesh:
        """The mesh of this process along some dims, in their order.

        Raises:
            RuntimeError: dims have no names. KeyError: some are missing, or in another order.
        """
        if not self.mesh_dim_names:
            raise RuntimeError("Cannot slice a DeviceMesh without mesh_dim_names!")
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        if names == self.mesh_dim_names:
            return self
        flattened = self._whole()._flattened
        if len(names) == 1 and names[0] in flattened:
            return flattened[names[0]]
        known = {name: (self._groups[dim : dim + 1], self._stride[dim : dim + 1],
                        self._line(dim))
                 for dim, name in enumerate(self.mesh_dim_names)}  # fmt: skip
        for name, flat in flattened.items():
            known.setdefault(name, (flat._groups, flat._stride, flat._ranks))
        self._check_names(names, known)
        return self._cut(names, known)

    def _check_names(self, names: tuple[str, ...], known: Any) -> None:
        if any(name not in known for name in names):
            raise KeyError(
                f"Invalid mesh_dim_names {names} specified. "
                f"Valid mesh_dim_names are {list(self.mesh_dim_names or ())}."
            )
        steps = [known[name][1][0] for name in names if known[name][2].size > 1]
        if steps != sorted(steps, reverse=True):
            raise KeyError(f"Invalid mesh_dim_names {names} specified. "
                           "Mesh dim indices should be in ascending order.")  # fmt: skip

    def _line(self, dim: int) -> np.ndarray:
        """The ranks of this process's line along a dim."""
        at: list[Any] = list(self._coordinate or (0,) * self.ndim)
        at[dim] = slice(None)
        return self._ranks[tuple(at)]

    def _cut(self, names: tuple[str, ...], known: Any) -> DeviceMesh:
        lines = [known[name][2] for name in names]
        me = world.get_rank() if self._coordinate is not None else int(self._ranks.flat[0])
        ranks = _spanned(self._whole()._ranks, lines, me)
        made = DeviceMesh.__new__(DeviceMesh)
        stride = sum((known[name][1] for name in names), ())
        made._begin(self.device_type, ranks, names, stride, self._whole())
        made._groups = sum((known[name][0] for name in names), [])
        return made

    def _with(self, other: DeviceMesh) -> DeviceMesh:
        """The mesh of this one's dims and then another's, cut from the same one as this."""
        names = (*(self.mesh_dim_names or ()), *(other.mesh_dim_names or ()))
        known = {}
        for mesh in (self, other):
            for dim, name in enumerate(mesh.mesh_dim_names or ()):
                known[name] = (mesh._groups[dim : dim + 1], mesh._stride[dim : dim + 1],
                               mesh._line(dim))  # fmt: skip
        return self._cut(names, known)

    def _flatten(
        self, mesh_dim_name: str | None = None, backend_override: Any = None
    ) -> DeviceMesh:
        """All dims as one, whose name is theirs joined by "_"; all processes call this together.

        The mesh that it was cut from knows it by this name, too.
        """
        _refuse_other_backends(backend_override)
        name = mesh_dim_name or "_".join(self.mesh_dim_names or ())
        root = self._whole()
        known = root._flattened.get(name)
        if known is not None:
            return known
        made = DeviceMesh.__new__(DeviceMesh)
        stride = (_joined_stride(self.shape, self._stride),)
        made._begin(self.device_type, self._ranks.reshape(-1), (name,), stride, root)
        made._groups = self._groups if self.ndim == 1 else _own_group(self._blocks())
        root._flattened[name] = made
        return made

    def _blocks(self) -> list[list[int]]:
        """The ranks of this mesh, and those of the meshes beside it in the one it was cut from."""
        root = self._whole()
        if root is self:
            return [self._ranks.reshape(-1).tolist()]
        if any(name not in (root.mesh_dim_names or ()) for name in self.mesh_dim_names or ()):
            raise NotImplementedError("_flatten of dims that were flattened before")
        dims = [root._dim_of(name) for name in self.mesh_dim_names or ()]
        others = [dim for dim in range(root.ndim) if dim not in dims]
        blocks = root._ranks.transpose(others + dims).reshape(-1, self.size())
        return blocks.tolist()  # type: ignore[no-any-return]

    def _unflatten(self, dim: int | str, mesh_sizes: tuple[int, ...],
                   mesh_dim_names: tuple[str, ...],
                   backend_override: Any = None) -> DeviceMesh:  # fmt: skip
        """One dim as several. All processes call this together."""
        at = self._dim_of(dim) if isinstance(dim, str) else dim
        shape = (*self.shape[:at], *mesh_sizes, *self.shape[at + 1 :])
        old = self.mesh_dim_names or ()
        names = (*old[:at], *mesh_dim_names, *old[at + 1 :])
        return DeviceMesh(self.device_type, self._ranks.reshape(shape), mesh_dim_names=names,
                          backend_override=backend_override)  # fmt: skip

    @staticmethod
    def from_group(group: ProcessGroup | list[ProcessGroup], device_type: str, mesh: Any = None, *,
                   mesh_dim_names: tuple[str, ...] | None = None) -> DeviceMesh:  # fmt: skip
        """A mesh over groups that are there: one of its dims for each.

        Args:
            mesh: the ranks, where there are several groups.

        Raises:
            ValueError: there is no group, or `mesh` is not given or does not fit.
        """
        if isinstance(group, ProcessGroup):
            ranks = _as_ranks(group._ranks)
            if mesh is not None and _as_ranks(mesh).tolist() != ranks.tolist():
                raise ValueError(
                    f"Invalid mesh {mesh} for ProcessGroup with ranks {ranks.tolist()}"
                )
            groups = [group]
        else:
            groups = list(group)
            if not groups:
                raise ValueError("Expects at least one ProcessGroup to be passed")
            if mesh is None:
                raise ValueError("Must pass mesh if passing multiple ProcessGroups")
            ranks = _as_ranks(mesh)
            if mesh_dim_names is None:
                raise ValueError("Must pass mesh_dim_names if passing multiple ProcessGroups")
            if ranks.ndim != len(groups):
                raise ValueError(
                    "Expects mesh with ndim equal to number of ProcessGroups but got mesh "
                    f"{ranks.tolist()} and {len(groups)} ProcessGroups"
                )
        made = DeviceMesh.__new__(DeviceMesh)
        made._begin(device_type, ranks, mesh_dim_names, _contiguous(ranks.shape))
        made._groups = list(groups)
        return made


ACTIVE: list[DeviceMesh] = []
"""Meshes of `with` statements, the innermost last."""


def active_mesh() -> DeviceMesh:
    """The mesh of the innermost `with` statement.

    Raises:
        RuntimeError: there is none.
    """
    if not ACTIVE:
        raise RuntimeError("No device mesh is currently active!")
    return ACTIVE[-1]


def init_device_mesh(device_type: str, mesh_shape: tuple[int, ...], *,
                     mesh_dim_names: tuple[str, ...] | None = None,
                     backend_override: Any = None) -> DeviceMesh:  # fmt: skip
    """A mesh of the ranks from 0, in the order of the last dim.

    Args:
        device_type: "cpu".
        mesh_shape: how many processes there are along each dim.
        mesh_dim_names: a name for each dim.

    Raises:
        RuntimeError: names do not fit the shape, or the device has an index.
        NotImplementedError: dims shall have another backend (`backend_override`).
    """
    if mesh_dim_names is not None:
        if len(set(mesh_dim_names)) != len(mesh_dim_names):
            raise RuntimeError("Each mesh_dim_name must be unique. Found repeated mesh_dim_name in "
                               f"mesh_dim_names {mesh_dim_names}")  # fmt: skip
        if len(mesh_shape) != len(mesh_dim_names):
            raise RuntimeError(
                "mesh_shape and mesh_dim_names should have same length! Found "
                f"len(mesh_dim_names): {len(mesh_dim_names)} and len(mesh_shape):{len(mesh_shape)}."
            )
    if not device_type.isalpha():
        raise RuntimeError(
            f"Device type with index is not supported but got {device_type}. ",
            "If you maintained a 'torch.device' object, it's recommended to pass in 'device.type'.",
        )
    ranks = np.arange(int(np.prod(mesh_shape))).reshape(mesh_shape)
    return DeviceMesh(device_type, ranks, mesh_dim_names=mesh_dim_names,
                      backend_override=backend_override)  # fmt: skip


def _refuse_other_backends(override: Any) -> None:
    if override:
        raise NotImplementedError("DeviceMesh: backend_override is not implemented")


# ---- ranks and groups


def _as_ranks(mesh: Any) -> np.ndarray:
    """Ranks as an array; None is all.

    Raises:
        ValueError: one is there twice. RuntimeError: there are more than processes.
    """
    if mesh is None:
        mesh = np.arange(world.get_world_size())
    ranks = np.asarray(mesh.tolist() if isinstance(mesh, Tensor) else mesh).astype(np.int32)
    flat = ranks.reshape(-1).tolist()
    if len(flat) > world.get_world_size():
        raise RuntimeError(
            f"Mesh should not be bigger than default world size {world.get_world_size()}, "
            f"but found {len(flat)} ranks!"
        )
    if len(set(flat)) != len(flat):
        raise ValueError(f"ranks list must not contain duplicate entries, got {flat}")
    return ranks


def _contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(np.prod(shape[dim + 1 :])) for dim in range(len(shape)))


def _joined_stride(shape: tuple[int, ...], stride: tuple[int, ...]) -> Any:
    """The step of dims as one, where there is one; their steps otherwise."""
    joins = all(stride[dim] == shape[dim + 1] * stride[dim + 1] for dim in range(len(shape) - 1))
    return stride[-1] if joins else stride


def _groups_of_dims(ranks: np.ndarray) -> list[ProcessGroup]:
    """The groups of this process along each dim; all processes make those of all."""
    groups = []
    for dim in range(ranks.ndim):
        lines = np.moveaxis(ranks, dim, -1).reshape(-1, ranks.shape[dim])
        groups += _own_group(lines.tolist())
    return groups


def _own_group(lines: list[list[int]]) -> list[ProcessGroup]:
    """The group of this process among groups that all make; none if it is in none."""
    default = world.world()
    if lines == [list(default._ranks)]:
        return [default]
    made = [world.new_group(line) for line in lines]
    return [group for group in made if isinstance(group, ProcessGroup)]


def _spanned(root: np.ndarray, lines: list[np.ndarray], me: int) -> np.ndarray:
    """The ranks that one gets to from `me` by steps along lines through it."""
    where = {int(rank): at for at, rank in np.ndenumerate(root)}
    start = np.array(where[me])
    spanned = np.zeros((1, root.ndim), int)
    for line in lines:
        steps = np.array([np.array(where[int(rank)]) - start for rank in line])
        spanned = (spanned[:, None] + steps[None]).reshape(-1, root.ndim)
    ranks = np.array([root[tuple(start + step)] for step in spanned], np.int32)
    return ranks.reshape([len(line) for line in lines])
