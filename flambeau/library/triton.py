"""`triton_op`: operators of a program that launch Triton's kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.library.custom_ops import CustomOpDef, custom_op


def triton_op(name: str, fn: Callable[..., Any] | None = None, /, *, mutates_args: Any,
              schema: str | None = None) -> Any:  # fmt: skip
    """An operator as `custom_op` makes it, of a function that others may look into.

    The function itself gives the results without memory, too: no `register_fake` is needed. Only
    what `wrap_triton` wraps needs the package triton; a function without it runs anywhere.

    Args:
        name: "mylib::double".
        fn: what computes it; without, this is a decorator.
        mutates_args: the names of the arguments that it writes to, or "unknown": any.
        schema: its schema; by default that of the annotations.

    Returns:
        A `CustomOpDef`, which is called as the function is.

    >>> import flambeau as torch
    >>> @torch.library.triton_op("mylib::thrice", mutates_args=())
    ... def thrice(x: torch.Tensor) -> torch.Tensor:
    ...     return x * 3
    >>> thrice(torch.ones(2)), thrice(torch.ones(2, device="meta")).shape
    (tensor([3., 3.]), torch.Size([2]))
    """

    def make(function: Callable[..., Any]) -> CustomOpDef:
        made: CustomOpDef = custom_op(name, function, mutates_args=mutates_args, schema=schema)
        made.register_fake(function)
        return made

    return make if fn is None else make(fn)


def wrap_triton(triton_kernel: Callable[..., Any], /) -> Any:
    """A Triton kernel as a function of `triton_op` calls it: `wrap_triton(kernel)[grid](...)`.

    Raises:
        ModuleNotFoundError: the package triton is not there.
        RuntimeError: it is no kernel of triton's.

    >>> import importlib.util
    >>> import flambeau as torch
    >>> if importlib.util.find_spec("triton") is None:
    ...     try:
    ...         torch.library.wrap_triton(len)
    ...     except ModuleNotFoundError as error:
    ...         assert str(error) == "No module named 'triton'"
    """
    from triton.runtime.autotuner import Autotuner  # type: ignore[import-not-found]
    from triton.runtime.jit import JITFunction  # type: ignore[import-not-found]

    if not isinstance(triton_kernel, (JITFunction, Autotuner)):
        raise RuntimeError(
            f"wrap_triton takes a function of triton.jit or triton.autotune, got {triton_kernel}"
        )
    return triton_kernel
