"""Programs of modules, optimizers and mixed precision, to compare them with PyTorch's.

    python -m conformance.modules.generated --minutes 10 --workers 2

Programs are drawn, run, compared and made small as those of autograd are (see
`conformance/autograd/generated/`). What is different is here:

- `words.py`, `classes.py`: modules of a user's, hooks, schedules, and what programs use beside the
  library; `observing.py`: modules, optimizers, schedulers, scalers as data. All of them are looked
  at after every statement;
- `drawing.py`, `structure.py`, `behaviour.py`, `training.py`, `programs.py`: statements, drawn
  while PyTorch runs the program;
- `judging.py`, `__main__.py`: many programs; `found/`: programs that differed once, run first.
"""
