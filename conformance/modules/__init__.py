"""Modules, optimizers and mixed precision beside PyTorch: scenarios, and drawn programs."""
