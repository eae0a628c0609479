"""`torch.ao`: what libraries import of quantization."""
