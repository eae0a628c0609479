"""The groups of this process: how they begin and end."""

from __future__ import annotations

import atexit
import warnings
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from flambeau.distributed import backends
from flambeau.distributed.group import ProcessGroup
from flambeau.distributed.rendezvous import rendezvous
from flambeau.distributed.stores import HashStore, PrefixStore, Store

NOT_INITIALIZED = (
    "Default process group has not been initialized, please make sure to call init_process_group."
)
DEFAULT_TIMEOUT = timedelta(minutes=30)


class GroupMember:
    """Where the group of all processes is kept, if there is one."""

    WORLD: ProcessGroup | None = None
    NON_GROUP_MEMBER = -100
    """What `new_group` returns in processes that are not in the group."""


class _World(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:  # noqa: N802  its name in PyTorch
        """The group of all processes."""
        return GroupMember.WORLD


class group(metaclass=_World):  # noqa: N801  its name in PyTorch
    """`group.WORLD`: the group of all processes."""


class State:
    """What lasts from `init_process_group` to `destroy_process_group`."""

    groups: dict[str, ProcessGroup] = {}  # noqa: RUF012  one process, one table
    mesh: Any = None
    communicator: Any = None
    store: Store | None = None
    lives = 0
    """How often there was an `init_process_group`."""
    made = 0
    """How many groups were made; all processes make them in the same order."""


def is_initialized() -> bool:
    """Whether there is a group of all processes."""
    return GroupMember.WORLD is not None


def init_process_group(backend: str | None = None, init_method: str | None = None,
                       timeout: timedelta | None = None, world_size: int = -1, rank: int = -1,
                       store: Store | None = None, group_name: str = "", pg_options: Any = None,
                       device_id: Any = None) -> None:  # fmt: skip
    """Join the processes of a program to a group.

    Args:
        backend: "gloo" (the default), "mpi" or "fake".
        init_method: how they find one another: `env://`, `tcp://`, `file://`.
        timeout: how long any operation may take.
        world_size, rank: how many processes there are, and which this one is.
        store: instead of `init_method`.
        group_name, pg_options, device_id: without meaning here.

    Raises:
        ValueError: there is a group already, or something is not said.
        RuntimeError: the backend is missing, or not all processes came in time.
    """
    if is_initialized():
        raise ValueError("trying to initialize the default process group twice!")
    _check_arguments(timeout, init_method, store, world_size, rank)
    name = backends.choose(backend)
    patience = timeout or DEFAULT_TIMEOUT
    if name == "mpi":
        made = _begin_mpi(patience)
    else:
        if store is None:
            store, rank, world_size = _meet(name, init_method, rank, world_size, patience)
        made = _begin(name, store, rank, world_size, patience)
    GroupMember.WORLD = State.groups["0"] = made
    State.made = 1


def _check_arguments(timeout: Any, init_method: Any, store: Any, world_size: int,
                     rank: int) -> None:  # fmt: skip
    if timeout is not None and not isinstance(timeout, timedelta):
        raise TypeError(
            f"Expected timeout argument to be of type datetime.timedelta, got {timeout}"
        )
    if store is None:
        return
    if init_method is not None:
        raise AssertionError("Cannot specify both init_method and store.")
    if not world_size > 0:
        raise AssertionError("world_size must be positive if using store")
    if not rank >= 0:
        raise AssertionError("rank must be non-negative if using store")


def _meet(name: str, init_method: str | None, rank: int, size: int,
          timeout: timedelta) -> tuple[Store, int, int]:  # fmt: skip
    if name == "fake" and rank >= 0 and size > 0:
        return HashStore(), rank, size
    return next(rendezvous(init_method or "env://", rank, size, timeout))


def _begin(name: str, store: Store, rank: int, size: int, timeout: timedelta) -> ProcessGroup:
    from flambeau.distributed.transport.mesh import Mesh

    State.lives += 1
    store.set_timeout(timeout)
    State.store = PrefixStore(f"default_pg/{State.lives}", store)
    ranks = range(size)
    if name == "fake":
        return backends.fake_group(store, ranks, rank, timeout, "0", "default_pg")
    State.mesh = Mesh(State.store, rank, size, timeout)
    try:
        return backends.gloo_group(State.mesh, PrefixStore("0", State.store), ranks, timeout, "0",
                                   "default_pg")  # fmt: skip
    except BaseException:
        _end_all()
        raise


def _begin_mpi(timeout: timedelta) -> ProcessGroup:
    from flambeau.distributed.transport.mpi import library

    State.communicator = library().COMM_WORLD.Dup()
    ranks = range(State.communicator.Get_size())
    return backends.mpi_group(State.communicator, ranks, timeout, "0", "default_pg")


def world() -> ProcessGroup:
    """The group of all processes.

    Raises:
        ValueError: there is none.
    """
    if GroupMember.WORLD is None:
        raise ValueError(NOT_INITIALIZED)
    return GroupMember.WORLD


def the_group(given: Any) -> ProcessGroup:
    """The group that an argument stands for: None is the world."""
    default = world()
    if given is None:
        return default
    if isinstance(given, str):
        return _named(given)
    if not isinstance(given, ProcessGroup):
        raise ValueError("Invalid process group specified")
    return given


def _named(name: str) -> ProcessGroup:
    if name not in State.groups:
        raise ValueError(
            f"Process group {name} is not initialized in the world group map. Please initialize "
            "the group first."
        )
    return State.groups[name]


def is_outside(given: Any) -> bool:
    """Whether a group is one that this process is not in."""
    return isinstance(given, int) and given == GroupMember.NON_GROUP_MEMBER


def warn_outside(name: str) -> Any:
    """Say that a collective was called by a process that is not in the group."""
    warnings.warn(
        f"Running {name} on global rank {get_rank()} which does not belong to the given group.",
        stacklevel=4,
    )


def new_group(ranks: Sequence[int] | None = None, timeout: timedelta | None = None,
              backend: str | None = None, pg_options: Any = None,
              use_local_synchronization: bool = False, group_desc: str | None = None,
              device_id: Any = None) -> Any:  # fmt: skip
    """A group of some of the processes; all processes have to call this, in the same order.

    Args:
        ranks: of the world; None for all. timeout: None for that of the world.
        backend: None for that of the world; another one is not possible here.
        use_local_synchronization: whether only members call this.
        pg_options, device_id: without meaning here.

    Raises:
        ValueError: a rank does not exist, or is named twice.
    """
    default = world()
    members = sorted(ranks) if ranks is not None else list(range(default.size()))
    _check_ranks(members, default.size())
    if backend is not None and backends.choose(backend) != default.name():
        raise NotImplementedError(f"a group with another backend than {default.name()}")
    if use_local_synchronization:
        name = f"local-{'-'.join(map(str, members))}-{_count_of(members)}"
    else:
        name = str(State.made)
        State.made += 1
    patience = timeout or default._timeout
    if default.name() == "mpi":
        made = _split_mpi(default, members, patience, name, group_desc or "undefined")
    elif default.rank() not in members:
        return GroupMember.NON_GROUP_MEMBER
    else:
        made = _sub_group(default, members, patience, name, group_desc or "undefined")
    if isinstance(made, ProcessGroup):
        State.groups[name] = made
    return made


def _count_of(members: list[int]) -> int:
    start = f"local-{'-'.join(map(str, members))}-"
    return sum(name.startswith(start) for name in State.groups)


def _check_ranks(members: list[int], size: int) -> None:
    for rank in members:
        if not 0 <= rank < size:
            raise ValueError(
                f"Rank {rank} is out of range. Valid ranks are 0 to {size - 1} (world_size={size})"
            )
    if len(set(members)) != len(members):
        raise ValueError(f"ranks list must not contain duplicate entries, got {members}")
    if not members:
        raise ValueError("a group has at least one rank")


def _sub_group(default: ProcessGroup, members: list[int], timeout: timedelta, name: str,
               desc: str) -> ProcessGroup:  # fmt: skip
    if default.name() == "fake":
        rank = members.index(default.rank())
        return backends.fake_group(default.get_group_store(), members, rank, timeout, name, desc)
    store = PrefixStore(name, State.store) if State.store is not None else HashStore()
    return backends.gloo_group(State.mesh, store, members, timeout, name, desc)


def _split_mpi(default: ProcessGroup, members: list[int], timeout: timedelta, name: str,
               desc: str) -> Any:  # fmt: skip
    is_member = default.rank() in members
    color = 1 if is_member else _undefined_color()
    communicator = State.communicator.Split(color, default.rank())
    if not is_member:
        return GroupMember.NON_GROUP_MEMBER
    return backends.mpi_group(communicator, members, timeout, name, desc)


def _undefined_color() -> int:
    from flambeau.distributed.transport.mpi import library

    return int(library().UNDEFINED)


def split_group(parent_pg: ProcessGroup | None = None, split_ranks: list[list[int]] | None = None,
                timeout: timedelta | None = None, pg_options: Any = None,
                group_desc: str | None = None) -> ProcessGroup | None:  # fmt: skip
    """Groups of the processes of a group; the one that this process is in, or None.

    Args:
        split_ranks: the ranks, within the parent, of each new group.

    Raises:
        ValueError: there are none, or a rank is in two.
    """
    parent = the_group(parent_pg)
    if not split_ranks:
        raise ValueError("split_ranks cannot be None or empty")
    flat = [rank for ranks in split_ranks for rank in ranks]
    if len(set(flat)) != len(flat):
        raise ValueError("the split group cannot have duplicate ranks")
    mine = None
    for ranks in split_ranks:
        members = [parent._ranks[rank] for rank in ranks]
        made = new_group(members, timeout or parent._timeout, group_desc=group_desc)
        mine = made if isinstance(made, ProcessGroup) else mine
    return mine


def new_subgroups(group_size: int | None = None, group: Any = None,
                  timeout: timedelta | None = None, backend: str | None = None,
                  pg_options: Any = None, group_desc: str | None = None) -> Any:  # fmt: skip
    """Groups of `group_size` neighbours each: the one of this process, and all.

    Raises:
        ValueError: the processes cannot be divided like this; without GPUs a size has to be given.
        NotImplementedError: a `group` that is not that of all processes is to be divided.
    """
    if group is not None and group is not GroupMember.WORLD:
        raise NotImplementedError("new_subgroups(group=...) of a part is not implemented")
    if group_size is None:
        raise ValueError(
            "Default group size only takes effect when CUDA is available."
            "If your subgroup using a backend that does not depend on CUDA,"
            "please pass in 'group_size' correctly."
        )
    size, length = get_world_size(), group_size
    if length <= 0:
        raise ValueError(f"The arg 'group_size' ({length}) must be positive")
    if length > size:
        raise ValueError(f"The arg 'group_size' ({length}) must not exceed the world size ({size})")
    if size % length:
        raise ValueError(f"The world size ({size}) must be divisible by '{length}'")
    lists = [list(range(start, start + length)) for start in range(0, size, length)]
    return new_subgroups_by_enumeration(lists, timeout, backend, pg_options, group_desc)


def new_subgroups_by_enumeration(ranks_per_subgroup_list: list[list[int]],
                                 timeout: timedelta | None = None, backend: str | None = None,
                                 pg_options: Any = None,
                                 group_desc: str | None = None) -> Any:  # fmt: skip
    """Groups of the ranks in each list: the one of this process, and all.

    Raises:
        ValueError: there are none, or a rank is in two.
    """
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    seen: dict[int, list[int]] = {}
    for ranks in ranks_per_subgroup_list:
        for rank in ranks:
            if rank in seen:
                raise ValueError(
                    f"Rank {rank} has appeared in both subgroup {seen[rank]} and {ranks}"
                )
            seen[rank] = ranks
    made = [new_group(ranks, timeout, backend, group_desc=group_desc)
            for ranks in ranks_per_subgroup_list]  # fmt: skip
    mine = [each for each in made if isinstance(each, ProcessGroup)]
    return mine[0] if mine else None, made


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """End a group; that of all processes ends all.

    Raises:
        AssertionError: there is none. ValueError: it has ended.
    """
    if is_outside(group):
        return
    ended = GroupMember.WORLD if group is None else group
    if ended is None:
        raise AssertionError("Process group cannot be None")
    if ended is GroupMember.WORLD:
        _end_all()
        return
    if ended not in State.groups.values():
        raise ValueError("Invalid process group specified")
    del State.groups[ended.group_name]
    ended.close()


def _end_all() -> None:
    for each in State.groups.values():
        each.close()
    State.groups.clear()
    if State.mesh is not None:
        State.mesh.close()
    if State.communicator is not None:
        State.communicator.Free()
    State.mesh = State.communicator = State.store = None
    GroupMember.WORLD = None


@atexit.register
def _at_exit() -> None:
    """A process that ends takes leave of the others, unless MPI has ended before."""
    if State.mesh is not None:
        _end_all()


def get_rank(group: Any = None) -> int:
    """This process's rank in a group; -1 if it is not in it."""
    return -1 if is_outside(group) else the_group(group).rank()


def get_world_size(group: Any = None) -> int:
    """How many processes are in a group; -1 if this one is not in it."""
    return -1 if is_outside(group) else the_group(group).size()


def get_backend(group: Any = None) -> str:
    """The backend of a group."""
    return backends.Backend(the_group(group).name())


def get_backend_config(group: Any = None) -> str:
    """The backend of each kind of device."""
    name = the_group(group).name()
    return f"cpu:{name},cuda:{name}"


def get_default_backend_for_device(device: Any) -> str:
    """The backend for tensors on a device."""
    kind = getattr(device, "type", None) or str(device).partition(":")[0]
    of_device = {"cpu": "gloo", "cuda": "nccl", "meta": "fake"}
    if kind not in of_device:
        raise ValueError(f"Default backend not registered for device : {device}")
    return of_device[kind]


def get_process_group_ranks(group: Any) -> list[int]:
    """The ranks, in the world, of the processes of a group."""
    return list(the_group(group)._ranks)


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """The rank within a group of a rank of the world.

    Raises:
        ValueError: it is not in the group.
    """
    if group is GroupMember.WORLD:
        return global_rank
    ranks = the_group(group)._ranks
    if global_rank not in ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return ranks.index(global_rank)


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """The rank in the world of a rank of a group.

    Raises:
        ValueError: the group has no such rank.
    """
    if group is GroupMember.WORLD:
        return group_rank
    ranks = the_group(group)._ranks
    if not 0 <= group_rank < len(ranks):
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return ranks[group_rank]


def get_pg_count() -> int:
    """How many groups were made."""
    return State.made
