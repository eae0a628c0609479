"""Programs with meshes of processes. Each is called in every rank, under PyTorch and flambeau."""

from __future__ import annotations

import importlib
from typing import Any


def meshes(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """All that follows, in the same processes."""
    for program in (named_mesh, mesh_errors, cube):
        program(torch, dist, rank, size, record, seed)


def named_mesh(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """A mesh of two named dims: its sizes, places, groups and parts."""
    meshes = importlib.import_module(f"{torch.__name__}.distributed.device_mesh")
    mesh = meshes.init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("dp", "tp"))
    record("mesh", lambda: [repr(mesh), mesh.mesh, mesh.ndim, list(mesh.shape), mesh.size()])
    record("place", lambda: [mesh.get_coordinate(), mesh.get_rank(), mesh.size(0), mesh.size(1)])
    for name in ("dp", "tp", 0, 1):
        record(f"rank {name}", lambda name=name: mesh.get_local_rank(name))
        record(f"group {name}", lambda name=name: _sum_in(torch, dist, mesh.get_group(name), rank))
    for name in ("dp", "tp"):
        part = mesh[name]
        record(f"part {name}", lambda part=part: [repr(part), part.mesh, part.get_local_rank()])
        record(f"sum {name}", lambda part=part: _sum_in(torch, dist, part.get_group(), rank))
    record("flat", lambda: [repr(mesh._flatten("all")), repr(mesh["all"]), mesh["all"].mesh])
    record("sum all", lambda: _sum_in(torch, dist, mesh["all"].get_group(), rank))
    record("same", lambda: [mesh["dp"] == mesh["dp"], mesh["dp"] == mesh["tp"], mesh == 3])
    over = meshes.DeviceMesh.from_group
    group = mesh.get_group("tp")
    record("over", lambda: repr(over(group, "cpu", mesh_dim_names=("x",))))
    groups = mesh.get_all_groups()
    record("over two", lambda: repr(over(groups, "cpu", mesh=mesh.mesh, mesh_dim_names=("x", "y"))))
    record("over two without names", lambda: repr(over(groups, "cpu", mesh=mesh.mesh)))
    record("over none", lambda: over([], "cpu"))
    record("over two unsaid", lambda: over(mesh.get_all_groups(), "cpu"))


def _sum_in(torch: Any, dist: Any, group: Any, rank: int) -> list[Any]:
    """Who is in a group, and that it works."""
    total = torch.tensor([float(rank)])
    dist.all_reduce(total, group=group)
    return [dist.get_process_group_ranks(group), total]


def mesh_errors(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """What meshes refuse."""
    meshes = importlib.import_module(f"{torch.__name__}.distributed.device_mesh")
    init = meshes.init_device_mesh
    mesh = init("cpu", (2, size // 2), mesh_dim_names=("dp", "tp"))
    record("no such name", lambda: mesh["x"])
    record("order", lambda: mesh["tp", "dp"])
    record("which rank", mesh.get_local_rank)
    record("which group", mesh.get_group)
    record("no such group", lambda: mesh.get_group("x"))
    record("not of this part", lambda: mesh["dp"].get_group("tp"))
    record("no names", lambda: init("cpu", (size,))["x"])
    record("too large", lambda: init("cpu", (size, 2)))
    record("names", lambda: init("cpu", (size,), mesh_dim_names=("a", "b")))
    record("twice", lambda: init("cpu", (size, 1), mesh_dim_names=("a", "a")))
    record("index", lambda: init("cpu:0", (size,)))


def cube(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """A mesh of three dims, parts of it, parts made one, and one outside of which some are."""
    meshes = importlib.import_module(f"{torch.__name__}.distributed.device_mesh")
    mesh = meshes.init_device_mesh("cpu", (2, 1, size // 2), mesh_dim_names=("pp", "dp", "tp"))
    part = mesh["pp", "dp"]
    record("part", lambda: [part.mesh, part["dp"].mesh, part.mesh_dim_names])
    record("flat", lambda: [part._flatten().mesh, mesh["pp_dp"].mesh_dim_names])
    record("sum", lambda: _sum_in(torch, dist, mesh["pp_dp"].get_group(), rank))
    record("with flat", lambda: mesh["pp_dp", "tp"].mesh)
    record("apart", lambda: mesh["pp", "tp"].mesh)
    last = meshes.DeviceMesh("cpu", [size - 1])
    record("some", lambda: [last.get_coordinate(), repr(last)])
    split = meshes.init_device_mesh("cpu", (size,), mesh_dim_names=("all",))
    record("split", lambda: repr(split._unflatten(0, (2, size // 2), ("a", "b"))))
