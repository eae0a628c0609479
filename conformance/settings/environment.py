"""Environment variables that PyTorch documents: those that act, and why others cannot.

python -m conformance.settings.environment            # the table
python -m conformance.settings.environment --write    # the table in docs/compatibility.md
"""

from __future__ import annotations

import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "compatibility.md"
BEGIN, END = "<!-- environment: begin -->\n", "<!-- environment: end -->\n"

ACT = (
    "MKL_NUM_THREADS", "OMP_NUM_THREADS", "PYTORCH_JIT", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "TORCH_FORCE_WEIGHTS_ONLY_LOAD", "TORCH_HOME",
)  # fmt: skip
"""What is read here, and does what it does in PyTorch: `test_environment.py`."""

ON_GPUS = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_NO_CUDA_MEMORY_CACHING")
"""What acts where there is a GPU, real or emulated: `tests/cuda/test_emulation.py`."""

REASONS = {
    "`CUDA_*`, `CUBLAS_*`, `CUBLASLT_*`, `CUDNN_*`, `NVIDIA_TF32_OVERRIDE`":
        "are read by NVIDIA's driver and libraries themselves",
    "`PYTORCH_NVML_BASED_CUDA_CHECK`":
        "which library is asked whether there is a GPU; here it is the driver in any case",
    "`TORCH_CUDNN_*`": "of PyTorch's own store of cuDNN's plans",
    "`TORCH_NCCL_*`, `NCCL_*`, `TORCH_DISTRIBUTED_DEBUG`":
        "NCCL, which is not there, and what PyTorch logs of processes",
    "`PYTORCH_MPS_*`, `PYTORCH_DEBUG_MPS_ALLOCATOR`, `PYTORCH_ENABLE_MPS_FALLBACK`":
        "hints for Apple's GPUs, which are not there",
    "`PYTORCH_TUNABLEOP_*`, `PYTORCH_ROCM_ARCH`, `HIP_VISIBLE_DEVICES`":
        "hints for AMD's GPUs, which are not there",
    "`TORCH_LOGS`, `TORCH_LOGS_OUT`, `TORCH_LOGS_FORMAT`, `TORCH_TRACE`, `TORCHDYNAMO_*`, "
    "`TORCHINDUCTOR_*`": "logs and options of `torch.compile`, which names itself as missing",
    "`TORCH_SHOW_CPP_STACKTRACES`, `TORCH_CPP_LOG_LEVEL`":
        "of code in C++; there is none, errors have Python's stack",
    "`TORCH_AUTOGRAD_SHUTDOWN_WAIT_LIMIT`":
        "waits for threads of backward; it runs in the caller's thread and leaves none",
    "`TORCH_DEVICE_BACKEND_AUTOLOAD`": "loads devices that are written in C++ for PyTorch",
    "`KINETO_*`": "PyTorch's library for profiles of GPUs",
    "`OMP_PROC_BIND`, `OMP_SCHEDULE`, `KMP_*`, `GOMP_CPU_AFFINITY`, `LD_PRELOAD`":
        "are read by OpenMP or the system, not by PyTorch; kernels here have threads of their own",
}  # fmt: skip
"""Others, and why nothing here could follow them."""


def table() -> str:
    """Both as Markdown."""
    lines = ["| Variables | |", "|---|---|"]
    lines.append(f"| {', '.join(f'`{name}`' for name in ACT)} | act as in PyTorch |")
    listed = ", ".join(f"`{name}`" for name in ON_GPUS)
    lines.append(f"| {listed} | act as documented, where there is a GPU |")
    lines += [f"| {names} | {reason} |" for names, reason in REASONS.items()]
    return "\n".join(lines) + "\n"


def with_table(page: str) -> str:
    """The page with the table as it is now."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{table()}{END}{after}"


if __name__ == "__main__":
    if "--write" in sys.argv:
        PAGE.write_text(with_table(PAGE.read_text("utf-8")), "utf-8")
    else:
        print(table(), end="")
