"""Helpers around modules: gradients clipped, parameters reparametrized, pruned, fused or packed."""

from __future__ import annotations

from flambeau._core.missing import lazily

# These functions have the names of their files, which an import of the file would put here later.
from flambeau.nn.utils.spectral_norm import remove_spectral_norm, spectral_norm
from flambeau.nn.utils.weight_norm import remove_weight_norm, weight_norm

FILES = {
    "clip_grad": (
        "clip_grad_norm clip_grad_norm_ clip_grad_value_ clip_grads_with_norm_ get_total_norm"
    ),
    "convert_parameters": "parameters_to_vector vector_to_parameters",
    "fusion": ("fuse_conv_bn_eval fuse_conv_bn_weights fuse_linear_bn_eval fuse_linear_bn_weights"),
    "init": "skip_init",
    "memory_format": "convert_conv2d_weight_memory_format convert_conv3d_weight_memory_format",
}
HOME = {name: file for file, names in FILES.items() for name in names.split()}
SUBMODULES = frozenset((*FILES, "parametrizations", "parametrize", "prune", "rnn", "stateless"))
__all__ = [  # noqa: PLE0604
    "remove_spectral_norm",
    "remove_weight_norm",
    "spectral_norm",
    "weight_norm",
    *HOME,
]


__getattr__ = lazily(__name__, HOME, SUBMODULES)


def __dir__() -> list[str]:
    return sorted({*__all__, *SUBMODULES})
