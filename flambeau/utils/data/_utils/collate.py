"""`torch.utils.data._utils.collate`: what makes batches of samples."""

import re

from flambeau.utils.data.collate import (
    TEXT_OR_OBJECTS,
    collate,
    collate_float_fn,
    collate_int_fn,
    collate_numpy_array_fn,
    collate_numpy_scalar_fn,
    collate_str_fn,
    collate_tensor_fn,
    default_collate,
    default_collate_fn_map,
    default_convert,
)

np_str_obj_array_pattern = re.compile(f"[{''.join(sorted(TEXT_OR_OBJECTS))}]")
"""The kinds of NumPy's types that are no numbers."""

__all__ = [
    "collate",
    "collate_float_fn",
    "collate_int_fn",
    "collate_numpy_array_fn",
    "collate_numpy_scalar_fn",
    "collate_str_fn",
    "collate_tensor_fn",
    "default_collate",
    "default_collate_fn_map",
    "default_convert",
    "np_str_obj_array_pattern",
]
