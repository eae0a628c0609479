"""Everything that may be called, as the installed PyTorch tells it. Nothing of it is kept."""

from __future__ import annotations

import ast
import inspect
import types
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import torch as reference

import flambeau

from .signatures import Parameter, Target, from_definition, from_documentation, parameter

STUBS = Path(reference.__file__).parent
DOCUMENTED = ("linalg", "special", "fft", "nn.functional", "nn.init", "nn.utils", "nn.utils.rnn",
              "signal.windows")  # fmt: skip
CLASSES = ("nn", "optim.lr_scheduler", "utils.data")
"""Modules whose classes are made."""

UNWANTED = frozenset(
    """new empty empty_like empty_strided empty_permuted new_empty new_empty_strided resize_
    resize_as_ seed initial_seed cuda xpu mtia ipu set_ is_pinned pin_memory record_stream
    share_memory_
    from_file apply_ map_ map2_ register_hook as_subclass fork wait compile vmap cond save load
    backward data_ptr from_dlpack set_default_tensor_type set_default_device
    set_num_threads set_num_interop_threads manual_seed get_rng_state set_rng_state
    set_printoptions dequantize q_scale q_zero_point q_per_channel_scales int_repr
    q_per_channel_axis q_per_channel_zero_points choose_qparams_optimized conj conj_physical_
    resolve_conj resolve_neg view_as_complex_copy index_put_impl_ adjoint H mH is_conj is_neg
    values_copy indices_copy crow_indices_copy col_indices_copy ccol_indices_copy unsafe_chunk
    row_indices_copy hspmm smm sspaddmm to_sparse to_mkldnn sparse_mask to_sparse_csr
    to_sparse_csc to_sparse_bsr to_sparse_bsc sparse_resize_ sparse_resize_and_clear_
    names rename rename_ align_to align_as align_tensors refine_names unflatten_names
    make_dual unpack_dual get_device get_num_threads get_num_interop_threads
    init_num_threads retain_grad storage untyped_storage storage_type module_load
    from_numpy frombuffer asarray as_tensor sparse_coo_tensor
    grad_fn scaled_mm scaled_grouped_mm grouped_mm to_padded_tensor dsmm saddmm rrelu_with_noise
    rrelu_with_noise_ native_norm norm_except_dim fused_moving_avg_obs_fake_quant
    hash_tensor bernoulli_ native_dropout gradient embedding_bag""".split()
)
"""What gives memory as it is found, identities, needs another device or layout, or changes the
process; numbers that are drawn are compared elsewhere; `gradient` and `embedding_bag`, where
PyTorch writes beside its memory if `spacing` or `offsets` are tensors of odd sizes, and the process
dies later."""
FAMILIES = ("quantiz", "cudnn", "miopen", "mkldnn", "sparse", "sym_", "fbgemm", "nested", "named",
            "_dim_arange", "set_", "get_", "cond", "distributed", "Distributed", "DataParallel",
            "Lazy", "scaled_", "Worker", "DataLoader", "DataPipe")  # fmt: skip


def wanted(name: str) -> bool:
    return not name.startswith("_") and name not in UNWANTED and not any(
        family in name for family in FAMILIES
    )  # fmt: skip


@cache
def targets() -> list[Target]:
    """All that both libraries have."""
    found = {target.path: target for target in _all() if target.signatures}
    return [target for target in found.values() if _is_there(target.path)]


def missing() -> list[str]:
    """What PyTorch has and flambeau has not."""
    return [target.path for target in _all() if not _is_there(target.path)]


def _is_there(path: str) -> bool:
    return value_at(path, flambeau) is not None and value_at(path, reference) is not None


def value_at(path: str, library: Any) -> Any:
    """What a path names in a library; None where there is nothing."""
    value: Any = library
    for part in path.removeprefix("torch.").split("."):
        try:
            value = getattr(value, part, None)
        except ImportError:  # a part of the library that needs a package which is not here
            return None
    return value


def _all() -> Iterator[Target]:
    functions = ast.parse((STUBS / "_C/_VariableFunctions.pyi").read_text("utf-8"))
    yield from _defined("torch", functions.body)
    whole = ast.parse((STUBS / "_C/__init__.pyi").read_text("utf-8"))
    for node in whole.body:
        if isinstance(node, ast.ClassDef) and node.name == "TensorBase":
            yield from _defined("Tensor", node.body)
    yield from _defined(
        "torch.nn.functional", ast.parse((STUBS / "nn/functional.pyi").read_text("utf-8")).body
    )
    yield from _written_in_python("torch", reference.functional.__all__)
    yield from _written_in_python("Tensor", vars(reference.Tensor))
    for space in DOCUMENTED:
        yield from _documented(f"torch.{space}")
    for space in CLASSES:
        yield from _classes(f"torch.{space}")


def _defined(space: str, body: list[ast.stmt]) -> Iterator[Target]:
    found: dict[str, list[tuple[Parameter, ...]]] = defaultdict(list)
    for node in body:
        if isinstance(node, ast.FunctionDef) and wanted(node.name):
            listed = from_definition(node)
            bound = space == "Tensor" and listed[:1] and listed[0].name in ("self", "cls")
            found[node.name].append(listed[1:] if bound else listed)
    for name, signatures in found.items():
        yield Target(f"{space}.{name}", tuple(signatures))


def _written_in_python(space: str, names: Any) -> Iterator[Target]:
    for name in names:
        value = value_at(f"{space}.{name}", reference)
        if wanted(name) and isinstance(value, types.FunctionType):
            listed = _inspected(value)
            yield Target(f"{space}.{name}", (listed[1:] if space == "Tensor" else listed,))


def _documented(space: str) -> Iterator[Target]:
    module = value_at(space, reference)
    for name in sorted(vars(module)):
        value = getattr(module, name)
        if not wanted(name) or not callable(value) or isinstance(value, type):
            continue
        origin = getattr(value, "__module__", None) or space
        if not origin.startswith("torch") or name in ("boolean_dispatch", "handle_torch_function"):
            continue
        listed = from_documentation(value.__doc__ or "")
        if isinstance(value, types.FunctionType):
            listed = _inspected(value, listed)
        if listed is not None:
            yield Target(f"{space}.{name}", (listed,))


def _classes(space: str) -> Iterator[Target]:
    module = value_at(space, reference)
    for name, value in sorted(vars(module).items()):
        if isinstance(value, type) and wanted(name):
            yield Target(f"{space}.{name}", (_inspected(value),))


def _inspected(
    value: Any, documented: tuple[Parameter, ...] | None = None
) -> tuple[Parameter, ...]:
    """The parameters that Python tells, with the types that annotations or docstrings tell."""
    told = {p.name: p for p in documented or from_documentation(value.__doc__ or "") or ()}
    found = []
    try:
        signature = inspect.signature(value)
    except ValueError:
        return ()
    for name, given in signature.parameters.items():
        if given.kind is given.VAR_KEYWORD:
            continue
        text = "" if given.annotation is given.empty else str(given.annotation)
        default = {"default": given.default} if given.default is not given.empty else {}
        listed = parameter(
            name, text, **default, keyword_only=given.kind is given.KEYWORD_ONLY,
            variadic=given.kind is given.VAR_POSITIONAL,
        )  # fmt: skip
        if not listed.kind and name in told:
            kind, optional = told[name].kind, told[name].optional
            listed = Parameter(name, kind, optional, listed.default, listed.keyword_only,
                               listed.variadic)  # fmt: skip
        found.append(listed)
    return tuple(found)
