"""`torch.distributed.elastic`: what programs under `torchrun` use of it."""
