"""What NVIDIA's own libraries say to our descriptors, where they are installed, without a GPU."""

from __future__ import annotations

import ctypes
import threading

import pytest

from flambeau._runtime.cuda.libraries import (
    cublaslt,
    cudnn,
    cudnn_numbers,
    cufft,
    cusolver,
    finding,
)
from flambeau._runtime.cuda.libraries import cublaslt_numbers as numbers
from flambeau._runtime.cuda.libraries.finding import MissingLibrary
from flambeau._runtime.cuda.libraries.foreign import Foreign, LibraryError
from flambeau._runtime.cuda.libraries.matrices import Stored, contiguous


def loaded(name: str) -> ctypes.CDLL:
    try:
        return finding.load(name)
    except MissingLibrary as missing:
        pytest.skip(str(missing).partition(";")[0])


def test_every_attribute_of_cublaslt_is_taken():
    lt = object.__new__(cublaslt.Lt)
    lt.foreign = Foreign(loaded("cuBLASLt"), numbers.SIGNATURES, numbers.WORDS)
    every = dict.fromkeys(numbers.DESCRIPTION, 1)
    for dtype in numbers.COMPUTE:
        lt.description(cublaslt.Kind(dtype, tf32=True), every)
        lt.layout(dtype, 8, 4, Stored(16, True, 128), 3)
    wish = lt._made("cublasLtMatmulPreferenceCreate")
    lt._put("MatmulPreference", wish, numbers.PREFERENCE, dict.fromkeys(numbers.PREFERENCE, 2))
    with pytest.raises(LibraryError, match="CUBLAS_STATUS_INVALID_VALUE when calling"):
        lt._put("MatmulPreference", wish, {"x": (1, ctypes.c_uint16)}, {"x": 1})


def test_the_heuristics_result_is_as_long_as_in_the_header():
    assert ctypes.sizeof(numbers.Found) == 64 + 8 + 4 + 4 + 16


@pytest.mark.parametrize("kind", ["forward", "data", "filter"])
@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_cudnn_takes_our_operations(kind, dtype, monkeypatch):
    """Up to the graph of them, which needs a device."""
    dnn = object.__new__(cudnn.Dnn)
    dnn.foreign = Foreign(loaded("cuDNN"), cudnn_numbers.SIGNATURES, cudnn_numbers.WORDS)
    dnn.handle, dnn.lock = 0, threading.RLock()
    monkeypatch.setattr(cudnn, "library", lambda device: dnn)
    monkeypatch.setattr(cudnn.Graph, "plan", lambda graph, wishes: len(graph.operations))
    x, w, y = (contiguous(shape) for shape in ((2, 8, 9, 9), (6, 4, 3, 3), (2, 6, 9, 9)))
    fused = kind == "forward"
    asked = cudnn.Convolution(kind, dtype, x, w, y, (1, 1), (1, 1), (1, 1), fused, fused)
    try:
        assert cudnn.convolution(asked, cudnn.Wishes()) == (3 if fused else 1)
    except LibraryError as error:
        if error.status == 1008:
            pytest.skip("cuDNN finds no driver")
        raise


@pytest.mark.parametrize(
    ("name", "module"), [("cuFFT", cufft), ("cuSOLVER", cusolver)], ids=lambda value: str(value)[:8]
)
def test_every_function_is_there(name, module):
    library = loaded(name)
    for function in module.SIGNATURES:
        assert getattr(library, function)


def test_a_library_that_is_missing_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(finding, "candidates", lambda name: iter(["/nowhere/libcudnn.so.9"]))
    with pytest.raises(MissingLibrary, match=r"cuDNN is not installed; `pip install nvidia-cudnn"):
        finding.load("cuDNN")


def test_folders_of_the_environment_come_first(monkeypatch, tmp_path):
    (tmp_path / "libcufft.so.12").write_bytes(b"")
    monkeypatch.setenv(finding.FOLDERS_VARIABLE, str(tmp_path))
    assert next(finding.candidates("cuFFT")) == str(tmp_path / "libcufft.so.12")
