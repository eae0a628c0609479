"""Modules of PyTorch whose features flambeau has not, and which libraries import all the same."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from flambeau._core.absent import absent_module

FUNCTIONAL = "FunctionalTensor FunctionalTensorMode mb_unwrap_functional_tensor"
FLEX = (
    "AuxOutput AuxRequest BlockMask FlexKernelOptions and_masks create_block_mask create_mask "
    "flex_attention noop_mask or_masks _mask_mod_signature _score_mod_signature"
)
EXPORT = (
    "AdditionalInputs Constraint CustomDecompTable Dim ExportBackwardSignature "
    "ExportGraphSignature ExportedProgram FlatArgsAdapter ModuleCallEntry ModuleCallSignature "
    "ShapesCollection UnflattenedModule default_decompositions dims draft_export export load "
    "register_dataclass save unflatten"
)
NAMES = {
    "_custom_ops": "custom_op get_ctx impl impl_abstract impl_backward impl_save_for_backward",
    "_inductor": "aot_compile compile standalone_compile",
    "_inductor.config": "",
    "_inductor.utils": "",
    "_subclasses.functional_tensor": FUNCTIONAL,
    "_subclasses.meta_utils": "MetaConverter",
    "export": EXPORT,
    "export.decomp_utils": "CustomDecompTable",
    "export.dynamic_shapes": "Dim",
    "nn.attention.flex_attention": FLEX,
    "utils.cpp_extension": "BuildExtension CUDAExtension CppExtension include_paths load "
    "load_inline",
}
"""Module below `torch`, and its names that libraries import: classes, and functions that refuse."""


VALUES: dict[str, dict[str, Any]] = {
    "utils.cpp_extension": {"CUDA_HOME": None, "ROCM_HOME": None},
    "nn.attention.flex_attention": {"_DEFAULT_SPARSE_BLOCK_SIZE": 128},
}
"""What such modules have all the same: sizes, and questions whose answer is no."""


def find_absent(dotted: str) -> ModuleType | None:
    """The module `flambeau.x`, made when it is first asked for, with those that it is in."""
    name = dotted.removeprefix("flambeau.")
    if name not in NAMES:
        return None
    if dotted not in sys.modules:
        find_absent(dotted.rpartition(".")[0])
        vars(absent_module(dotted, NAMES[name])).update(VALUES.get(name, {}))
    return sys.modules[dotted]
