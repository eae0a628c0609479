"""`torch.library`: operators of programs, which are called by `torch.ops` as PyTorch's own are.

    @torch.library.custom_op("mylib::double", mutates_args=())
    def double(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    double.register_autograd(lambda ctx, grad: grad * 2)
    torch.ops.mylib.double(torch.ones(3, requires_grad=True)).sum().backward()

`overloads.py`: `torch.ops`; `operators.py`: how a call runs; `libraries.py`: namespaces;
`custom_ops.py`: operators from functions; `triton.py`: those with
Triton's kernels; `inference.py`: schemas from annotations; `checking.py`:
`opcheck`.
"""

from __future__ import annotations

from typing import Any

from flambeau._core.missing import lazily
from flambeau.library.checking import OpCheckError, opcheck
from flambeau.library.custom_ops import (
    CustomOpDef,
    custom_op,
    register_autocast,
    register_autograd,
    register_fake,
    register_kernel,
    register_torch_dispatch,
    register_vmap,
)
from flambeau.library.inference import infer_schema
from flambeau.library.libraries import Library, _scoped_library, define, impl
from flambeau.library.operators import fallthrough_kernel
from flambeau.library.triton import triton_op, wrap_triton

__all__ = [
    "CustomOpDef", "Library", "OpCheckError", "custom_op", "define", "fallthrough_kernel",
    "get_ctx", "impl", "impl_abstract", "infer_schema", "opcheck", "register_autocast",
    "register_autograd", "register_fake", "register_kernel", "register_torch_dispatch",
    "register_vmap", "triton_op", "wrap_triton",
]  # fmt: skip

impl_abstract = register_fake
_ = _scoped_library


def get_ctx() -> Any:
    """What a fake kernel asks for symbolic sizes: None, for there are none."""
    return None


__getattr__ = lazily(__name__)
