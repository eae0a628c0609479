"""`torch.nn.functional`, by topic."""
