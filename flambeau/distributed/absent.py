"""Modules of `torch.distributed` that are missing, which libraries import all the same."""

from __future__ import annotations

import sys
from typing import Any

from flambeau._core.absent import absent_module
from flambeau._core.missing import missing

FSDP = (
    "FullyShardedDataParallel MixedPrecision CPUOffload FullStateDictConfig LocalStateDictConfig "
    "ShardedStateDictConfig StateDictConfig FullOptimStateDictConfig LocalOptimStateDictConfig "
    "ShardedOptimStateDictConfig OptimStateDictConfig StateDictSettings FlatParameter "
    "share_comm_ctx"
)
FSDP_CHOICES = {
    "ShardingStrategy": "FULL_SHARD SHARD_GRAD_OP NO_SHARD HYBRID_SHARD _HYBRID_SHARD_ZERO2",
    "BackwardPrefetch": "BACKWARD_PRE BACKWARD_POST",
    "StateDictType": "FULL_STATE_DICT LOCAL_STATE_DICT SHARDED_STATE_DICT",
    "OptimStateKeyType": "PARAM_NAME PARAM_ID",
}
MODULES = {
    "_shard": "",
    "_shard.api": "",
    "_shard.sharded_tensor": "ShardedTensor Shard ShardedTensorMetadata TensorProperties",
    "checkpoint._consolidate_hf_safetensors": "consolidate_safetensors_files",
    "checkpoint._fsspec_filesystem": "FsspecReader FsspecWriter",
    "checkpoint.hf_storage": "HuggingFaceStorageReader HuggingFaceStorageWriter",
    "checkpoint.optimizer": "load_sharded_optimizer_state_dict",
    "fsdp._common_utils": "FSDP_WRAPPED_MODULE _FSDPState",
    "fsdp.sharded_grad_scaler": "ShardedGradScaler",
    "fsdp.wrap": (
        "CustomPolicy ModuleWrapPolicy enable_wrap wrap always_wrap_policy lambda_auto_wrap_policy "
        "size_based_auto_wrap_policy transformer_auto_wrap_policy _or_policy _Policy"
    ),
    "launcher.api": "LaunchConfig elastic_launch",
    "rpc": "RRef init_rpc rpc_async rpc_sync shutdown remote",
    "tensor.experimental._attention": "context_parallel set_rotate_method",
}
"""Module below `torch.distributed`, and the names that libraries import from it."""

FSDP_MODULES = ("fsdp.api", "fsdp.fully_sharded_data_parallel")


def make_modules() -> None:
    """Put the modules where an import finds them."""
    for name in sorted((*MODULES, *FSDP_MODULES)):
        names = MODULES.get(name, FSDP)
        choices = FSDP_CHOICES if name in FSDP_MODULES else None
        absent_module(f"flambeau.distributed.{name}", names, choices)
    rpc = absent_module("flambeau.distributed.rpc", MODULES["rpc"])
    vars(rpc)["is_available"] = lambda: False


def below(package: str, name: str) -> Any:
    """What a package has not itself: a module below it that is absent, or an error."""
    module = sys.modules.get(f"{package}.{name}")
    return module if module is not None else missing(package, name)
