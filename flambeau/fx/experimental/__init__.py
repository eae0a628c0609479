"""`torch.fx.experimental`: sizes that are symbols, of which there are none."""
