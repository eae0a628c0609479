"""`torch.backends.mha`: whether attention layers may take their fast path for inference."""

from flambeau._ops.attention.fast import switch


def get_fastpath_enabled() -> bool:
    """Whether MultiheadAttention and TransformerEncoder may take their fast path; it is taken if
    everything else allows it, too.
    """
    return switch.enabled


def set_fastpath_enabled(value: bool) -> None:
    """Allow or forbid the fast path; scripted layers do not ask."""
    switch.enabled = value
