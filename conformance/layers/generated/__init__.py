"""Calls of layers and operators with drawn hyper-parameters, to compare them with PyTorch's.

    python -m conformance.layers.generated --seconds 60 --seed 1

Each program makes tensors, calls one layer or operator, and takes gradients of all that learns.
Programs are run and made small as those of autograd are (see `conformance/autograd/generated/`).
What is different is here:

- `words.py`: what programs use beside the library; `drawing.py`: a program that grows;
- a file for each family of operators; `programs.py`: the table of families;
- `comparing.py`, `checking.py`: results count with their strides, gradients without; tolerances
  follow from types, and from how far results move with their arguments;
- `judging.py`, `__main__.py`: many programs; `found/`: programs that differed once, run first.
"""
