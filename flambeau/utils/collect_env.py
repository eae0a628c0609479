"""`torch.utils.collect_env`: what this machine and this Python have, for reports of faults.

    python -m torch.utils.collect_env

Commands of the system are asked where they are there; what cannot be found is None.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import flambeau
from flambeau import cuda, version

__all__ = ["get_env_info", "get_pretty_env_info", "pretty_str"]

Run = Callable[..., tuple[int, str, str]]

COMMON_PATTERNS = {"numpy", "optree", "torch", "triton"}
NVIDIA_PATTERNS = {
    "cublas", "cuda-cudart", "cuda-cupti", "cuda-libraries", "cuda-nvrtc", "cuda-opencl",
    "cuda-runtime", "cudnn", "cufft", "curand", "cusolver", "cusparse", "nccl", "nvjitlink",
    "nvtx",
}  # fmt: skip
PIP_PATTERNS = {"flake8", "flambeau", "llvmlite", "mypy", "onnx"}
CONDA_PATTERNS = {"cudatoolkit", "magma", "mkl", "soumith"}
NOT_FOUND = "Could not collect"
NOT_THERE = "N/A"


class SystemEnv(NamedTuple):
    """What a report tells. Texts; None where something could not be found."""

    torch_version: str
    is_debug_build: str
    cuda_compiled_version: str | None
    gcc_version: str | None
    clang_version: str | None
    cmake_version: str | None
    os: str | None
    libc_version: str
    python_version: str
    python_platform: str
    is_cuda_available: str
    cuda_runtime_version: str | None
    cuda_module_loading: str
    nvidia_driver_version: str | None
    nvidia_gpu_models: str | None
    cudnn_version: str | None
    is_xpu_available: str
    pip_version: str
    pip_packages: str
    conda_packages: str | None
    hip_compiled_version: str
    hip_runtime_version: str
    miopen_runtime_version: str
    caching_allocator_config: dict[str, Any] | str
    is_xnnpack_available: str
    cpu_info: str


# ---- commands


def run(command: str | list[str]) -> tuple[int, str, str]:
    """Run a command line, or a command by its words; its exit status, and what it wrote, ends
    stripped.

    >>> from flambeau.utils import collect_env
    >>> collect_env.run(["echo", "a b"])
    (0, 'a b', '')
    """
    is_line = isinstance(command, str)
    done = subprocess.run(command, shell=is_line, capture_output=True, check=False)
    out, err = (text.decode(errors="replace").strip() for text in (done.stdout, done.stderr))
    return done.returncode, out, err


def run_and_read_all(run_lambda: Run, command: str | list[str]) -> str | None:
    """What a command wrote; None if it failed."""
    status, out, _ = run_lambda(command)
    return None if status else out


def run_and_return_first_line(run_lambda: Run, command: str | list[str]) -> str | None:
    """The first line that a command wrote; None if it failed."""
    out = run_and_read_all(run_lambda, command)
    return None if out is None else out.partition("\n")[0]


def run_and_parse_first_match(run_lambda: Run, command: str | list[str], regex: str) -> str | None:
    """The first group of a pattern in what a command wrote; None without one."""
    found = re.search(regex, run_and_read_all(run_lambda, command) or "")
    return found.group(1) if found else None


# ---- the parts


def get_gcc_version(run_lambda: Run) -> str | None:
    """Of the C compiler."""
    return run_and_parse_first_match(run_lambda, "gcc --version", r"gcc (.*)")


def get_clang_version(run_lambda: Run) -> str | None:
    """Of the other C compiler."""
    return run_and_parse_first_match(run_lambda, "clang --version", r"clang version (.*)")


def get_cmake_version(run_lambda: Run) -> str | None:
    """With the word `version` before it."""
    return run_and_parse_first_match(run_lambda, "cmake --version", r"cmake (.*)")


def get_platform() -> str:
    """`linux`, `win32`, `darwin`."""
    return sys.platform


def get_python_platform() -> str:
    """Python's name of the system."""
    return platform.platform()


def get_os(run_lambda: Run) -> str | None:
    """The system's name and version, and the machine's."""
    machine = platform.machine()
    if sys.platform == "darwin":
        found = run_and_return_first_line(run_lambda, "sw_vers -productVersion")
        return None if found is None else f"macOS {found} ({machine})"
    if sys.platform == "win32":
        return f"{platform.system()} {platform.release()} {platform.version()} ({machine})"
    try:
        return f"{platform.freedesktop_os_release()['PRETTY_NAME']} ({machine})"
    except OSError:
        return sys.platform


def get_libc_version() -> str:
    """`glibc-2.36`; "N/A" where there is none."""
    return "-".join(platform.libc_ver()) if sys.platform == "linux" else NOT_THERE


def get_cpu_info(run_lambda: Run) -> str:
    """What the system tells of its processors."""
    if sys.platform == "darwin":
        return run_and_read_all(run_lambda, "sysctl -n machdep.cpu.brand_string") or ""
    if sys.platform == "win32":
        return platform.processor()
    return run_and_read_all(run_lambda, "lscpu") or ""


def get_nvidia_smi() -> str:
    """The name of NVIDIA's command."""
    return "nvidia-smi"


def get_nvidia_driver_version(run_lambda: Run) -> str | None:
    """Of the driver for GPUs."""
    return run_and_parse_first_match(run_lambda, get_nvidia_smi(), r"Driver Version: (.*?) ")


def get_gpu_info(run_lambda: Run) -> str | None:
    """A line for each GPU, without the number that is its own."""
    out = run_and_read_all(run_lambda, f"{get_nvidia_smi()} -L")
    return None if out is None else re.sub(r" \(UUID: .+?\)", "", out)


def get_running_cuda_version(run_lambda: Run) -> str | None:
    """Of CUDA's compiler, which flambeau does without."""
    return run_and_parse_first_match(run_lambda, "nvcc --version", r"release .+ V(.*)")


def get_cudnn_version(run_lambda: Run) -> str | None:
    """The libraries' files, as the linker knows them."""
    linker = shutil.which("ldconfig") or "/sbin/ldconfig"
    out = run_and_read_all(run_lambda, f"{linker} -p") or ""
    files = sorted(set(re.findall(r"=> (\S*libcudnn\S*)", out)))
    if not files:
        return None
    return files[0] if len(files) == 1 else "\n".join(["Probably one of the following:", *files])


def get_cuda_module_loading_config() -> str:
    """When the driver loads kernels; "N/A" without a GPU."""
    if not cuda.is_available():
        return NOT_THERE
    return os.environ.get("CUDA_MODULE_LOADING", "LAZY")


def get_cachingallocator_config() -> dict[str, str]:
    """Variables of the environment that set the allocator of GPU memory."""
    names = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
    return {name: os.environ[name] for name in names if name in os.environ}


def is_xnnpack_available() -> str:
    """Always `"False"`: flambeau compiles kernels of its own."""
    return "False"


def get_pip_packages(run_lambda: Run, patterns: Collection[str] | None = None) -> tuple[str, str]:
    """`pip3`, and a line `name==version` for each installed distribution whose name has one of the
    patterns in it.
    """
    wanted = COMMON_PATTERNS | PIP_PATTERNS | NVIDIA_PATTERNS if patterns is None else patterns
    found = {
        f"{distribution.name}=={distribution.version}"
        for distribution in importlib.metadata.distributions()
        if distribution.name and any(part in distribution.name for part in wanted)
    }
    return "pip3" if sys.version_info.major == 3 else "pip", "\n".join(sorted(found))


def get_conda_packages(run_lambda: Run, patterns: Collection[str] | None = None) -> str | None:
    """Lines of `conda list` that have one of the patterns in them; None without conda."""
    wanted = COMMON_PATTERNS | CONDA_PATTERNS | NVIDIA_PATTERNS if patterns is None else patterns
    conda = shutil.which("conda")
    out = run_and_read_all(run_lambda, f"{conda} list") if conda else None
    if out is None:
        return None
    lines = [line for line in out.splitlines() if not line.startswith("#")]
    return "\n".join(line for line in lines if any(part in line for part in wanted))


# ---- the whole


def get_env_info() -> SystemEnv:
    """All that a report tells.

    >>> import flambeau as torch
    >>> from flambeau.utils import collect_env
    >>> collect_env.get_env_info().torch_version == torch.__version__
    True
    """
    pip_version, pip_packages = get_pip_packages(run)
    python = sys.version.replace("\n", " ")
    return SystemEnv(
        torch_version=str(flambeau.__version__),
        is_debug_build=str(version.debug),
        cuda_compiled_version=version.cuda,
        gcc_version=get_gcc_version(run),
        clang_version=get_clang_version(run),
        cmake_version=get_cmake_version(run),
        os=get_os(run),
        libc_version=get_libc_version(),
        python_version=f"{python} ({sys.maxsize.bit_length() + 1}-bit runtime)",
        python_platform=get_python_platform(),
        is_cuda_available=str(cuda.is_available()),
        cuda_runtime_version=get_running_cuda_version(run),
        cuda_module_loading=get_cuda_module_loading_config(),
        nvidia_driver_version=get_nvidia_driver_version(run),
        nvidia_gpu_models=get_gpu_info(run),
        cudnn_version=get_cudnn_version(run),
        is_xpu_available="False",
        pip_version=pip_version,
        pip_packages=pip_packages,
        conda_packages=get_conda_packages(run),
        hip_compiled_version=NOT_THERE,
        hip_runtime_version=NOT_THERE,
        miopen_runtime_version=NOT_THERE,
        caching_allocator_config=get_cachingallocator_config(),
        is_xnnpack_available=is_xnnpack_available(),
        cpu_info=get_cpu_info(run),
    )


LINES = (
    ("PyTorch version", "torch_version"),
    ("Is debug build", "is_debug_build"),
    ("CUDA used to build PyTorch", "cuda_compiled_version"),
    ("ROCM used to build PyTorch", "hip_compiled_version"),
    ("", ""),
    ("OS", "os"),
    ("GCC version", "gcc_version"),
    ("Clang version", "clang_version"),
    ("CMake version", "cmake_version"),
    ("Libc version", "libc_version"),
    ("", ""),
    ("Python version", "python_version"),
    ("Python platform", "python_platform"),
    ("Is CUDA available", "is_cuda_available"),
    ("CUDA runtime version", "cuda_runtime_version"),
    ("CUDA_MODULE_LOADING set to", "cuda_module_loading"),
    ("GPU models and configuration", "nvidia_gpu_models"),
    ("Nvidia driver version", "nvidia_driver_version"),
    ("cuDNN version", "cudnn_version"),
    ("Is XPU available", "is_xpu_available"),
    ("HIP runtime version", "hip_runtime_version"),
    ("MIOpen runtime version", "miopen_runtime_version"),
    ("Is XNNPACK available", "is_xnnpack_available"),
    ("Caching allocator config", "caching_allocator_config"),
)
"""What stands before each field, in the order of a report; a gap where nothing does."""


def pretty_str(envinfo: SystemEnv) -> str:
    """The report of what was found, as people paste it into an issue."""
    lines = [f"{title}: {_shown(field, getattr(envinfo, field))}" if title else ""
             for title, field in LINES]  # fmt: skip
    lines += ["", "CPU:", envinfo.cpu_info, "", "Versions of relevant libraries:"]
    for manager, packages in ((envinfo.pip_version, envinfo.pip_packages),
                              ("conda", envinfo.conda_packages)):  # fmt: skip
        if packages:
            lines += [f"[{manager}] {line}" for line in packages.splitlines()]
        else:
            lines.append(f"[{manager}] {NOT_FOUND if packages is None else 'No relevant packages'}")
    return "\n".join(lines)


def _shown(field: str, value: Any) -> str:
    if value is None:
        return NOT_FOUND
    if value == {}:
        return NOT_THERE
    text = str(value)
    return f"\n{text}\n" if field == "nvidia_gpu_models" and "\n" in text else text


def get_pretty_env_info() -> str:
    """The report of this machine.

    >>> from flambeau.utils import collect_env
    >>> collect_env.get_pretty_env_info().startswith("PyTorch version: ")
    True
    """
    return pretty_str(get_env_info())


def main() -> None:
    """Print the report."""
    print("Collecting environment information...")
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
