"""Programs in Python that use autograd in every way there is, to compare it with PyTorch's.

    python -m conformance.autograd.generated --minutes 10 --workers 2

In the order in which a program passes through:

- `words.py`, `functions.py`: what programs use beside the library: data, hooks, functions of a
  user's;
- `drawing.py`, `statements.py`, `programs.py`: programs, drawn while PyTorch runs them. Expressions
  call every operator of the table; they come from `conformance/jit/generated/`;
- `running.py`, `observing.py`: what came of a program; `comparing.py`: whether two outcomes agree;
  `checking.py`: all that for one program;
- `shrinking.py`: programs made small; `judging.py`: what the processes do, which come from
  `conformance/jit/generated/workers.py`; `__main__.py`: many programs;
- `found/`: programs that differed once, which are run first.
"""
