"""`torch.distributions` against PyTorch's: numbers, shapes, samples of a seed, gradients, words."""
