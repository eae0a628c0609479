"""Errors of the processes that `torchrun` starts."""
