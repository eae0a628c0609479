"""The public names of `torch.nn` and their signatures: what PyTorch documents is there."""

from __future__ import annotations

import importlib
import inspect

import pytest
import torch

import flambeau
from conformance.write_torch_names import belongs

MODULES = """
nn nn.functional nn.init nn.parameter nn.grad nn.common_types nn.attention nn.attention.bias
testing
""".split()
INNER = [f"nn.modules.{name}" for name in sorted(flambeau.nn.modules.FILES)]

# What PyTorch's modules hold besides their own: imports, helpers of its scripting language.
NOT_DOCUMENTED = set(
    """
    BroadcastingList1 BroadcastingList2 BroadcastingList3 DType Parameter Size T Tensor
    assert_int_or_pair boolean_dispatch constant_ device handle_torch_function has_torch_function
    has_torch_function_unary has_torch_function_variadic is_traceable_wrapper_subclass
    native_channel_shuffle xavier_normal_ xavier_uniform_ apply_permutation BackwardHook
    sync_batch_norm dtype is_flash_attention_available
""".split()
)
# These raise the error that names them: parts for CUDA, for quantised tensors, for compilers.
NOT_IMPLEMENTED = set(
    """
    ScalingType SwizzleType scaled_grouped_mm scaled_mm FileCheck register_flash_attention_impl
    activate_flash_attention_impl list_flash_attention_impls current_flash_attention_impl
    restore_flash_attention_impl SDPAParams can_use_efficient_attention can_use_flash_attention
""".split()
)


def public(module_name):
    module = importlib.import_module(f"torch.{module_name}")
    declared = frozenset(getattr(module, "__all__", []))
    for name, value in vars(module).items():
        if belongs(name, value, declared) and not inspect.ismodule(value):
            yield name, value


@pytest.mark.parametrize("module_name", [*MODULES, *INNER])
def test_names_are_there(module_name):
    ours = importlib.import_module(f"flambeau.{module_name}")
    missing = {name for name, _ in public(module_name) if not hasattr(ours, name)}
    assert missing <= NOT_DOCUMENTED | NOT_IMPLEMENTED


def described(function):
    """The parameters of a function; defaults that are functions count as one another."""
    rows = []
    for parameter in inspect.signature(function).parameters.values():
        default = parameter.default
        is_function = callable(default) and default is not inspect.Parameter.empty
        text = "function" if is_function else str(default).replace("flambeau", "torch")
        rows.append((parameter.name, parameter.kind, text))
    return rows


# Decorated in PyTorch, so that its signature says *args; or with more than PyTorch's.
OTHER_SIGNATURES = {
    "layer_norm": "takes `cudnn_enable` too, as torch.layer_norm does",
    "glu": "takes `axis` and `out` too",
    "Transformer": "`activation` defaults to the name of the function that PyTorch has",
    "TransformerEncoderLayer": "the same",
    "TransformerDecoderLayer": "the same",
}


@pytest.mark.parametrize("module_name", MODULES)
def test_signatures(module_name):
    ours = importlib.import_module(f"flambeau.{module_name}")
    different = {}
    for name, value in public(module_name):
        if not callable(value) or not hasattr(ours, name) or name in OTHER_SIGNATURES:
            continue
        try:
            expected = described(value)
        except ValueError:  # PyTorch's own is written in C++
            continue
        if [row[0] for row in expected] == ["args", "kwargs"]:
            continue
        if described(getattr(ours, name)) != expected:
            different[name] = inspect.signature(getattr(ours, name)), inspect.signature(value)
    assert different == {}


METHODS_OF = ["Module", "Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"]


@pytest.mark.parametrize("class_name", METHODS_OF)
def test_methods(class_name):
    theirs, ours = getattr(torch.nn, class_name), getattr(flambeau.nn, class_name)
    different = {}
    for name in dir(theirs):
        if name.startswith("_") or not callable(getattr(theirs, name)):
            continue
        expected, found = described(getattr(theirs, name)), described(getattr(ours, name))
        if found != expected:
            different[name] = found, expected
    assert different == {}


LAYERS = sorted(set(flambeau.nn.HOME) - {"DataParallel", "LinearCrossEntropyOptions"})


@pytest.mark.parametrize("class_name", LAYERS)
def test_methods_of_layers(class_name):
    """Public methods and class attributes of every layer."""
    theirs, ours = getattr(torch.nn, class_name), getattr(flambeau.nn, class_name)
    names = {name for name in dir(theirs) if not name.startswith("_")}
    assert names <= set(dir(ours))
    assert ours._version == theirs._version
