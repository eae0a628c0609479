"""What to use instead of names that PyTorch has and flambeau has not."""

from __future__ import annotations

import re

BY_NAMESPACE = {
    "torch.ao": "quantized tensors are not there; half types under `torch.autocast` save memory",
    "torch.compile": "scripts: `torch.jit.script` joins operators into kernels",
    "torch._dynamo": "scripts: `torch.jit.script` joins operators into kernels",
    "torch.compiler": "scripts: `torch.jit.script` joins operators into kernels",
    "torch.export": "archives: `torch.jit.trace(model, x).save(path)`",
    "torch.onnx": "archives: `torch.jit.trace(model, x).save(path)`",
    "torch.nested": "padded tensors with a mask, or `torch.nn.utils.rnn.pack_sequence`",
    "torch.distributed": "processes and `DistributedDataParallel` (see the page on distributed)",
    "torch.cuda": "`torch.cuda` has what its page lists",
    "torch.xpu": "the CPU, or `torch.cuda`",
    "torch.mps": "the CPU",
    "torch.mtia": "the CPU, or `torch.cuda`",
    "torch.backends": "a switch of a library that is not used here; there is nothing to set",
    "torch.sparse": "tensors in coordinate form: `torch.sparse_coo_tensor`",
    "torch.quantization": "half types under `torch.autocast`",
    "torch.utils.cpp_extension": "`torch.library.custom_op` with NumPy, or a Python function",
    "torch.utils.tensorboard": "print, or matplotlib",
    "torch.package": "`torch.save`, or an archive of `torch.jit`",
    "torch.utils.benchmark": "`timeit`, or `flambeau.debug.profile`",
    "torch.nn.attention": "`torch.nn.functional.scaled_dot_product_attention`",
}
BY_PATTERN = [
    (r"(?i).*quant|^q(int|uint|scheme|_)|^(choose_qparams|dequantize|fake_quant)",
     "quantized tensors are not there; half types under `torch.autocast` save memory"),
    (r".*(csr|csc|bsr|bsc|compressed)", "coordinate form: `torch.sparse_coo_tensor`"),
    (r".*(mkldnn|cudnn|miopen|fbgemm|xnnpack|vulkan)", "the operator without that library's name"),
    (r".*_copy$", "the view of that name, and `.clone()`"),
    (r".*(Storage|Tensor)$", "`torch.tensor(..., dtype=...)`"),
    (r".*Type$", "Python's annotations; types of scripts are internal"),
    (r".*(Sym|sym_)", "plain ints: shapes are known when a program runs"),
    (r".*(nested|jagged)", "padded tensors with a mask"),
    (r".*(compile|dynamo|export)", "`torch.jit.script`, or `torch.jit.trace`"),
    (r".*(batch_norm_|_batch_norm)", "`torch.nn.functional.batch_norm`"),
    (r"^(init_num_threads|set_vital|read_vitals|vitals_enabled)$", "nothing: it has no effect on results"),
]  # fmt: skip
"""(what a name looks like, what to use instead), the first that fits."""

OTHERWISE = "an internal name of PyTorch's, or a part that is not there yet"


def what_instead(namespace: str, name: str) -> str:
    """What to use instead of a name."""
    for pattern, text in BY_PATTERN:
        if re.match(pattern, name):
            return text
    dotted = f"{namespace}.{name}"
    fits = [begin for begin in BY_NAMESPACE if dotted == begin or dotted.startswith(f"{begin}.")]
    return BY_NAMESPACE[max(fits, key=len)] if fits else OTHERWISE
