"""`torch.__future__`: how modules change their parameters, for those who want tomorrow's way."""

from __future__ import annotations


class _Ways:
    """The two settings."""

    overwrite: bool = False
    swap: bool = False


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Whether `module.to(...)` and the like put new Parameters in place of the old ones.

    Otherwise the old ones get new data, so that whoever holds them sees the change.
    """
    _Ways.overwrite = value


def get_overwrite_module_params_on_conversion() -> bool:
    """What `set_overwrite_module_params_on_conversion` was last given; False at first."""
    return _Ways.overwrite


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Whether `module.to(...)` and `load_state_dict` swap old and new parameters in all respects.

    `torch.utils.swap_tensors` does it, so the objects stay, with another class if need be. Comes
    before `set_overwrite_module_params_on_conversion`.
    """
    _Ways.swap = value


def get_swap_module_params_on_conversion() -> bool:
    """What `set_swap_module_params_on_conversion` was last given; False at first."""
    return _Ways.swap
