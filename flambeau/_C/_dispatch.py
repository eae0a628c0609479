"""`torch._C.DispatchKey`: names of the stages of a call. Those of autocast can be left out."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Any

from flambeau._core.autocast import settings

NAMES = (
    "Undefined CompositeExplicitAutogradNonFunctional CompositeExplicitAutograd "
    "CompositeImplicitAutogradNestedTensor CompositeImplicitAutograd AutogradNestedTensor "
    "AutogradOther Autograd Conjugate ZeroTensor Negative BackendSelect ADInplaceOrView "
    "PythonTLSSnapshot Python FuncTorchDynamicLayerFrontMode FuncTorchDynamicLayerBackMode "
    "FuncTorchBatchedDecomposition FuncTorchBatched FuncTorchVmapMode FuncTorchGradWrapper "
    "PythonDispatcher PreDispatch Functionalize AutocastCPU AutocastMPS AutocastXPU AutocastHPU "
    "AutocastIPU AutocastCUDA AutocastPrivateUse1 CPU CUDA MPS XPU HPU XLA Meta AutogradCPU "
    "AutogradCUDA AutogradMPS AutogradXPU AutogradMeta"
)
_enum: Any = enum.Enum
DispatchKey: Any = _enum("DispatchKey", NAMES, module="torch._C")
REGION = "Autocast"


class DispatchKeySet:
    """Some stages of a call."""

    def __init__(self, keys: Any = ()) -> None:
        given: Iterable[Any] = [keys] if isinstance(keys, DispatchKey) else keys
        self._keys = frozenset(given)

    def has(self, key: Any) -> bool:
        """Whether a stage is among them."""
        return key in self._keys

    def add(self, key: Any) -> DispatchKeySet:
        """These and one more."""
        return DispatchKeySet(self._keys | {key})

    def remove(self, key: Any) -> DispatchKeySet:
        """These without one."""
        return DispatchKeySet(self._keys - {key})

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self._keys | other._keys)

    def __and__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self._keys & other._keys)

    def __sub__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self._keys - other._keys)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DispatchKeySet) and self._keys == other._keys

    def __hash__(self) -> int:
        return hash(self._keys)

    def __repr__(self) -> str:
        order = list(DispatchKey)
        return f"DispatchKeySet({', '.join(k.name for k in sorted(self._keys, key=order.index))})"


class ExcludeDispatchKeyGuard:
    """A region without some stages: of those of autocast, the operators keep their precision.

    Raises:
        NotImplementedError: it is entered with another stage.
    """

    def __init__(self, keys: DispatchKeySet) -> None:
        others = sorted(key.name for key in keys._keys if not key.name.startswith(REGION))
        if others:
            raise NotImplementedError(f"calls without the stages {others} are not implemented")
        kinds = {kind: f"{REGION}{kind}".lower() for kind in settings.enabled}
        wanted = {key.name.lower() for key in keys._keys}
        self._kinds = [kind for kind, name in kinds.items() if name in wanted]
        self._before: dict[str, bool] = {}

    def __enter__(self) -> None:
        self._before = {kind: settings.enabled[kind] for kind in self._kinds}
        for kind in self._kinds:
            settings.set_enabled(kind, False)

    def __exit__(self, *error: object) -> None:
        for kind, was in self._before.items():
            settings.set_enabled(kind, was)
