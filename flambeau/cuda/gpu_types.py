"""Types of tensors on a GPU, `torch.cuda.FloatTensor`: called, they make tensors there."""

from __future__ import annotations

from typing import Any

from flambeau._core.device import Cuda
from flambeau._ops.factories import typed
from flambeau._tensor.tensor import Tensor


class CudaTypedMeta(typed.TypedMeta):
    """`torch.cuda.FloatTensor` and its like; `isinstance` asks device and type."""

    place = "cuda"

    def __call__(cls, *args: Any, device: Any = None) -> Any:
        made: Any = typed.legacy(cls.element, args, any_type=False)
        return made.to(f"cuda:{Cuda.current}")

    def __instancecheck__(cls, instance: Any) -> bool:
        on_gpu = isinstance(instance, Tensor) and instance.is_cuda
        return on_gpu and instance.dtype is cls.element

    def __repr__(cls) -> str:
        return f"<class 'torch.cuda.{cls.__name__}'>"


TYPES: dict[str, Any] = {
    name: CudaTypedMeta(name, (), {"element": element, "__module__": "torch.cuda",
                                   "__doc__": f"Makes and recognises GPU tensors of {element}."})
    for name, element in typed.NAMES.items() if not name.startswith("Complex")
}  # fmt: skip
