"""`torch.distributed.algorithms._checkpoint`: modules that compute again what backward needs."""
