"""Settings: what is read back after each is set, and programs that switch them in the middle.

    python -m conformance.settings --minutes 10 --workers 2

- `table.py`: setters and flags with legal and illegal values, and what reads them back;
- `drawing.py`: random programs whose statements run in several Python threads that live side by
  side; they switch settings, look at all of them, and calculate;
- `words.py`: what these programs use beside the library; `children.py`: every program runs in
  a process of its own, in each library, so that nothing of it stays;
- `judging.py`, `__main__.py`: many programs, compared and written down as those of
  `conformance/autograd/generated/`; `found/`: programs that differed once.
"""
