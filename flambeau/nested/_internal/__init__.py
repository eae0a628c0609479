"""PyTorch's place of the class of jagged tensors."""
