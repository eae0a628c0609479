"""`torch._dynamo.config`: settings of the compiler of Python. Nothing reads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

verbose = False
suppress_errors = False
disable = False
dynamic_shapes = True
assume_static_by_default = True
automatic_dynamic_shapes = True
capture_scalar_outputs = False
capture_dynamic_output_shape_ops = False
cache_size_limit = recompile_limit = 8
accumulated_cache_size_limit = accumulated_recompile_limit = 256
error_on_recompile = False
force_parameter_static_shapes = True
allow_unspec_int_on_nn_module = False
inline_inbuilt_nn_modules = True
optimize_ddp = True
specialize_int = specialize_float = False
skip_fwd_side_effects_in_bwd_under_checkpoint = False
guard_nn_modules = True
numpy_default_float = "float64"
allow_rnn = False
compiled_autograd = False
trace_numpy = True


@contextmanager
def patch(
    arg1: str | Mapping[str, Any] | None = None, arg2: Any = None, **changes: Any
) -> Iterator[None]:
    """Settings for a while, or for the calls of a function: a name and a value, several as a
    mapping, or by keyword.

    Raises:
        AttributeError: there is no such setting.
    """
    wanted = {arg1: arg2} if isinstance(arg1, str) else {**(arg1 or {}), **changes}
    current = globals()
    for name in wanted:
        if name not in current:
            raise AttributeError(f"torch._dynamo.config.{name} does not exist")
    before = {name: current[name] for name in wanted}
    current.update(wanted)
    try:
        yield
    finally:
        current.update(before)


def __getattr__(name: str) -> Any:
    raise AttributeError(f"torch._dynamo.config.{name} does not exist")
