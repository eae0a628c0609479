"""Functions and layers of torch.nn that are programs: TorchScript source, read as text.

In torch some functions of `torch.nn.functional` are operators (`conv2d`, `gelu`) and others are
programs (`relu`, `dropout`), which a script compiles like the user's own. The files below hold the
latter, for in Python `torch.nn.functional.relu` is a row of flambeau's table: checks and choices of
our own, around the operators that torch has, too, so that archives run there. They are parsed,
never run.

Layers are compiled from the very text that Python runs (`flambeau/nn/layers/`). `layers/` has only
what that text leaves open: which operator runs a whole sequence or the fast path of attention,
overloads, and annotations.
"""
