"""How public functions are recorded: which operator each is, where that is not plain.

`torch.relu` is `aten::relu`, `torch.linalg.inv` is `aten::linalg_inv`. For others a recipe says
what is recorded: it gets the trace, the function itself and the call's arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._core.device import CPU
from flambeau._core.tables import entering
from flambeau._tensor.tensor import Tensor, wrap
from flambeau.jit.frontend.builtins import is_functional
from flambeau.jit.ir import types as T
from flambeau.jit.operators import table
from flambeau.jit.trace.sizes import TracedInt, TracedSize

Recipe = Callable[[Any, Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]
RECIPES: dict[str, Recipe] = {}
"""By public name; of a method, the method's name."""


def call(trace: Any, name: str, itself: Callable[..., Any], args: tuple[Any, ...],
         kwargs: dict[str, Any]) -> Any:  # fmt: skip
    """Record a call of a public function, and run it."""
    found = RECIPES.get(name)
    if found is not None:
        return found(trace, itself, args, kwargs)
    aten = NAMES.get(name) or aten_name(name)
    if aten is not None:
        return trace.operator(aten, itself, args, kwargs)
    return trace.openly(name, itself, args, kwargs)


def aten_name(name: str) -> str | None:
    """The operator of a public name: "linalg_inv" for "linalg.inv"; None if there is none."""
    head, _, last = name.rpartition(".")
    if head == "nn.functional":
        spelled = [f"_nn_{last}", last] if is_functional(last) else []
    else:
        spelled = [f"{head}_{last}" if head in ("linalg", "fft", "special") else last]
    for one in spelled:
        if table.overloads(f"aten::{one}"):
            return one
    return None


NAMES = {
    "__add__": "add", "__radd__": "add", "__sub__": "sub", "__rsub__": "rsub", "__mul__": "mul",
    "__rmul__": "mul", "__truediv__": "div", "__lt__": "lt", "__le__": "le", "__gt__": "gt",
    "__ge__": "ge", "__eq__": "eq", "__ne__": "ne", "__and__": "__and__", "__or__": "__or__",
    "__xor__": "__xor__", "__floordiv__": "floor_divide", "__mod__": "remainder",
    "__pow__": "pow", "__matmul__": "matmul", "__neg__": "neg", "__invert__": "bitwise_not",
    "__abs__": "abs", "__lshift__": "__lshift__", "__rshift__": "__rshift__",
    "__iadd__": "add_", "__isub__": "sub_", "__imul__": "mul_", "__itruediv__": "div_",
    "__iand__": "__iand__", "__ior__": "__ior__", "__ixor__": "__ixor__", "__ipow__": "pow_",
    "__ifloordiv__": "floor_divide_", "__imod__": "remainder_",
    "negative": "neg", "swapaxes": "transpose", "swapdims": "transpose", "T": "numpy_T",
    "mT": "mT", "mH": "mH", "H": "matrix_H", "concat": "concat", "absolute": "abs",
    "data": "detach",
    "nn.functional.pad": "pad", "nn.functional.fold": "col2im",
    "_linear": "linear", "_linear_no_bias": "linear", "_linear_nd": "linear",
    "_linear_nd_no_bias": "linear", "nn.functional.logsigmoid": "log_sigmoid",
    "nn.functional.avg_pool2d": "avg_pool2d", "nn.functional.avg_pool3d": "avg_pool3d",
}  # fmt: skip
"""Operators of public names that are spelled otherwise."""


recipe = entering(RECIPES)
"""Make a function the recipe of public names."""


def bound(names: str, args: Sequence[Any], kwargs: dict[str, Any], **defaults: Any) -> list[Any]:
    """Arguments in the order of `names`."""
    wanted = names.split()
    given = dict(zip(wanted, args, strict=False)) | kwargs
    return [given.get(name, defaults.get(name)) for name in wanted]


def tuple_of(value: Any, count: int) -> list[Any]:
    """A number as that many."""
    return list(value) if isinstance(value, (tuple, list)) else [value] * count


# ---- sizes


@recipe("shape")
def _shape(trace: Any, itself: Any, args: Any, kwargs: Any) -> Any:
    shape = itself(*args, **kwargs)
    if not trace.knows(args[0]):
        return shape
    return TracedSize([size_of(trace, args[0], d, n) for d, n in enumerate(shape)])


@recipe("size")
def _size(trace: Any, itself: Any, args: Any, kwargs: Any) -> Any:
    found = itself(*args, **kwargs)
    if not trace.knows(args[0]):
        return found
    if isinstance(found, tuple):
        return TracedSize([size_of(trace, args[0], d, n) for d, n in enumerate(found)])
    dim = args[1] if len(args) > 1 else kwargs["dim"]
    return size_of(trace, args[0], dim, found)


@recipe("numel", "nelement")
def _numel(trace: Any, itself: Any, args: Any, kwargs: Any) -> Any:
    found = itself(*args, **kwargs)
    if not isinstance(args[0], Tensor) or not trace.knows(args[0]):
        return found
    node = trace.insert("aten::numel", [trace.value_of(args[0])], [T.INT])
    node.schema = table.overload("aten::numel")
    return _followed(trace, node.output, found)


def size_of(trace: Any, tensor: Tensor, dim: int, size: int) -> TracedInt:
    """One size of a tensor, followed by the trace."""
    dim_value = trace.graph.constant(int(dim))
    node = trace.insert("aten::size", [trace.value_of(tensor), dim_value], [T.INT])
    node.schema = table.overload("aten::size", "int")
    return _followed(trace, node.output, size)


def _followed(trace: Any, value: Any, number: int) -> TracedInt:
    node = trace.insert("prim::NumToTensor", [value], [T.TENSOR])
    node.schema = table.overload("prim::NumToTensor", "Scalar")
    tensor = wrap(np.array(int(number)))
    trace.know(tensor, node.output)
    node.output.type = T.tensor_with("Long(device=cpu)")
    return TracedInt(int(number), tensor, trace)


# ---- what makes Python values


def _converting(word: str, how: Callable[[Tensor], Any] | None = None) -> Recipe:
    def convert(trace: Any, itself: Any, args: Any, kwargs: Any) -> Any:
        if trace.knows(args[0]):
            trace.warn(word)
        return trace.silently(itself, *args, **kwargs)

    return convert


for _name, _word in {"__bool__": "boolean", "__int__": "integer", "__float__": "float",
                     "__index__": "index", "tolist": "list", "numpy": "array",
                     "__array__": "array", "item": "number", "__len__": "length",
                     "__complex__": "number", "__contains__": "boolean"}.items():  # fmt: skip
    RECIPES[_name] = _converting(_word)


@recipe("__iter__")
def _iterate(trace: Any, itself: Any, args: Any, kwargs: Any) -> Any:
    if trace.knows(args[0]):
        trace.warn("iteration")
    return iter(args[0].unbind(0))


@recipe("tensor", "as_tensor", "from_numpy")
def _constant(trace: Any, itself: Any, args: Any, kwargs: Any) -> Any:
    name = itself.__name__
    if args and isinstance(args[0], Tensor) and name == "as_tensor":
        return trace.openly(name, itself, args, kwargs)
    if args and isinstance(args[0], TracedInt):
        return args[0].tensor
    trace.warn(name if name in ("tensor", "as_tensor", "from_numpy") else "tensor")
    made = trace.silently(itself, *args, **kwargs)
    result = trace.silently(made.detach)
    if result.requires_grad:
        return made
    with trace.paused():
        source = result.clone()
    trace.know(source, trace.graph.constant(source, T.TENSOR))
    placed = trace.operator("to", lambda *a: result, (source, CPU, result.dtype), {})
    return trace.operator("detach", lambda t: made, (placed,), {})


# ---- conversions


def _to_dtype(element: dt.dtype) -> Recipe:
    def convert(trace: Any, itself: Any, args: Any, kwargs: Any) -> Any:
        given = (args[0], element, False, False, None)
        return trace.operator("to", itself, args, kwargs, given=given, named={})

    return convert


for _name, _element in dt.CASTS.items():
    if _name != "chalf":  # which scripts do not know
        RECIPES[_name] = _to_dtype(_element)


@recipe("cpu")
def _cpu(trace: Any, itself: Any, args: Any, kwargs: Any) -> Any:
    return _to_device(trace, itself, args, kwargs, args[0].dtype)


def _to_device(trace: Any, itself: Any, args: Any, kwargs: Any, element: Any) -> Any:
    named = {"dtype": element, "layout": args[0].layout, "device": args[0].device,
             "pin_memory": None, "non_blocking": False, "copy": False,
             "memory_format": None}  # fmt: skip
    return trace.operator("to", itself, args, kwargs, given=(args[0],), named=named)


@recipe("to")
def _to(trace: Any, itself: Any, args: Any, kwargs: Any) -> Any:
    """`to(dtype)`, or with a device the form that says all of a tensor's options."""
    rest = [*args[1:], *kwargs.values()]
    if any(isinstance(item, Tensor) for item in rest):
        return trace.operator("to", itself, args, kwargs)
    places = [item for item in rest if isinstance(item, str) or type(item).__name__ == "device"]
    elements = [item for item in rest if isinstance(item, dt.dtype)]
    if places and elements:
        flags = [bool(kwargs.get(word, False)) for word in ("non_blocking", "copy")]
        given = (args[0], places[0], elements[0], *flags, kwargs.get("memory_format"))
        return trace.operator("to", itself, args, kwargs, given=given, named={})
    if places:
        return _to_device(trace, itself, args, kwargs, args[0].dtype)
    return trace.operator("to", itself, args, kwargs)


@recipe("is_floating_point", "is_complex", "dtype", "device", "clone_", "requires_grad")
def _silent(trace: Any, itself: Any, args: Any, kwargs: Any) -> Any:
    return trace.silently(itself, *args, **kwargs)


# ---- indexing


@recipe("__getitem__")
def _getitem(trace: Any, itself: Any, args: Any, kwargs: Any) -> Any:
    from flambeau.jit.trace import indexing

    return indexing.get(trace, itself, *args)


@recipe("__setitem__")
def _setitem(trace: Any, itself: Any, args: Any, kwargs: Any) -> Any:
    from flambeau.jit.trace import indexing

    return indexing.set(trace, itself, *args)


# ---- norms


@recipe("nn.functional.normalize")
def _normalize(trace: Any, itself: Any, args: Any, kwargs: Any) -> Any:
    from flambeau.jit.trace import programs

    return trace.openly("normalize", programs.normalize, args, kwargs)


@recipe("norm")
def _norm(trace: Any, itself: Any, args: Any, kwargs: Any) -> Any:
    """`torch.norm` is the norm of vectors, whatever it is called with."""
    x, p, dim, keepdim, out, dtype = bound("self p dim keepdim out dtype", args, kwargs, p="fro",
                                           keepdim=False)  # fmt: skip
    if p == "nuc" or isinstance(p, str) and p != "fro":
        return trace.openly("norm", itself, args, kwargs)
    order = 2 if p in ("fro", None) else p
    dims = [dim] if isinstance(dim, int) else dim
    return trace.operator("linalg_vector_norm", itself, args, kwargs,
                          given=(x, order, dims, keepdim), named={"dtype": dtype})  # fmt: skip


@recipe("einsum")
def _einsum(trace: Any, itself: Any, args: Any, kwargs: Any) -> Any:
    equation, *operands = args
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = list(operands[0])
    if not isinstance(equation, str):
        return trace.openly("einsum", itself, args, kwargs)
    return trace.operator("einsum", itself, args, kwargs, given=(equation, operands), named={})


@recipe("broadcast_tensors", "meshgrid", "cartesian_prod", "block_diag", "atleast_1d",
        "atleast_2d", "atleast_3d", "chain_matmul")  # fmt: skip
def _of_several(trace: Any, itself: Any, args: Any, kwargs: Any) -> Any:
    """Tensors one by one, where the operator takes a list."""
    tensors = list(args[0]) if len(args) == 1 and isinstance(args[0], (list, tuple)) else list(args)
    name = itself.__name__
    if len(tensors) == 1 and name.startswith("atleast"):
        return trace.operator(name, itself, args, kwargs)
    indexing = {"indexing": "ij"} if name == "meshgrid" else {}
    return trace.operator(name, itself, args, kwargs, given=(tensors,),
                          named={**indexing, **kwargs})  # fmt: skip
