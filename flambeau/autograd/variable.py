"""`torch.autograd.variable`: the old name of Tensor, under PyTorch's name of the file."""

from flambeau.autograd import Variable

__all__ = ["Variable"]
