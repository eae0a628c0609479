"""`torch.utils.collect_env` beside PyTorch's on the same machine."""

from __future__ import annotations

import pytest
import torch.utils.collect_env as reference

from flambeau.utils import collect_env

OWN = ("torch_version", "pip_packages", "cuda_compiled_version", "is_cuda_available",
       "cuda_module_loading", "is_xnnpack_available")  # fmt: skip
"""What the libraries have of their own, not the machine."""


def test_fields() -> None:
    assert collect_env.SystemEnv._fields == reference.SystemEnv._fields
    ours, theirs = collect_env.get_env_info(), reference.get_env_info()
    for field in reference.SystemEnv._fields:
        if field not in OWN:
            assert getattr(ours, field) == getattr(theirs, field), field


def test_packages() -> None:
    ours, theirs = (library.get_pip_packages(library.run) for library in (collect_env, reference))
    assert ours[0] == theirs[0]
    own = [line for line in ours[1].splitlines() if not line.startswith(("flambeau", "llvmlite"))]
    assert own == theirs[1].splitlines()
    assert collect_env.get_pip_packages(collect_env.run, {"no such name"})[1] == ""


def test_report() -> None:
    info = reference.get_env_info()
    some = collect_env.SystemEnv(*info)
    assert collect_env.pretty_str(some) == reference.pretty_str(info)
    found = {"caching_allocator_config": {"PYTORCH_CUDA_ALLOC_CONF": "x:True"},
             "nvidia_gpu_models": "GPU 0: A\nGPU 1: B", "cudnn_version": "a\nb"}  # fmt: skip
    ours, theirs = some._replace(**found), info._replace(**found)
    assert collect_env.pretty_str(ours) == reference.pretty_str(theirs)


@pytest.mark.parametrize("command", ["echo hi; exit 3", ["echo", "a b"], "no-such-command",
                                     "printf 'a\\nb\\n'", "echo x >&2"])  # fmt: skip
def test_run(command: str | list[str]) -> None:
    assert collect_env.run(command) == reference.run(command)
    for name in ("run_and_read_all", "run_and_return_first_line"):
        ours, theirs = (getattr(library, name)(library.run, command)
                        for library in (collect_env, reference))  # fmt: skip
        assert ours == theirs


@pytest.mark.parametrize("regex", ["x(.)z", "q(.)z"])
def test_first_match(regex: str) -> None:
    ours, theirs = (library.run_and_parse_first_match(library.run, "echo xyz", regex)
                    for library in (collect_env, reference))  # fmt: skip
    assert ours == theirs


def test_tools_that_are_there(tmp_path, monkeypatch) -> None:
    """Commands as a machine with a GPU and conda has them."""
    listed = "GPU 0: H (UUID: GPU-1)"
    tools = {
        "nvidia-smi": f'[ "$1" = -L ] && echo "{listed}" || echo "Driver Version: 550.1  |"',
        "nvcc": 'echo "Cuda compilation tools, release 12.8, V12.8.61"',
        "clang": 'echo "Debian clang version 14.0.6"',
    }
    for name, text in tools.items():
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    for name in ("get_gpu_info", "get_nvidia_driver_version", "get_running_cuda_version",
                 "get_clang_version"):  # fmt: skip
        ours, theirs = (getattr(library, name)(library.run) for library in (collect_env, reference))
        assert ours == theirs, name
        assert ours
