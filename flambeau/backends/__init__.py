"""`torch.backends`: which of PyTorch's libraries are there (none), and their flags.

Flags can be set, as many programs do at their start, and are kept; they govern nothing here.
"""

from flambeau.backends import cpu, cuda, cudnn, mha, mkl, mkldnn, mps, openmp, opt_einsum

__all__ = ["cpu", "cuda", "cudnn", "mha", "mkl", "mkldnn", "mps", "openmp", "opt_einsum"]


def __getattr__(name: str) -> object:
    from flambeau._core.missing import missing

    return missing(__name__, name)
