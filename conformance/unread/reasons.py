"""Parameters that may be without effect, and why."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).parents[2] / "docs" / "compatibility.md"
BEGIN, END = "<!-- unread: begin -->\n", "<!-- unread: end -->\n"


class Reason(NamedTuple):
    """A parameter, or several, by a pattern of `path.parameter`."""

    what: str
    why: str
    pattern: str

    def fits(self, path: str, parameter: str) -> bool:
        return re.fullmatch(self.pattern, f"{path}.{parameter}") is not None


REASONS = (
    Reason(
        "`non_blocking` of `copy_`, `cuda`, and of storages",
        "a hint for transfers to devices that are not there",
        r".*\.(copy_|cuda|to|type)\.non_blocking",
    ),
    Reason(
        "arguments of methods of `torch.fx` that subclasses override, of `Graph.find_nodes(sort=)`",
        "the methods of the base need none of them; nodes always come in their order",
        r"torch\.fx\.((Interpreter|Transformer|Tracer)\.(get_attr|output|placeholder|getattr|"
        r"is_leaf_module)|Graph\.find_nodes|GraphModule\.__new__)\.\w+",
    ),
    Reason(
        "`torch.hub`: what is said of downloads, and `trust_repo`",
        "nothing is downloaded: repositories are folders, which the caller trusts by naming them",
        r"torch\.hub\.(download_url_to_file|help|list|load)\.\w+",
    ),
    Reason(
        "`torch.compile` but for `disable`, `torch.compiler.disable`; `is_backend_available`, "
        "`ProcessGroup`",
        "nothing is compiled, and no backend is there: the class raises, whatever it is given",
        r"torch\.((compiler\.)?compile\.(?!disable)|compiler\.disable\.|"
        r"distributed\.(ProcessGroup\.__init__|is_backend_available)\.)\w+",
    ),
    Reason(
        "`torch.distributed`: `device`, `device_id`, `device_ids`, `use_batch`, `pg_options`; "
        "`group_name` of `init_process_group`, `check_reduction` of `DistributedDataParallel`",
        "hints for GPUs and for NCCL, which are not there; PyTorch ignores the last two as well",
        r"torch\.(distributed|nn\.parallel)\.\w+\.(__init__\.)?(device|device_ids?|use_batch|"
        r"pg_options|group_name|check_reduction)",
    ),
    Reason(
        "`_stacklevel`, `allow_override` of `register_fake`; `keys` of `OpOverload.redispatch`",
        "no line is told, a later one takes the place in any case, and there are no keys to skip",
        r"torch\.(library|ops|_ops)\.(\w+\.)*(_stacklevel|allow_override|keys|args|kwargs)",
    ),
    Reason(
        "`can_use_flash_attention` and its like of `torch.backends.cuda`",
        "hints for kernels that are not there",
        r"torch\.backends\.cuda\.can_use_\w+\.(params|debug)",
    ),
    Reason(
        "`cudnn_enabled` of the norms",
        "a hint for hardware that is not there",
        r"torch\.\w+_norm\.cudnn_enabled?",
    ),
    Reason(
        "`device`, `stream`, `including_emulation` in `torch.cuda` and `torch.cpu`",
        "without a GPU PyTorch answers the same for every device; the CPU has one stream",
        r"torch\.(cuda|cpu)\.\w+\.(device|stream|including_emulation)",
    ),
    Reason(
        "`device_ids`, `output_device`, `dim` of `DataParallel`",
        "without a GPU there is one device, and nothing is split; so in PyTorch",
        r"torch\.nn\.DataParallel\.__init__\.\w+",
    ),
    Reason(
        "`stable=False`, `sorted=False` of `sort`, `topk`, `unique`",
        "they permit any order; ours is always stable and sorted",
        r"torch\.(Tensor\.)?(sort\.stable|(topk|unique)\.sorted)",
    ),
    Reason(
        "`assume_unique` of `isin`",
        "a promise that permits a quicker way; PyTorch's answer is wrong if it is broken",
        r"torch\.isin\.assume_unique",
    ),
    Reason(
        "`x` and `y` of `log_abs_det_jacobian`",
        "both sides of a transform are handed over; its formula needs one",
        r"torch\.distributions\.\w+\.log_abs_det_jacobian\.[xy]",
    ),
    Reason(
        "`_preallocate_and_copy` of `torch.func.jacrev`",
        "how the pieces of a batch are put together; here they are joined at the end",
        r"torch\.func\.jacrev\._preallocate_and_copy",
    ),
    Reason(
        "what `__new__` is handed beside the class",
        "is for `__init__`, which reads it",
        r"torch\.(nn\.Container|Stream|cuda\.(Stream|Event))\.__new__\.(args|kwargs)",
    ),
    Reason(
        "how a `torch.Stream` or `torch.Event` of the CPU is to be made",
        "they do nothing there; those of a GPU are `torch.cuda`'s, which read it",
        r"torch\.(Stream|Event)\.__init__\.(device|priority|blocking|interprocess)",
    ),
    Reason(
        "`include_traces` of `cuda.MemPool.snapshot`",
        "its segments are listed; what happened to them is in the history of memory",
        r"torch\.cuda\.MemPool\.snapshot\.include_traces",
    ),
    Reason(
        "`inputs` and `t` of pruning methods",
        "what every method of the kind is handed; these need the mask alone",
        r"torch\.nn\.utils\.prune\.\w+\.(__call__\.inputs|compute_mask\.t)",
    ),
    Reason(
        "`implicit` of `expand`",
        "a mark for PyTorch's exporters; results don't depend on it there either",
        r"torch\.Tensor\.expand\.implicit",
    ),
    Reason(
        "`masked_grad` of `to_dense` of dense tensors",
        "is about sparse ones",
        r"torch\.Tensor\.to_dense\.masked_grad",
    ),
    Reason(
        "`ortho_iparams`, `ortho_fparams`, `ortho_bparams` of `lobpcg`",
        "limits of an iteration that PyTorch makes vectors orthogonal by; here it is one QR",
        r"torch\.lobpcg\.ortho_\w+",
    ),
    Reason(
        "`check_grad_dtypes` of `gradcheck`",
        "the engine gives gradients the type of their inputs before anyone can look",
        r"torch\.autograd\.gradcheck\.check_grad_dtypes",
    ),
    Reason(
        "`vectorize` of `jacobian` and `hessian`",
        "permits a quicker way; only strides of expanded results differ",
        r"torch\.autograd\.functional\.(jacobian|hessian)\.vectorize",
    ),
    Reason(
        "Arguments of `autograd.Function(...)`, `nn.Identity(...)`",
        "taken and ignored by documentation",
        r"torch\.(autograd\.Function|nn\.Identity)\.__init__\.\w+",
    ),
    Reason(
        "`types` of `overrides.redispatch_function`",
        "part of the protocol; PyTorch does not read it either",
        r"torch\.overrides\.redispatch_function\.types",
    ),
    Reason(
        "`return_indices` of `F.max_pool2d_with_indices` and its like",
        "they return indices, whatever it says; so in PyTorch",
        r"torch\.nn\.functional\.\w+_with_indices\.return_indices",
    ),
    Reason(
        "`the_type` of `jit.annotate`",
        "scripts read it; in Python the value is returned, as in PyTorch",
        r"torch\.jit\.annotate\.the_type",
    ),
    Reason(
        "`_store_inputs` of `jit.trace`, `_restore_shapes` of `jit.load`",
        "inputs of the trace as notes on the graph, which nothing computes with",
        r"torch\.jit\.(trace|trace_module|load)\._(store_inputs|restore_shapes)",
    ),
    Reason(
        "`use_python_export` of `export_chrome_trace`",
        "which of PyTorch's writers writes the same file; there is one here",
        r"torch\.autograd\.profiler\.profile\.export_chrome_trace\.use_python_export",
    ),
    Reason(
        "`check_invariants=None` of `sparse_coo_tensor`",
        "the check is done or left out as asked; that nobody asked is not warned of",
        r"torch\.sparse_coo_tensor\.check_invariants",
    ),
    Reason(
        "`batch_first` of `unpad_sequence`",
        "sequences depend on it; PyTorch turns the caller's tensor round, too, which is no promise",
        r"torch\.nn\.utils\.rnn\.unpad_sequence\.batch_first",
    ),
    Reason(
        "Offsets of views without elements (`as_strided`, `narrow`)",
        "nothing can be read there; ours is 0",
        r"(torch|Tensor)\.(as_strided_?\.storage_offset|narrow\.start)",
    ),
    Reason(
        "Complex numbers beside halves in `eq`, `ne`, and their in-place forms",
        "the warnings are about types that PyTorch goes through inside",
        r"(torch|Tensor)\.(eq|ne|not_equal)_?\.other",
    ),
    Reason(
        "`training` of `rrelu_` of halves",
        "PyTorch has no code for the type",
        r"(torch|Tensor|torch\.nn\.functional)\.rrelu_?\.training",
    ),
)


def reason(path: str, parameter: str) -> Reason | None:
    """Why a parameter may be ignored; None if it may not."""
    return next((entry for entry in REASONS if entry.fits(path, parameter)), None)


def table() -> str:
    """The reasons as Markdown."""
    lines = ["| Without effect | Why |", "|---|---|"]
    lines += [f"| {entry.what} | {entry.why} |" for entry in REASONS]
    return "\n".join(lines) + "\n"


def with_table(page: str) -> str:
    """The page with the table as it is now."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{table()}{END}{after}"
