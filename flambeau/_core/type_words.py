"""What older messages call types of tensors."""

from __future__ import annotations

from typing import Any

WITH_TENSOR_TYPES = ("Byte", "Char", "Short", "Int", "Long", "Half", "Float", "Double")


def type_words(dtype: Any, sparse: bool = False) -> str:
    """`torch.FloatTensor`, and for types that came later, `CPUBFloat16Type`."""
    name = dtype.scalar_name
    if name in WITH_TENSOR_TYPES:
        return f"torch.{'sparse.' if sparse else ''}{name}Tensor"
    return f"{'Sparse' if sparse else ''}CPU{name}Type"
