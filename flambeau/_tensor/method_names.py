"""What methods of Tensor are called where their names are read: `__qualname__` and `__module__`.

PyTorch writes most of them in C, for the class `torch._C.TensorBase`, and some in Python, in
`torch/_tensor.py`. Programs meet the difference in `__qualname__`, in errors and in pickles.
"""

from __future__ import annotations

from types import FunctionType

IN_PYTHON = frozenset(
    "__array__ __contains__ __deepcopy__ __dlpack__ __dlpack_device__ __floordiv__ __format__ "
    "__len__ __rdiv__ __reversed__ __rfloordiv__ __rlshift__ __rmatmul__ __rmod__ __rpow__ "
    "__rrshift__ __rsub__ backward dim_order eig index is_shared istft lstsq lu module_load norm "
    "register_hook register_post_accumulate_grad_hook resize resize_as solve split stft "
    "storage storage_type symeig unflatten unique unique_consecutive".split()
)
"""Methods that torch's Tensor defines in Python, which shows in how they print."""


def name_as_method(function: FunctionType, name: str) -> None:
    """Give a function that is a method of Tensor, and nothing else, the names of one."""
    in_python = name in IN_PYTHON
    function.__module__ = "torch._tensor" if in_python else "torch._C"
    function.__qualname__ = f"Tensor.{name}" if in_python else f"TensorBase.{name}"
