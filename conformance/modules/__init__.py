"""Scenarios of modules, optimizers and mixed precision, run in both libraries."""
