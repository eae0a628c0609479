"""`torch.onnx`: what libraries ask before they export; the export itself is not here."""

from __future__ import annotations

from typing import Any

from flambeau._core.absent import absent_class, absent_function, absent_module
from flambeau._core.missing import lazily

ONNXProgram: Any = absent_class("torch.onnx.ONNXProgram")
OnnxExporterError: Any = type("OnnxExporterError", (RuntimeError,), {"__module__": "torch.onnx"})
export: Any = absent_function("torch.onnx.export")
_symbolics: dict[tuple[str, int], Any] = {}
"""How operators of libraries are to be exported, by name and version of ONNX."""

MODULES = {
    "operators": "reshape_from_tensor_shape shape_as_tensor",
    "symbolic_helper": "cast_pytorch_to_onnx",
    "symbolic_opset9": "masked_fill softmax",
    "symbolic_opset10": "",
    "symbolic_opset11": "",
    "symbolic_opset12": "dropout",
    "utils": "export",
    "_internal": "",
    "_internal.exporter": "ONNXProgram",
}


def is_in_onnx_export() -> bool:
    """Whether a model is being exported: never."""
    return False


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Any, opset_version: int) -> None:
    """Keep how an operator `namespace::name` is to be exported."""
    _symbolics[symbolic_name, opset_version] = symbolic_fn


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Forget how an operator is to be exported."""
    _symbolics.pop((symbolic_name, opset_version), None)


def _as_it_is(*args: Any, **kwargs: Any) -> Any:
    """A decorator of functions that an export would call, as they are."""
    return lambda function: function


for _name in sorted(MODULES):
    _module = absent_module(f"{__name__}.{_name}", MODULES[_name])
    if _name == "symbolic_helper":
        vars(_module).update(parse_args=_as_it_is, quantized_args=_as_it_is)


__getattr__ = lazily(__name__)
