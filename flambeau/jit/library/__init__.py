"""Functions and layers of torch.nn that are programs: TorchScript source, read as text.

In torch some functions of `torch.nn.functional` are operators (`conv2d`, `gelu`) and others are
Python (`relu`, `dropout`), which a script compiles like the user's own. The files below hold the
latter in TorchScript's subset; names and operators are those that torch's programs show. They are
parsed, never run: in Python, `torch.nn.functional.relu` is a row of flambeau's table.
"""
