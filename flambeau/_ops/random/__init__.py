"""Random tensors from PyTorch's streams, and dropout."""
