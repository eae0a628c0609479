"""Every setter and every flag: values for it, one of them illegal, and what tells what was set."""

from __future__ import annotations

from dataclasses import dataclass

BOOL = ("True", "False", "3", "'on'")
PRECISION = ("'ieee'", "'tf32'", "'bf16'", "'none'", "'fp8'", "3")
ALL_PRECISIONS = (
    "torch.backends.fp32_precision", "torch.backends.cuda.matmul.fp32_precision",
    "torch.backends.cudnn.fp32_precision", "torch.backends.cudnn.conv.fp32_precision",
    "torch.backends.cudnn.rnn.fp32_precision", "torch.backends.mkldnn.fp32_precision",
    "torch.backends.mkldnn.matmul.fp32_precision", "torch.backends.mkldnn.conv.fp32_precision",
    "torch.backends.mkldnn.rnn.fp32_precision", "torch.backends.cuda.matmul.allow_tf32",
    "torch.backends.cudnn.allow_tf32", "torch.get_float32_matmul_precision()",
)  # fmt: skip


@dataclass(frozen=True)
class Setting:
    """How a setting is set: an attribute, or a call with `{}` for the value."""

    path: str
    values: tuple[str, ...]
    reads: tuple[str, ...] = ()
    call: bool = False

    @property
    def name(self) -> str:
        return self.path.partition("(")[0]

    def program(self) -> list[str]:
        """What sets each value and reads after each."""
        reads = self.reads if self.call else (f"torch.{self.path}", *self.reads)
        lines = list(reads)
        for value in self.values:
            text = self.path.format(value) if self.call else f"{self.path} = {value}"
            lines += [f"torch.{text}", *reads]
        return lines


def _flag(path: str, *reads: str, values: tuple[str, ...] = BOOL) -> Setting:
    return Setting(path, values, reads)


def _call(path: str, *reads: str, values: tuple[str, ...] = BOOL) -> Setting:
    text = path if "{}" in path else f"{path}({{}})"
    return Setting(text, values, tuple(f"torch.{read}" for read in reads), call=True)


TYPES = ("torch.float64", "torch.float16", "torch.bfloat16", "torch.int64", "'float32'", "None")
DETERMINISTIC = ("get_deterministic_debug_mode()", "are_deterministic_algorithms_enabled()",
                 "is_deterministic_algorithms_warn_only_enabled()")  # fmt: skip
PRINTED = ("tensor([1/3, 1e10, float('nan')])", "arange(2000.) / 7")

SETTINGS = (
    # ---- torch.backends
    _flag("backends.fp32_precision", *ALL_PRECISIONS, values=PRECISION),
    _flag("backends.cuda.matmul.fp32_precision", *ALL_PRECISIONS, values=PRECISION),
    _flag("backends.cuda.matmul.allow_tf32", *ALL_PRECISIONS),
    *(
        _flag(
            f"backends.cuda.matmul.allow_{kind}_reduced_precision_reduction",
            f"torch.backends.cuda.matmul.allow_{kind}_reduced_precision_reduction_split_k",
            values=(*BOOL, "(False, False)", "(True, False)", "[False]", "(False, 1)", "()"),
        )
        for kind in ("fp16", "bf16")
    ),
    _flag("backends.cuda.matmul.allow_fp16_accumulation"),
    _flag("backends.cuda.matmul.nothing"),
    _flag("backends.cudnn.enabled"),
    _flag("backends.cudnn.benchmark"),
    _flag("backends.cudnn.benchmark_limit", values=("5", "None", "'many'")),
    _flag("backends.cudnn.deterministic"),
    _flag("backends.cudnn.allow_tf32", *ALL_PRECISIONS),
    _flag("backends.cudnn.fp32_precision", *ALL_PRECISIONS, values=PRECISION),
    _flag("backends.cudnn.conv.fp32_precision", *ALL_PRECISIONS, values=PRECISION),
    _flag("backends.cudnn.rnn.fp32_precision", *ALL_PRECISIONS, values=PRECISION),
    _flag("backends.cudnn.depthwise_kernel", values=("'auto'", "'cudnn'", "'native'", "'none'")),
    _flag("backends.mkldnn.enabled"),
    _flag("backends.mkldnn.deterministic"),
    _flag("backends.mkldnn.allow_tf32"),
    _flag("backends.mkldnn.fp32_precision", *ALL_PRECISIONS, values=PRECISION),
    _flag("backends.mkldnn.matmul.fp32_precision", *ALL_PRECISIONS, values=PRECISION),
    _flag("backends.mkldnn.conv.fp32_precision", *ALL_PRECISIONS, values=PRECISION),
    _flag("backends.mkldnn.rnn.fp32_precision", *ALL_PRECISIONS, values=PRECISION),
    _flag("backends.miopen.immediate"),
    _flag("backends.opt_einsum.enabled", values=("True", "False")),
    _flag("backends.opt_einsum.strategy", values=("'greedy'", "None")),
    _call("backends.set_flags", *(read.removeprefix("torch.") for read in ALL_PRECISIONS),
          values=PRECISION),
    _call("backends.cudnn.set_flags(_benchmark={})", "backends.cudnn.benchmark"),
    _call("backends.cudnn.set_flags(_benchmark_limit={})", "backends.cudnn.benchmark_limit",
          values=("5", "None")),
    _call("backends.mkldnn.set_flags(_deterministic={})", "backends.mkldnn.deterministic"),
    _call("backends.mkldnn.set_flags(_fp32_precision={})",
          *(read.removeprefix("torch.") for read in ALL_PRECISIONS), values=PRECISION),
    _call("backends.miopen.set_flags", "backends.miopen.immediate"),
    _call("backends.nnpack.set_flags"),
    _call("backends.opt_einsum.set_flags", "backends.opt_einsum.enabled"),
    _call("backends.opt_einsum.set_flags(None, {})", "backends.opt_einsum.strategy",
          values=("'greedy'", "None")),
    _call("backends.mha.set_fastpath_enabled", "backends.mha.get_fastpath_enabled()"),
    _call("backends.cuda.enable_flash_sdp", "backends.cuda.flash_sdp_enabled()"),
    _call("backends.cuda.enable_mem_efficient_sdp", "backends.cuda.mem_efficient_sdp_enabled()"),
    _call("backends.cuda.enable_math_sdp", "backends.cuda.math_sdp_enabled()"),
    _call("backends.cuda.enable_cudnn_sdp", "backends.cuda.cudnn_sdp_enabled()",
          values=("True", "False")),  # torch's error has a "%s" in it
    _call("backends.cuda.allow_fp16_bf16_reduction_math_sdp",
          "backends.cuda.fp16_bf16_reduction_math_sdp_allowed()"),
    _call("backends.cuda.preferred_linalg_library",
          "backends.cuda.preferred_linalg_library()",
          values=("'default'", "'cusolver'", "'magma'", "'lapack'", "3")),
    _call("backends.cuda.preferred_blas_library", "backends.cuda.preferred_blas_library()",
          values=("'default'", "'cublas'", "'cublaslt'", "'hipblaslt'", "'blas'", "3")),
    _call("backends.cuda.preferred_rocm_fa_library", "backends.cuda.preferred_rocm_fa_library()",
          values=("'default'", "'aotriton'", "'ck'", "'flash'", "3")),
    # ---- torch.distributed
    _call("distributed.set_debug_level", "distributed.get_debug_level()",
          values=("torch.distributed.DebugLevel.INFO", "torch.distributed.DebugLevel.OFF", "1",
                  "'INFO'", "None")),
    _call("distributed.set_debug_level_from_env", "distributed.get_debug_level()",
          values=("",)),
    # ---- torch
    _call("set_default_dtype", "get_default_dtype()", "tensor([1.0])", values=TYPES),
    _call("set_default_device", "get_default_device()", "ones(1)",
          values=("'cpu'", "'cpu:0'", "torch.device('cpu', 1)", "None", "'cuda'", "'nowhere'")),
    _call("set_default_tensor_type", "get_default_dtype()",
          values=("torch.DoubleTensor", "'torch.HalfTensor'", "torch.LongTensor",
                  "'torch.cuda.FloatTensor'")),
    _call("set_float32_matmul_precision",
          *(read.removeprefix("torch.") for read in ALL_PRECISIONS),
          values=("'high'", "'medium'", "'highest'", "'low'", "3")),
    _call("set_num_threads", "get_num_threads()",
          values=("3", "1", "0", "-1", "2.0", "True", "1 << 31", "1 << 70", "-(1 << 40)")),
    _call("set_num_interop_threads", "get_num_interop_threads()",
          values=("'3'", "0", "1 << 31", "1 << 70", "3", "4")),
    _call("set_flush_denormal", "tensor([1e-30]) * 1e-10", "tensor([1e-40]) * 1e10"),
    _call("set_warn_always", "is_warn_always_enabled()"),
    _call("set_printoptions(precision={})", *PRINTED, values=("2", "0", "6")),
    _call("set_printoptions(threshold={})", *PRINTED, values=("5", "10000")),
    _call("set_printoptions(edgeitems={})", *PRINTED, values=("1", "5")),
    _call("set_printoptions(linewidth={})", *PRINTED, values=("20", "200")),
    _call("set_printoptions(sci_mode={})", *PRINTED, values=("True", "False", "None")),
    _call("set_printoptions(profile={})", *PRINTED, values=("'short'", "'default'")),
    _call("use_deterministic_algorithms", *DETERMINISTIC),
    _call("use_deterministic_algorithms(True, warn_only={})", *DETERMINISTIC),
    _call("set_deterministic_debug_mode", *DETERMINISTIC,
          values=("0", "1", "2", "3", "'default'", "'warn'", "'error'", "'loud'", "1.0")),
    _flag("utils.deterministic.fill_uninitialized_memory"),
    _call("set_grad_enabled", "is_grad_enabled()"),
    _call("autograd.set_grad_enabled", "is_grad_enabled()"),
    _call("set_anomaly_enabled", "is_anomaly_enabled()"),
    _call("set_anomaly_enabled(True, {})", "is_anomaly_check_nan_enabled()"),
    _call("autograd.set_detect_anomaly", "is_anomaly_enabled()",
          values=("True", "False")),
    _call("autograd.set_detect_anomaly(True, {})", "is_anomaly_check_nan_enabled()",
          values=("True", "False")),
    _call("autograd.set_multithreading_enabled", "autograd.is_multithreading_enabled()",
          values=("True", "False")),
    _call("set_autocast_enabled('cpu', {})", "is_autocast_enabled('cpu')",
          "ones(1, 1) @ torch.ones(1, 1)"),
    _call("set_autocast_enabled({}, True)", "is_autocast_enabled('cpu')",
          values=("'cpu'", "'cuda'", "'nowhere'", "3")),
    _call("set_autocast_enabled", "is_autocast_enabled()"),
    _call("set_autocast_dtype('cpu', {})", "get_autocast_dtype('cpu')",
          values=("torch.float16", "torch.bfloat16", "torch.float32", "'half'")),
    _call("set_autocast_cache_enabled", "is_autocast_cache_enabled()"),
    *(
        _call(f"set_autocast_{kind}_enabled", f"is_autocast_{kind}_enabled()")
        for kind in ("cpu", "ipu", "xla")
    ),
    *(
        _call(f"set_autocast_{kind}_dtype", f"get_autocast_{kind}_dtype()",
              values=("torch.float16", "torch.bfloat16", "'half'"))
        for kind in ("cpu", "ipu", "xla", "gpu")
    ),
    _call("manual_seed", "initial_seed()", "rand(2)", values=("3", "-1", "2**63", "2**65", "'x'")),
    _call("random.manual_seed", "initial_seed()", "rand(2)", values=("3", "1.5")),
    _call("set_rng_state", "rand(2)",
          values=("(torch.manual_seed(4), torch.get_rng_state())[1]", "torch.zeros(3)",
                  "torch.zeros(3, dtype=torch.uint8)", "3")),
    _call("random.set_rng_state", "rand(2)",
          values=("(torch.manual_seed(4), torch.get_rng_state())[1]",)),
    # ---- torch.utils, torch.serialization, torch.jit
    _call("serialization.set_default_load_endianness",
          "serialization.get_default_load_endianness()",
          values=("torch.serialization.LoadEndianness.LITTLE", "None", "'big'")),
    _call("serialization.set_default_mmap_options", "serialization.get_default_mmap_options()",
          values=("__import__('mmap').MAP_PRIVATE", "__import__('mmap').MAP_SHARED", "7")),
    _call("serialization.set_crc32_options", "serialization.get_crc32_options()",
          values=("True", "False")),
    _call("__future__.set_overwrite_module_params_on_conversion",
          "__future__.get_overwrite_module_params_on_conversion()", values=("True", "False")),
    _call("__future__.set_swap_module_params_on_conversion",
          "__future__.get_swap_module_params_on_conversion()", values=("True", "False")),
    _call("jit.set_fusion_strategy",
          values=("[('STATIC', 2), ('DYNAMIC', 10)]", "[('STATIC', 2)]", "[('OTHER', 2)]")),
    _call("jit.enable_onednn_fusion", "jit.onednn_fusion_enabled()", values=("True", "False")),
    _call("cpu.set_device", "cpu.current_device()", values=("'cpu'", "0")),
)  # fmt: skip

ELSEWHERE = {
    "utils.checkpoint": "conformance/test_checkpoints.py",
    "cuda": "needs a GPU; tests/cuda",
    "cuda.random": "needs a GPU; tests/cuda",
    "hub": "a folder for files; tests/test_hub.py",
    "mps": "needs a GPU of Apple's",
    "xpu": "needs a GPU of Intel's",
    "mtia": "needs an accelerator",
    "accelerator": "needs an accelerator",
    "multiprocessing": "how processes share memory; tests of torch.multiprocessing",
}
"""Namespaces whose setters are tried in other places, or need what is not there."""
