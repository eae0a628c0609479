"""Where NVIDIA's libraries lie: in its wheels, on the loader's path, or in a CUDA toolkit."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDERS_VARIABLE = "FLAMBEAU_CUDA_LIBRARIES"
"""An environment variable with folders that are looked into first."""
TOOLKITS = ("/usr/local/cuda/lib64", "/usr/local/cuda/targets/x86_64-linux/lib")


@dataclass(frozen=True, slots=True)
class Wanted:
    """A library: its file without a version, the versions that will do, best first, and the wheels
    that hold them."""

    file: str
    versions: tuple[str, ...]
    wheels: tuple[str, ...]


LIBRARIES = {
    "cuBLASLt": Wanted("libcublasLt.so", ("13", "12"), ("nvidia-cublas", "nvidia-cublas-cu12")),
    "cuDNN": Wanted("libcudnn.so", ("9",), ("nvidia-cudnn-cu13", "nvidia-cudnn-cu12")),
    "cuSOLVER": Wanted("libcusolver.so", ("12", "11"), ("nvidia-cusolver", "nvidia-cusolver-cu12")),
    "cuFFT": Wanted("libcufft.so", ("12", "11"), ("nvidia-cufft", "nvidia-cufft-cu12")),
}


class MissingLibrary(RuntimeError):
    """A library of NVIDIA's is not installed."""

    def __init__(self, name: str) -> None:
        wheels = LIBRARIES[name].wheels
        super().__init__(
            f"{name} is not installed; `pip install {wheels[0]}` brings it (CUDA 12: "
            f"`pip install {wheels[-1]}`), or set {FOLDERS_VARIABLE} to the folder that holds it"
        )


def _folders() -> Iterator[Path]:
    given = os.environ.get(FOLDERS_VARIABLE, "")
    yield from (Path(folder) for folder in given.split(os.pathsep) if folder)
    for entry in sys.path:
        yield from sorted(Path(entry or ".").glob("nvidia/*/lib"))


def candidates(name: str) -> Iterator[str]:
    """Files and names to hand to the loader, in the order in which they are tried."""
    wanted = LIBRARIES[name]
    folders = list(_folders())
    for version in wanted.versions:
        file = f"{wanted.file}.{version}"
        yield from (str(folder / file) for folder in folders if (folder / file).exists())
        yield file
        places = (Path(toolkit, file) for toolkit in TOOLKITS)
        yield from (str(place) for place in places if place.exists())


def load(name: str) -> ctypes.CDLL:
    """The library.

    Raises:
        MissingLibrary: it is found nowhere.
    """
    for candidate in candidates(name):
        try:
            return ctypes.CDLL(candidate)
        except OSError:
            continue
    raise MissingLibrary(name)
