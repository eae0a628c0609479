"""`torch.distributed.algorithms`: communication hooks."""
