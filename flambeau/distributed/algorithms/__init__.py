"""`torch.distributed.algorithms`: communication hooks, joins, checkpointed modules."""
