"""`torch.func` beside PyTorch's."""
