"""What is said to scripts alone: TorchScript source, read as text, never run.

Functions of `torch.nn.functional` are the bodies of rows (`jit/modules/row_programs.py`), and
layers are compiled from `flambeau/nn/`. What stands here has no counterpart in what eager runs:

- `beside/`: functions of `torch` that are programs in PyTorch and rows of the same name here, which
  eager calls with what only Python has (a mode by name, pairs of lists, flags that say how many
  results there are). To scripts, the row is the operator of ATen, and these bring their arguments
  into its form.
- `layers/recurrent.py`, `attention.py`, `transformer.py`: which operator runs a whole sequence or a
  fast path, and when. Eager has the parts at hand and asks Python for more: hooks, subclasses.
- `layers/annotated.py`, `containers.py`: annotations of PyTorch's classes, which archives show.
- `contexts.py`: context managers, which archives keep as classes.
"""
