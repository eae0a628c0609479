"""Modules of torch beside `torch.nn.functional` whose functions are programs."""
