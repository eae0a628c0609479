"""Programs that are not one text with Python's yet: TorchScript source, read as text, never run.

Functions of `torch.nn.functional` are the bodies of rows (`jit/modules/row_programs.py`), and
layers are compiled from `flambeau/nn/layers/`. What is left here: `interpolate` and its kin, the
functions of `torch` that are programs, and in `layers/` what the text of layers leaves open: which
operator runs a whole sequence or the fast path of attention, overloads, and annotations.
"""
