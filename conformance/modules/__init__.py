"""Modules, optimizers, hooks and mixed precision: scenarios that two libraries run."""
