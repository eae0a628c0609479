"""What a trace warns of, in torch's words."""

from __future__ import annotations

_CONVERTED = (
    "Converting a tensor to a Python {} might cause the trace to be incorrect. We can't record "
    "the data flow of Python values, so this value will be treated as a constant in the future. "
    "This means that the trace might not generalize to other inputs!"
)
_CONSTANT = (
    "{} results are registered as constants in the trace. You can safely ignore this warning if "
    "you use this function to create tensors out of constant variables that would be the same "
    "every time you call this function. In any other case, this might cause the trace to be "
    "incorrect."
)
STRICT = (
    "Encountering a {} at the output of the tracer might cause the trace to be incorrect, this is "
    "only valid if the container structure does not change based on the module's inputs. Consider "
    "using a constant container instead (e.g. for `list`, use a `tuple` instead. for `dict`, use "
    "a `NamedTuple` instead). If you absolutely need this and know the side effects, pass "
    "strict=False to trace() to allow this behavior."
)
WORDS = {
    "list as a result": STRICT.format("list"),
    **{word: _CONVERTED.format(word)
       for word in ("boolean", "integer", "float", "index", "list", "number")},
    "array": _CONVERTED.format("numpy array").replace("Python numpy", "NumPy"),
    "length": (
        "Using len to get tensor shape might cause the trace to be incorrect. Recommended usage "
        "would be tensor.shape[0]. Passing a tensor of different shape might lead to errors or "
        "silently give incorrect results."
    ),
    "iteration": (
        "Iterating over a tensor might cause the trace to be incorrect. Passing a tensor of "
        "different shape won't change the number of iterations executed (and might lead to "
        "errors or silently give incorrect results)."
    ),
    "tensor": _CONSTANT.format("torch.tensor"),
    "as_tensor": _CONSTANT.format("torch.as_tensor"),
    "from_numpy": _CONSTANT.format("torch.from_numpy"),
}  # fmt: skip
"""By what the program does."""
