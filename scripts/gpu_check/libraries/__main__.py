"""Runs every check, then every time; the package says how."""

from __future__ import annotations

import argparse
import platform
import sys
from typing import Any

from flambeau._runtime.cuda.libraries import cublaslt, cudnn, finding
from flambeau._runtime.cuda.memory import running
from scripts.gpu_check.libraries.arrays import REAL, TYPES
from scripts.gpu_check.libraries.convolutions import FUSED, check_attention, check_convolutions
from scripts.gpu_check.libraries.products import (
    check_epilogues,
    check_measuring,
    check_others,
    check_products,
    check_row_order,
    check_wide_images,
)
from scripts.gpu_check.libraries.report import Report
from scripts.gpu_check.libraries.times import (
    time_attention,
    time_convolutions,
    time_host,
    time_linear,
    time_products,
)
from scripts.gpu_check.libraries.transforms import check_fft, check_solver

ELSEWHERE = "/opt/torch/.venv/lib/python{}.{}/site-packages"
"""Where PyTorch and NVIDIA's wheels may lie, besides this Python's own packages."""


def _find_torch() -> Any:
    sys.path.append(ELSEWHERE.format(*sys.version_info[:2]))
    try:
        import torch

        return torch if torch.cuda.is_available() else None
    except Exception:
        return None


def versions() -> dict[str, Any]:
    """What is here."""
    gpu = running()
    found: dict[str, Any] = {"device": gpu.device_name(0), "python": platform.python_version()}
    for name in finding.LIBRARIES:
        try:
            found[name] = next(iter(finding.candidates(name)), None) if REAL else "stand-in"
        except Exception as failure:
            found[name] = str(failure)
    return found


def main() -> None:
    arguments = argparse.ArgumentParser(description="NVIDIA's libraries on a GPU")
    arguments.add_argument("--out", default="libraries.json")
    report = Report(arguments.parse_args().out)
    report.run("versions", versions)
    report.run("cuBLASLt", lambda: str(cublaslt.library(0).handle is not None))
    for name in TYPES:
        report.run(f"products {name}", lambda name=name: check_products(name))
    report.run("epilogues", check_epilogues)
    report.run("other products", check_others)
    report.run("measuring", check_measuring)
    if REAL:
        report.run("bias by row", check_row_order)
    report.run("cuDNN", lambda: str(cudnn.library(0).handle is not None))
    for name in FUSED:
        report.run(f"convolutions {name}", lambda name=name: check_convolutions(name), 25)
    report.run("attention", check_attention, 32)
    report.run("cuFFT", check_fft, 40)
    report.run("cuSOLVER", check_solver, 40)
    if REAL:
        times(report)
    report.run("wide images", check_wide_images)
    for name in ("bfloat16", "float64"):
        report.run(f"convolutions {name}", lambda name=name: check_convolutions(name))


def times(report: Report) -> None:
    """What needs a GPU."""
    torch = _find_torch()
    report.found["torch"] = None if torch is None else torch.__version__
    report.run("host us", time_host)
    report.run("time of products", lambda: time_products(torch))
    report.run("time of a linear layer", lambda: time_linear(torch))
    report.run("time of attention", lambda: time_attention(torch))
    report.run("time of convolutions", lambda: time_convolutions(torch))


if __name__ == "__main__":
    main()
