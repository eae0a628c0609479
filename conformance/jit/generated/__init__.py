"""Programs in TorchScript drawn from a grammar of the whole language, to try the optimiser with.

    python -m conformance.jit.generated --minutes 10 --workers 2

`random_programs.py` beside this package draws what the optimiser rewrites; here nothing knows what
it rewrites. In the order in which a program passes through:

- `operators.py`: everything that may be called, from the table of operators;
- `arguments.py`, `expressions.py`, `statements.py`, `loops.py`, `modules.py`: programs, drawn while
  they run, so that nearly all of them are free of errors;
- `calls.py`: how a program is called, and what is done with its results; `cases.py` the data,
  `making.py` the tensors, `keeping.py` the files;
- `running.py`, `observing.py`: what came of it; `comparing.py`, `conditioning.py`: whether two
  forms agree; `checking.py`: all that for one case;
- `shrinking.py`, `grouping.py`: findings made small, and put together with those of the same kind;
- `judging.py`, `workers.py`, `__main__.py`: many programs, in processes that may crash or hang.
"""
