"""Layers and operators with drawn hyper-parameters, beside PyTorch's."""
